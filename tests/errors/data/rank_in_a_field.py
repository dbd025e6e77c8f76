"""The shapes of fields are checked where a value is made."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Generic, TypeVar

from pyrelay import Dim, Float, Tensor, relay

K = TypeVar("K")
N = Dim("N")


@dataclass(frozen=True)
class Layer(Generic[K]):
    weight: Tensor[Float, (K, 3)]
    bias: Tensor[Float, (K,)]


@relay
def layer(w: Tensor[Float, (N, 3)]) -> Layer[N]:
    return Layer(w, w)


@relay
def uneven(w: Tensor[Float, (4, 3)], b: Tensor[Float, (5,)]) -> Layer[4]:
    return Layer(w, b)
