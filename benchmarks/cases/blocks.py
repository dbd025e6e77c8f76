"""Convolutions of many sizes, residual networks and blocks of transformers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import torch

from benchmarks.cases.case import Calling, Case, Gradient, Training, Work
from benchmarks.cases.networks import Labels, N, inference, step_of, weights
from benchmarks.libraries import RATE
from pyrelay import Dim, Float, Tensor, relay, relay_model
from pyrelay.models.transformer import transformer_block

B, T = Dim("B"), Dim("T")

Pictures = Tensor[Float, (N, 3, 16, 16)]
CHANNELS: Final = 16


@relay_model
def residual(x: Pictures) -> Tensor[Float, (N, 10)]:
    """Return the scores of ten classes by a residual network with batch norms."""
    h = relay.conv2d(x, out_channels=CHANNELS, kernel_size=3, padding=1)
    h = relay.relu(relay.batch_norm(h))
    inner = relay.conv2d(h, out_channels=CHANNELS, kernel_size=3, padding=1)
    inner = relay.relu(relay.batch_norm(inner))
    inner = relay.conv2d(inner, out_channels=CHANNELS, kernel_size=3, padding=1)
    h = relay.relu(h + relay.batch_norm(inner))
    return relay.linear(relay.mean(h, dim=(2, 3)), out_features=10)


@relay
def residual_loss(x: Pictures, y: Labels) -> Float:
    """Return the mean cross entropy of a batch."""
    return relay.softmax_cross_entropy(residual(x), y)


def peer_residual(lib: Any, w: Any, x: Any, y: Any) -> Any:
    """Return the same loss."""
    h = lib.relu(lib.batch_norm(lib.conv2d(x, w[0], w[1], padding=1), w[2], w[3]))
    inner = lib.relu(lib.batch_norm(lib.conv2d(h, w[4], w[5], padding=1), w[6], w[7]))
    inner = lib.batch_norm(lib.conv2d(inner, w[8], w[9], padding=1), w[10], w[11])
    h = lib.relu(h + inner)
    return lib.cross_entropy(lib.linear(h.mean((2, 3)), w[12], w[13]), y)


WIDTH: Final = 128
HEADS: Final = 4
Words = Tensor[Float, (B, T, WIDTH)]


@relay_model
def block(x: Words) -> Words:
    """Return the features after a block of a transformer."""
    return transformer_block(x, heads=HEADS, hidden=4 * WIDTH)


@relay
def block_loss(x: Words, y: Words) -> Float:
    """Return how far the features are from others."""
    return relay.mean((block(x) - y) ** 2)


def peer_block(lib: Any, x: Any, *w: Any) -> Any:
    """Return the same features."""
    batch, time, width = x.shape

    def parts(part: Any) -> Any:
        return lib.swapaxes(part.reshape(batch, time, HEADS, width // HEADS), 1, 2)

    given = lib.linear(lib.layer_norm(x, w[0], w[1]), w[2], w[3])
    q, k, v = (parts(given[:, :, i * width : (i + 1) * width]) for i in range(3))
    weights = lib.softmax(q @ lib.swapaxes(k, -2, -1) / (width // HEADS) ** 0.5)
    mixed = lib.swapaxes(weights @ v, 1, 2).reshape(batch, time, width)
    x = x + lib.linear(mixed, w[4], w[5])
    inner = lib.gelu(lib.linear(lib.layer_norm(x, w[6], w[7]), w[8], w[9]))
    return x + lib.linear(inner, w[10], w[11])


def peer_block_loss(lib: Any, w: Any, x: Any, y: Any) -> Any:
    """Return the same distance."""
    return ((peer_block(lib, x, *w) - y) ** 2).mean()


def _residual(size: int) -> Case:
    def args() -> tuple[Any, ...]:
        return torch.rand(size, 3, 16, 16), torch.randint(0, 10, (size,))

    step = step_of(residual, residual_loss, Pictures, Labels, relay.optim.sgd(lr=RATE))
    work = Work(args=args, tolerance=1e-3)
    name = f"residual network step, batch {size}"
    return Training(name, lambda: relay.create_model(residual, seed=0), step, peer_residual, work)


def _block_step(batch: int, time: int) -> Case:
    def args() -> tuple[Any, ...]:
        return torch.randn(batch, time, WIDTH), torch.randn(batch, time, WIDTH)

    step = step_of(block, block_loss, Words, Words, relay.optim.sgd(lr=RATE))
    work = Work(args=args, tolerance=1e-3)
    name = f"transformer block step, {batch}x{time}"
    return Training(name, lambda: relay.create_model(block, seed=0), step, peer_block_loss, work)


def _convolution(
    name: str, image: tuple[int, ...], weight: tuple[int, ...], stride: int = 1, padding: int = 0
) -> Case:
    """Return the case of a convolution with its activation, and of its gradients."""
    batch, *rest = image

    @relay
    def loss(
        w: Tensor[Float, weight], b: Tensor[Float, weight[:1]], x: Tensor[Float, (N, *rest)]
    ) -> Float:
        h = relay.conv2d(x, w, b, stride=stride, padding=padding)
        return relay.sum(relay.relu(h) ** 2)

    def peer(lib: Any, w: Any, b: Any, x: Any) -> Any:
        h = lib.conv2d(x, w, b, stride=stride, padding=padding)
        return (lib.relu(h) ** 2).sum()

    work = Work(args=_tensors(weight, weight[:1], (batch, *rest)), tolerance=1e-3)
    return Gradient(f"convolution gradient, {name}", loss, peer, work, ("w", "b"))


def _tensors(*shapes: tuple[int, ...]) -> Callable[[], tuple[Any, ...]]:
    return lambda: tuple(torch.randn(shape) * 0.1 for shape in shapes)


CASES: Final[tuple[Case, ...]] = (
    _residual(4),
    _residual(64),
    _block_step(4, 64),
    Calling(
        "transformer block, 4x64",
        *inference(block, peer_block),
        Work(args=lambda: (torch.randn(4, 64, WIDTH), *weights(block))),
    ),
    _convolution("3 to 32 channels, 32x32", (8, 3, 32, 32), (32, 3, 3, 3), padding=1),
    _convolution("32 to 64, 14x14, stride 2", (8, 32, 14, 14), (64, 32, 3, 3), 2, 1),
    _convolution("17 to 29, 13x11", (5, 17, 13, 11), (29, 17, 3, 3)),
    _convolution("64 to 64, 7x7, 1x1", (16, 64, 7, 7), (64, 64, 1, 1)),
)
