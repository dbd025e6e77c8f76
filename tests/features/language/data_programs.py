"""Programs over users' data, to be printed as Python."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Generic, TypeVar

from pyrelay import Bool, Dim, Float, Fn, Int, Tensor, relay
from tests.binary_trees import Leaf, Node, Tree

T = TypeVar("T")
K = TypeVar("K")
N = Dim("N")


@dataclass(frozen=True)
class Empty:
    pass


@dataclass(frozen=True)
class Rows(Generic[K]):
    head: Tensor[Float, (K, 2)]
    tail: Chain[K]


Chain = Rows[K] | Empty


@dataclass(frozen=True)
class Point:
    x: Float
    n: int
    tree: Tree[Float]


@dataclass(frozen=True)
class Number:
    value: Float


@dataclass(frozen=True)
class Let:
    value: Expr
    body: Block


Expr = Number | Let


@dataclass(frozen=True)
class Block:
    first: Expr
    scale: tuple[Float, Bool]


@relay
def total(tree: Tree[Float]) -> Float:
    match tree:
        case Leaf(value):
            return value
        case Node(Leaf(a), Leaf(b)):
            return a * b
        case Node(left, right) if total(left) > 0.0:
            return total(left) - total(right)
        case Node(_, right):
            return total(right)


@relay
def mapped(f: Fn[[Float], Float], tree: Tree[Float]) -> Tree[Float]:
    match tree:
        case Leaf(value):
            return Leaf(f(value))
        case Node(left, right):
            return Node(mapped(f, left), mapped(f, right))


@relay
def size(tree: Tree[T]) -> Int:
    match tree:
        case Leaf():
            return 1
        case Node(left, right):
            return size(left) + size(right)


@relay
def stacked(chain: Chain[N]) -> Tensor[Float, (N, 2)]:
    match chain:
        case Rows(head, Empty()):
            return head
        case Rows(head, tail):
            return head + stacked(tail)
        case Empty():
            raise ValueError("no rows")


@relay
def record(p: Point, k: Int) -> Point:
    match p:
        case Point(x, n, tree):
            match k, (n > 2, "up"):
                case 0, (True, "up"):
                    factor = 2.0
                case -1, _:
                    factor = 0.25
                case _:
                    factor = total(tree)
            scaled = mapped(lambda v: v * factor, tree)
            return Point(x * factor, n, Node(scaled, scaled))


@relay
def evaluated(e: Expr) -> Float:
    match e:
        case Number(value):
            return value
        case Let(value, Block(first, (scale, negated))):
            inside = evaluated(first) * scale + evaluated(value)
            return -inside if negated else inside


@relay
def gradient(tree: Tree[Float], chain: Chain[N]) -> tuple[Tree[Float], Float, Int]:
    slope = relay.grad(total)(tree)
    return mapped(relay.tanh, slope), stacked(Rows(stacked(chain), Empty())).sum(), size(tree)
