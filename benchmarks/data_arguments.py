"""Arguments that are data: the time of a call that sees a value for the first time, and again.

    python benchmarks/data_arguments.py

Every kind of leaf stands in trees of `2 ** depth` leaves, and in lists of as many elements. The
time of a call with a value of one leaf is subtracted, so what is shown for a node is the time of
its check and conversion; the elements of lists count as nodes. The functions look at the root
alone.
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import count
from statistics import median
from typing import Any, Generic, TypeVar

os.environ.setdefault("OMP_NUM_THREADS", "1")  # before torch is loaded

import torch

from pyrelay import Float, Int, Tensor, relay

T = TypeVar("T")


@dataclass(frozen=True)
class Leaf(Generic[T]):
    """A value."""

    value: T


@dataclass(frozen=True)
class Node(Generic[T]):
    """Two trees."""

    left: Tree[T]
    right: Tree[T]


Tree = Leaf[T] | Node[T]


@relay
def of_integers(tree: Tree[Int]) -> Int:
    """Return whether the root is a leaf, as a number."""
    return 1 if isinstance(tree, Leaf) else 0


@relay
def of_floats(tree: Tree[Float]) -> Int:
    """Return whether the root is a leaf, as a number."""
    return 1 if isinstance(tree, Leaf) else 0


@relay
def of_texts(tree: Tree[str]) -> Int:
    """Return whether the root is a leaf, as a number."""
    return 1 if isinstance(tree, Leaf) else 0


@relay
def of_vectors(tree: Tree[Tensor[Float, (4,)]]) -> Int:
    """Return whether the root is a leaf, as a number."""
    return 1 if isinstance(tree, Leaf) else 0


@relay
def of_lists(tree: Tree[list[Float]]) -> Int:
    """Return whether the root is a leaf, as a number."""
    return 1 if isinstance(tree, Leaf) else 0


@relay
def of_trees(trees: list[Tree[Float]]) -> Int:
    """Return the number of trees."""
    return len(trees)


@relay
def of_integer_list(values: list[Int]) -> Int:
    """Return the number of elements."""
    return len(values)


@relay
def of_float_list(values: list[Float]) -> Int:
    """Return the number of elements."""
    return len(values)


@relay
def of_tensor(x: Tensor[Float, (4,)]) -> Int:
    """Return the number of elements, without data, for comparison."""
    return x.shape[0]


def tree_of(leaf: Callable[[], Any], depth: int) -> Any:
    """Return a full tree of new leaves."""
    level: list[Any] = [Leaf(leaf()) for _ in range(2**depth)]
    while len(level) > 1:
        level = [Node(a, b) for a, b in zip(level[::2], level[1::2], strict=True)]
    return level[0]


def trees_of(depth: int) -> list[Any]:
    """Return new trees of eight floats that have as many leaves as one of a depth."""
    return [tree_of(lambda: 0.5, min(depth, 3)) for _ in range(2 ** max(depth - 3, 0))]


def cases() -> Iterator[tuple[str, Any, Callable[[int], Any], int]]:
    """Return the name of each kind of leaf, a function, what makes an argument of a depth, and the
    number of its nodes for each leaf."""
    number = count()
    leaves: tuple[tuple[str, Any, Callable[[], Any]], ...] = (
        ("integers", of_integers, lambda: next(number)),
        ("texts", of_texts, lambda: "word"),
        ("floats", of_floats, lambda: next(number) + 0.5),
        ("tensors of rank 0", of_floats, lambda: torch.tensor(1.0)),
        ("tensors of a fixed size", of_vectors, lambda: torch.ones(4)),
        ("lists of two floats", of_lists, lambda: [1.0, 2.0]),
    )
    for name, function, leaf in leaves:
        nodes = 4 if function is of_lists else 2
        yield f"tree of {name}", function, lambda depth, leaf=leaf: tree_of(leaf, depth), nodes
    yield "list of trees", of_trees, trees_of, 2
    yield (
        "list of integers",
        of_integer_list,
        lambda depth: [next(number) for _ in range(2**depth)],
        1,
    )
    yield "list of floats", of_float_list, lambda depth: [0.5 + n for n in range(2**depth)], 1


def seconds_of(function: Any, value: Any) -> float:
    """Return the time of one call."""
    begin = time.perf_counter()
    function(value)
    return time.perf_counter() - begin


def main() -> None:
    """Print microseconds for each kind of leaf."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=25)
    parser.add_argument("--depths", type=int, nargs="*", default=[4, 10])
    options = parser.parse_args()
    vector = torch.ones(4)
    plain = [seconds_of(of_tensor, vector) for _ in range(1000)]
    print(f"a call with one tensor {1e6 * median(plain):.1f} us")
    for name, function, make, each in cases():
        one = make(0)
        function(one)
        small = 1e6 * median(seconds_of(function, one) for _ in range(1000))
        new = 1e6 * median(seconds_of(function, make(0)) for _ in range(1000))
        print(f"{name}: one leaf {small:.1f} us, a new one {new:.1f} us")
        for depth in options.depths:
            nodes = each * 2**depth
            first: list[float] = []
            again: list[float] = []
            for _ in range(options.rounds):
                value = make(depth)
                first.append(1e6 * seconds_of(function, value))
                again.append(1e6 * seconds_of(function, value))
            print(
                f"    {nodes:5} nodes: first {(median(first) - small) / nodes:5.2f} us a node, "
                f"again {(median(again) - small) / nodes:5.2f} us"
            )


if __name__ == "__main__":
    main()
