"""Perfect trees, whose type says that they are: each level has pairs of what the last one had."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Generic, TypeVar

from pyrelay import Float, Fn, relay

T = TypeVar("T")


@dataclass(frozen=True)
class Leaves(Generic[T]):
    value: T


@dataclass(frozen=True)
class Level(Generic[T]):
    below: Perfect[tuple[T, T]]


Perfect = Leaves[T] | Level[T]


@relay
def total(f: Fn[[T], Float], tree: Perfect[T]) -> Float:
    match tree:
        case Leaves(value):
            return f(value)
        case Level(below):
            return total(lambda pair: f(pair[0]) + f(pair[1]), below)


@relay
def squares(tree: Perfect[Float]) -> Float:
    return total(lambda x: x * x, tree)


def main() -> None:
    tree = Level(Level(Leaves(((1.0, 2.0), (3.0, 4.0)))))
    assert squares(tree) == 30.0
    relay.grad(squares)(tree)
