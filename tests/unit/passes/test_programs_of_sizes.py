"""Programs whose sizes are computed: windows, strides, joins, caches, recursions."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from pyrelay import Any as AnySize
from pyrelay import Dim, Float, Tensor, relay
from pyrelay.prelude import List

N, M, K, C = Dim("N"), Dim("M"), Dim("K"), Dim("C")


@relay
def strided(x: Tensor[Float, (N, M)]):
    return x[::2, 1::3].sum(dim=0) * 2.0


@relay
def differences(x: Tensor[Float, (N + 1,)]):
    return x[1:] - x[:N]


@relay
def windows(x: Tensor[Float, (N + K - 1,)], w: Tensor[Float, (K,)]):
    out = relay.zeros((N,))
    for i in range(K):
        out = out + x[i : i + N] * w[i]
    return out


@relay
def pooled(x: Tensor[Float, (3 * N, C)]):
    return relay.reshape(x, (N, 3, C)).mean(dim=1)


@relay
def shuffled(x: Tensor[Float, (2 * C, N)]):
    return relay.reshape(relay.reshape(x, (2, C, N)).transpose(0, 1), (2 * C, N))


@relay
def rotated(x: Tensor[Float, (N, 2 * C)]):
    a, b = x[:, :C], x[:, C:]
    return relay.cat((-b, a), dim=1)


@relay
def interleaved(x: Tensor[Float, (N,)], y: Tensor[Float, (N,)]):
    return relay.reshape(relay.stack((x, y), dim=1), (2 * N,))


@relay
def deinterleaved(x: Tensor[Float, (2 * N,)]):
    z = relay.reshape(x, (N, 2))
    return z[:, 0], z[:, 1]


@relay
def heads(x: Tensor[Float, (N, 4 * K)]):
    q = relay.reshape(x, (N, 4, K)).transpose(0, 1)
    p = relay.softmax(q @ q.transpose(1, 2), dim=-1)
    return relay.reshape((p @ q).transpose(0, 1), (N, 4 * K))


@relay
def cached(
    cache: Tensor[Float, (N, C)], x: Tensor[Float, (1, C)], n: int
) -> Tensor[Float, (AnySize, C)]:
    if n == 0:
        return cache
    p = relay.softmax(x @ cache.T, dim=-1)
    return cached(relay.cat((cache, p @ cache)), x, n - 1)


@relay
def pair_sum(x: Tensor[Float, (N,)]) -> Float:
    if N == 1:
        return x[0]
    return pair_sum(x[: N // 2]) + pair_sum(x[N // 2 :]) * 2.0


@relay
def stacked(xs: List[Float]):
    y = relay.stack(xs)
    return y[: len(xs) // 2], y * 2.0


@relay
def padded(x: Tensor[Float, (N,)], n: Dim("n")):
    return relay.cat((relay.zeros((n,)), x, relay.zeros((n,))))


@relay
def grouped(x: Tensor[Float, (N, M)], *, groups: int = 2):
    return relay.reshape(x, (N, groups, M // groups)).sum(dim=2)


@relay
def triangle(x: Tensor[Float, (N * N,)], n: Dim("N")):
    return relay.reshape(x, (n, n)).T


@relay
def outer_of_parts(x: Tensor[Float, (N + M,)], y: Tensor[Float, (M,)]):
    return x[:N][:, None] * x[N:][None, :] + y


@relay
def upper_of_all(x: Tensor[Float, (2 * N + K,)], w: Tensor[Float, (2 * K,)]):
    return x[:N], x[N : 2 * N], w[:K] + x[2 * N :]


def _pair_sum(x: torch.Tensor) -> torch.Tensor:
    if len(x) == 1:
        return x[0]
    return _pair_sum(x[: len(x) // 2]) + _pair_sum(x[len(x) // 2 :]) * 2.0


def _windows(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    return (x.unfold(0, len(w), 1) * w).sum(1)


def _heads(x: torch.Tensor) -> torch.Tensor:
    q = x.reshape(len(x), 4, -1).transpose(0, 1)
    return (torch.softmax(q @ q.transpose(1, 2), -1) @ q).transpose(0, 1).reshape(len(x), -1)


def _cached(cache: torch.Tensor, x: torch.Tensor, n: int) -> torch.Tensor:
    for _ in range(n):
        cache = torch.cat((cache, torch.softmax(x @ cache.T, -1) @ cache))
    return cache


def _rows(*shape: int) -> torch.Tensor:
    return torch.linspace(-1.0, 2.0, int(torch.tensor(shape).prod())).reshape(shape)


CASES: list[tuple[Any, tuple[Any, ...], Any]] = [
    (strided, (_rows(5, 7),), lambda x: x[::2, 1::3].sum(0) * 2),
    (differences, (_rows(5),), lambda x: x[1:] - x[:-1]),
    (windows, (_rows(7), _rows(3)), _windows),
    (pooled, (_rows(6, 2),), lambda x: x.reshape(2, 3, 2).mean(1)),
    (shuffled, (_rows(6, 2),), lambda x: x.reshape(2, 3, 2).transpose(0, 1).reshape(6, 2)),
    (rotated, (_rows(2, 6),), lambda x: torch.cat((-x[:, 3:], x[:, :3]), 1)),
    (interleaved, (_rows(3), _rows(3) * 2), lambda x, y: torch.stack((x, y), 1).reshape(6)),
    (deinterleaved, (_rows(6),), lambda x: (x[::2], x[1::2])),
    (heads, (_rows(3, 8),), _heads),
    (cached, (_rows(2, 3), _rows(1, 3), 3), _cached),
    (pair_sum, (_rows(7),), _pair_sum),
    (padded, (_rows(3), 2), lambda x, n: torch.nn.functional.pad(x, (n, n))),
    (grouped, (_rows(3, 6),), lambda x: x.reshape(3, 2, 3).sum(2)),
    (triangle, (_rows(9), 3), lambda x, n: x.reshape(n, n).T),
    (outer_of_parts, (_rows(5), _rows(2)), lambda x, y: x[:3, None] * x[None, 3:] + y),
    (upper_of_all, (_rows(7), _rows(6)), lambda x, w: (x[:2], x[2:4], w[:3] + x[4:])),
]


@pytest.mark.parametrize(("f", "args", "wanted"), CASES, ids=[f.__name__ for f, *_ in CASES])
def test_a_program_gives_what_torch_gives(f: Any, args: tuple[Any, ...], wanted: Any) -> None:
    torch.testing.assert_close(f(*args), wanted(*args))
    torch.testing.assert_close(f.interpret(*args), wanted(*args))


@pytest.mark.parametrize(("f", "args", "wanted"), CASES, ids=[f.__name__ for f, *_ in CASES])
def test_its_gradient_is_that_of_torch(f: Any, args: tuple[Any, ...], wanted: Any) -> None:
    leaves = [a.clone().requires_grad_() if isinstance(a, torch.Tensor) else a for a in args]
    tensors = [a for a in leaves if isinstance(a, torch.Tensor)]
    ours, theirs = f(*leaves), wanted(*leaves)
    first = ours if isinstance(ours, tuple) else (ours,)
    second = theirs if isinstance(theirs, tuple) else (theirs,)
    found = torch.autograd.grad(sum((y * y).sum() for y in first), tensors)
    expected = torch.autograd.grad(sum((y * y).sum() for y in second), tensors)
    torch.testing.assert_close(found, expected)


def test_sizes_come_from_the_length_of_a_list() -> None:
    half, all_ = stacked([1.0, 2.0, 3.0, 4.0])
    assert half.tolist() == [1, 2]
    assert all_.tolist() == [2, 4, 6, 8]
