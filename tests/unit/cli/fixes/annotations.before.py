"""Parameters without annotations."""

from __future__ import annotations

from dataclasses import dataclass

from pyrelay import Dim, relay
from pyrelay import Tensor, Float as F

N = Dim("N")


@dataclass(frozen=True)
class Point:
    x: F
    y: F


@relay
def squared(x, *, scale=2.0, name="it"):  # of what calls it
    return x * x * scale


@relay
def norm(p, twice=False):
    if twice:
        return norm(p) * 2.0
    match p:
        case Point(x, y):
            return x * x + y * y


@relay
def rows(x: Tensor[F, (N, 3)]) -> Tensor[F, (N, 3)]:
    return squared(x)


@relay
def counted(k, xs):
    return xs[k:].sum()


@relay
def later(y: Tensor[F, ("M", "M + 1")], n: int) -> F:
    return counted(n, y)
