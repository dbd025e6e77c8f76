"""A type parameter is a size or a type."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Generic, TypeVar

from pyrelay import Float, Tensor, relay

T = TypeVar("T")


@dataclass(frozen=True)
class Mixed(Generic[T]):
    items: Tensor[Float, (T,)]
    value: T


@relay
def first(m: Mixed[T]) -> Float:
    return m.items[0]
