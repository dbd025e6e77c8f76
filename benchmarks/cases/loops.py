"""Functions over numbers, and loops over small tensors, against Python and eager torch."""

from __future__ import annotations

from typing import Any, Final

import torch

from benchmarks.cases.case import Calling, Case, Work
from pyrelay import Dim, Float, Int, Tensor, int64, relay

N, S, K = Dim("N"), Dim("S"), Dim("K")


def python_fib(n: int) -> int:
    """Return a Fibonacci number."""
    return n if n < 2 else python_fib(n - 1) + python_fib(n - 2)


@relay
def fib(n: Int) -> Int:
    """Return a Fibonacci number."""
    if n < 2:
        return n
    return fib(n - 1) + fib(n - 2)


def remainders(n: Int) -> Int:
    """Return a sum of remainders."""
    total = 0
    for i in range(n):
        total = total + i * i % 7
    return total


def collatz(n: Int) -> Int:
    """Return how many steps lead to 1."""
    steps = 0
    while n != 1:
        n = n // 2 if n % 2 == 0 else 3 * n + 1
        steps += 1
    return steps


def root(a: Float) -> Float:
    """Return a square root, by Newton's method."""
    x = a
    while abs(x * x - a) > 1e-4:
        x = 0.5 * (x + a / x)
    return x


@relay
def viterbi(
    seen: Tensor[int64, (N,)],
    moves: Tensor[Float, (S, S)],
    shown: Tensor[Float, (S, K)],
    first: Tensor[Float, (S,)],
) -> Tensor[Float, (S,)]:
    """Return the scores of the best paths to each state."""
    score = first
    for t in range(len(seen)):
        score = relay.amax(score[:, None] + moves, dim=0) + shown[:, seen[t]]
    return score


def peer_viterbi(lib: Any, seen: Any, moves: Any, shown: Any, first: Any) -> Any:
    """Return the same."""

    def step(score: Any, symbol: Any) -> Any:
        return lib.amax(score[:, None] + moves, 0) + shown[:, symbol]

    return lib.scan(step, first, seen)


def kalman(
    n: Int, f: Tensor[Float, (4, 4)], p: Tensor[Float, (4, 4)], q: Tensor[Float, (4, 4)]
) -> Tensor[Float, (4, 4)]:
    """Return the covariance of a prediction, some steps ahead."""
    for _ in range(n):
        p = f @ p @ f.T + q
    return p


def _observed() -> tuple[Any, ...]:
    return (torch.randint(0, 8, (200,)), torch.randn(16, 16), torch.randn(16, 8), torch.randn(16))


_PYTHON: Final = {
    "jax": "has no recursion, and its loops cannot be written as Python's",
    "torch.compile": "unrolls loops over numbers, and compiles anew for each count",
}
_UNROLLED: Final = {"torch.compile": _PYTHON["torch.compile"]}


def _numbers(name: str, python: Any, compiled: Any, *args: Any) -> Case:
    def peer(_: Any, *args: Any) -> Any:
        return python(*args)

    return Calling(name, compiled, peer, Work(args=lambda: args, skips=_PYTHON))


CASES: Final[tuple[Case, ...]] = (
    _numbers("fib(18)", python_fib, fib, 18),
    _numbers("fib(25)", python_fib, fib, 25),
    _numbers("remainders, 10,000", remainders, relay(remainders), 10_000),
    _numbers("collatz(837799)", collatz, relay(collatz), 837_799),
    _numbers("root(1e6), scalar while", root, relay(root), torch.tensor(1e6)),
    Calling(
        "viterbi, 200 steps, 16 states",
        viterbi,
        peer_viterbi,
        Work(args=_observed, skips=_UNROLLED),
    ),
    _numbers(
        "kalman, 50 steps",
        kalman,
        relay(kalman),
        *(50, torch.eye(4) * 0.5, torch.eye(4), torch.eye(4)),
    ),
)
