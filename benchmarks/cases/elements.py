"""Functions of elements and rows: fusion, broadcasting, layouts, odd sizes, calls of tiny ones."""

from __future__ import annotations

from typing import Any, Final

import torch

from benchmarks.cases.case import Calling, Case, Work
from pyrelay import Dim, Float, Int, Tensor, float64, relay

N, M, K = Dim("N"), Dim("M"), Dim("K")
Rows = Tensor[Float, (N, M)]
Row = Tensor[Float, (M,)]


@relay
def gelu(x: Rows, w: Row, b: Row):
    """Return a scaled and shifted gelu."""
    return relay.gelu(x * w + b)


def peer_gelu(lib: Any, x: Any, w: Any, b: Any) -> Any:
    """Return the same."""
    return lib.gelu(x * w + b)


@relay
def chain(x: Rows):
    """Return the result of twenty operators, five of which are tanh."""
    for _ in relay.layers(5):
        x = relay.tanh(x * 1.1 + 0.1) * 0.9
    return x


@relay
def chain64(x: Tensor[float64, (N, M)]):
    """Return the same of numbers of 64 bits."""
    for _ in relay.layers(5):
        x = relay.tanh(x * 1.1 + 0.1) * 0.9
    return x


def peer_chain(lib: Any, x: Any) -> Any:
    """Return the same."""
    for _ in range(5):
        x = lib.tanh(x * 1.1 + 0.1) * 0.9
    return x


@relay
def roots(x: Rows):
    """Return square roots after ten rounds of Newton's method."""
    y = x
    for _ in range(10):
        y = 0.5 * (y + x / y)
    return y


def peer_roots(lib: Any, x: Any) -> Any:
    """Return the same."""
    y = x
    for _ in range(10):
        y = 0.5 * (y + x / y)
    return y


@relay
def tiny(x: Rows):
    """Return the result of fifty operators."""
    for _ in relay.layers(10):
        x = relay.tanh(x * 1.1 + 0.1) * 0.9 - x
    return x


def peer_tiny(lib: Any, x: Any) -> Any:
    """Return the same."""
    for _ in range(10):
        x = lib.tanh(x * 1.1 + 0.1) * 0.9 - x
    return x


@relay
def increment(x: Row):
    """Return numbers that are larger by one."""
    return x + 1.0


def peer_increment(lib: Any, x: Any) -> Any:
    """Return the same."""
    return x + 1.0


@relay
def layer_norm(x: Rows, w: Row, b: Row):
    """Return the normalised rows."""
    return relay.layer_norm(x, (x.shape[1],), w, b)


def peer_layer_norm(lib: Any, x: Any, w: Any, b: Any) -> Any:
    """Return the same."""
    return lib.layer_norm(x, w, b)


@relay
def softmax(x: Rows):
    """Return the softmax of rows."""
    return relay.softmax(x, dim=-1)


def peer_softmax(lib: Any, x: Any) -> Any:
    """Return the same."""
    return lib.softmax(x)


@relay
def row_sums(x: Rows):
    """Return the sum of each row."""
    return relay.sum(x, dim=1)


def peer_row_sums(lib: Any, x: Any) -> Any:
    """Return the same."""
    return lib.sum(x, 1)


@relay
def column_sums(x: Rows):
    """Return the sum of each column."""
    return relay.sum(x, dim=0)


def peer_column_sums(lib: Any, x: Any) -> Any:
    """Return the same."""
    return lib.sum(x, 0)


@relay
def mean_square(x: Rows):
    """Return the mean of the squares of a tensor."""
    return relay.mean(x * x)


def peer_mean_square(lib: Any, x: Any) -> Any:
    """Return the same."""
    return lib.sum(x * x) / (x.shape[0] * x.shape[1])


@relay
def largest(x: Rows):
    """Return where the largest number of each row is."""
    return relay.argmax(x, dim=1)


def peer_largest(lib: Any, x: Any) -> Any:
    """Return the same."""
    return lib.argmax(x, 1)


@relay
def cross_entropy(x: Rows, y: Tensor[Int, (N,)]):
    """Return the loss of scores."""
    return relay.cross_entropy(x, y)


def peer_cross_entropy(lib: Any, x: Any, y: Any) -> Any:
    """Return the same."""
    return lib.cross_entropy(x, y)


@relay
def scaled(x: Rows, row: Row, column: Tensor[Float, (N, 1)], s: Float):
    """Return a matrix with a row, a column and a number broadcast over it."""
    return relay.sigmoid(x * row + column) * s


def peer_scaled(lib: Any, x: Any, row: Any, column: Any, s: Any) -> Any:
    """Return the same."""
    return lib.sigmoid(x * row + column) * s


@relay
def distances(x: Tensor[Float, (N, K)], y: Tensor[Float, (M, K)]):
    """Return the squared distance of each point of one set to each of another."""
    moved = x[:, None, :] - y[None, :, :]
    return relay.sum(moved * moved, dim=2)


def peer_distances(lib: Any, x: Any, y: Any) -> Any:
    """Return the same."""
    moved = x[:, None, :] - y[None, :, :]
    return lib.sum(moved * moved, 2)


@relay
def turned(x: Tensor[Float, (M, N)], y: Rows, w: Tensor[Float, (N, 1)]):
    """Return an activation of a matrix and another that lies across."""
    return relay.sigmoid(relay.transpose(x, 0, 1) * w + y)


def peer_turned(lib: Any, x: Any, y: Any, w: Any) -> Any:
    """Return the same."""
    return lib.sigmoid(lib.swapaxes(x, 0, 1) * w + y)


@relay
def linear_gelu(x: Tensor[Float, (N, K)], w: Tensor[Float, (M, K)], b: Row):
    """Return a layer and its activation."""
    return relay.gelu(relay.linear(x, w, b))


def peer_linear_gelu(lib: Any, x: Any, w: Any, b: Any) -> Any:
    """Return the same."""
    return lib.gelu(lib.linear(x, w, b))


def _random(*shape: int, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    return torch.randn(shape, dtype=dtype)


def _affine(rows: int, columns: int) -> Any:
    return lambda: (_random(rows, columns), _random(columns), _random(columns))


def _one(*shape: int) -> Any:
    return lambda: (_random(*shape),)


def _positive(*shape: int) -> Any:
    return lambda: (torch.rand(*shape) + 0.5,)


def _layer(n: int, m: int, k: int) -> Any:
    return lambda: (_random(n, k), _random(m, k) / k**0.5, _random(m))


CASES: Final[tuple[Case, ...]] = (
    Calling("chain of 20, 4096x1024", chain, peer_chain, Work(args=_one(4096, 1024), limit=20)),
    Calling("chain of 20, 1023x517", chain, peer_chain, Work(args=_one(1023, 517))),
    Calling("ten rounds of Newton, 1024x1024", roots, peer_roots, Work(args=_positive(1024, 1024))),
    Calling(
        "chain of 20, float64, 1024x512",
        chain64,
        peer_chain,
        Work(args=lambda: (_random(1024, 512, dtype=torch.float64),)),
    ),
    Calling("gelu(x*w+b), 4096x1024", gelu, peer_gelu, Work(args=_affine(4096, 1024), limit=3.6)),
    Calling("50 tiny operators, 8x8", tiny, peer_tiny, Work(args=_one(8, 8), limit=50)),
    Calling("x + 1, 8 numbers", increment, peer_increment, Work(args=_one(8))),
    Calling(
        "layer norm, 4096x1024",
        layer_norm,
        peer_layer_norm,
        Work(args=_affine(4096, 1024), limit=1.4),
    ),
    Calling("softmax, 4096x1024", softmax, peer_softmax, Work(args=_one(4096, 1024), limit=1.6)),
    Calling("softmax, 999x77", softmax, peer_softmax, Work(args=_one(999, 77))),
    Calling("sums of rows, 2048x1024", row_sums, peer_row_sums, Work(args=_one(2048, 1024))),
    Calling(
        "sums of columns, 2048x1024", column_sums, peer_column_sums, Work(args=_one(2048, 1024))
    ),
    Calling("mean square, 2048x1024", mean_square, peer_mean_square, Work(args=_one(2048, 1024))),
    Calling("argmax of rows, 2048x1024", largest, peer_largest, Work(args=_one(2048, 1024))),
    Calling(
        "cross-entropy, 2048x1000",
        cross_entropy,
        peer_cross_entropy,
        Work(args=lambda: (_random(2048, 1000), torch.randint(0, 1000, (2048,)))),
    ),
    Calling(
        "row, column and number, 2048x1024",
        scaled,
        peer_scaled,
        Work(
            args=lambda: (_random(2048, 1024), _random(1024), _random(2048, 1), torch.tensor(1.5))
        ),
    ),
    Calling(
        "distances, 512x400x16",
        distances,
        peer_distances,
        Work(args=lambda: (_random(512, 16), _random(400, 16))),
    ),
    Calling(
        "transposed operand, 1500x700",
        turned,
        peer_turned,
        Work(args=lambda: (_random(700, 1500), _random(1500, 700), _random(1500, 1))),
    ),
    Calling(
        "linear + gelu, 512^3",
        linear_gelu,
        peer_linear_gelu,
        Work(args=_layer(512, 512, 512), limit=2.1),
    ),
    Calling(
        "linear + gelu, 1x300x750", linear_gelu, peer_linear_gelu, Work(args=_layer(1, 750, 300))
    ),
    Calling(
        "linear + gelu, 37x129x65", linear_gelu, peer_linear_gelu, Work(args=_layer(37, 129, 65))
    ),
)
