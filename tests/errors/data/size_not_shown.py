"""A size that stands only in a type has no value."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Generic, TypeVar

from pyrelay import Dim, Float, Tensor, relay

K = TypeVar("K")
N = Dim("N")


@dataclass(frozen=True)
class Some(Generic[K]):
    items: Tensor[Float, (K,)]


@dataclass(frozen=True)
class Empty:
    pass


Vector = Some[K] | Empty


@relay
def ones(v: Vector[N]) -> Tensor[Float, (N,)]:
    return relay.ones(N)
