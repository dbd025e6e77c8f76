"""Operators that torch runs for derivatives of recursive programs, by the size of their data.

Counts the operators of a gradient, a tangent and a product with the Hessian, over those of the
value, for a list, a balanced tree, a comb (a tree as deep as it has nodes) and a loop that indexes
a vector, at 50 to 3,200 elements: these ratios stay the same as data grow. Prints a table, and with
`--plot FILE` draws it for the documentation.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, final

if __name__ == "__main__":
    os.environ["PYRELAY_LOWERING"] = "torch"  # whose operators are counted

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from pyrelay import Dim, Tensor, float64, relay

N = Dim("N")
SIZES: Final = (50, 100, 200, 400, 800, 1600, 3200)


@dataclass(frozen=True)
class Leaf:
    """A leaf of a tree."""

    value: float64


@dataclass(frozen=True)
class Node:
    """An inner node."""

    left: Tree
    right: Tree


Tree = Leaf | Node


@relay
def over_list(xs: list[float64], w: float64) -> float64:
    """Return a recurrence over a list."""
    state = w
    for x in xs:
        state = relay.tanh(state * w + x)
    return state


@relay
def over_tree(tree: Tree, w: float64) -> float64:
    """Return a fold of a tree."""
    match tree:
        case Leaf(value):
            return relay.tanh(value * w)
        case Node(left, right):
            return relay.tanh(over_tree(left, w) * w + over_tree(right, w))


@relay
def over_indices(xs: Tensor[float64, (N,)], w: float64) -> float64:
    """Return a recurrence over the elements of a vector, by their indices."""
    state = w
    for i in range(len(xs)):
        state = relay.tanh(state * w + xs[i] * xs[i])
    return state


def number(index: int) -> torch.Tensor:
    """Return an element of the data."""
    return torch.tensor(0.1 + index % 7 / 10.0, dtype=torch.float64)


def balanced(size: int, start: int = 0) -> Tree:
    """Return a tree of as many leaves whose halves differ by at most one."""
    if size == 1:
        return Leaf(number(start))
    half = size // 2
    return Node(balanced(half, start), balanced(size - half, start + half))


def comb(size: int) -> Tree:
    """Return a tree of as many leaves, each inner node the right part of the one above."""
    found: Tree = Leaf(number(0))
    for index in range(1, size):
        found = Node(Leaf(number(index)), found)
    return found


@final
@dataclass(frozen=True)
class Program:
    """A function of data and a weight, and the data of a size."""

    function: Any
    data: Callable[[int], Any]


PROGRAMS: Final = {
    "list": Program(over_list, lambda n: [number(i) for i in range(n)]),
    "tree": Program(over_tree, balanced),
    "comb": Program(over_tree, comb),
    "indexing loop": Program(over_indices, lambda n: torch.stack([number(i) for i in range(n)])),
}
"""The programs, by name."""


class Count(TorchDispatchMode):
    """Counts the operators that torch runs."""

    def __init__(self) -> None:
        super().__init__()
        self.operators = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.operators += 1
        return func(*args, **(kwargs or {}))


def runs(program: Program, size: int) -> dict[str, Callable[[], Any]]:
    """Return the value and each derivative, in the data and the weight, as calls."""
    f, data = program.function, program.data(size)
    w, one = torch.tensor(0.7, dtype=torch.float64), torch.ones((), dtype=torch.float64)
    at, along = (data, w), (data, one)
    gradient, push, product = relay.grad(f), relay.jvp(f), relay.hvp(f)
    return {
        "value": lambda: f(*at),
        "gradient": lambda: gradient(*at),
        "jvp": lambda: push(at, along),
        "hvp": lambda: product(at, along),
    }


def counts(program: Program, size: int) -> dict[str, int]:
    """Return how many operators the value and each derivative take."""
    found: dict[str, int] = {}
    for name, run in runs(program, size).items():
        run()  # compiles
        with Count() as count:
            run()
        found[name] = count.operators
    return found


def plot(rows: dict[str, list[dict[str, int]]], path: Path) -> None:
    """Draw the counts over that of the value, a panel for each program."""
    import matplotlib.pyplot as plt

    figure, panels = plt.subplots(1, len(rows), figsize=(12, 3), sharey=True)
    for panel, (name, found) in zip(panels, rows.items(), strict=True):
        for derivative in ("hvp", "gradient", "jvp"):
            ratios = [c[derivative] / c["value"] for c in found]
            panel.plot(SIZES, ratios, marker="o", markersize=3, label=derivative)
        panel.set_title(name)
        panel.set_xscale("log")
        panel.set_xlabel("elements")
        panel.set_ylim(bottom=0)
    panels[0].set_ylabel("operators / those of the value")
    panels[-1].legend()
    figure.tight_layout()
    figure.savefig(path, metadata={"Date": None})


def main() -> None:
    """Count, print, draw."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--plot", type=Path)
    path = parser.parse_args().plot
    rows = {name: [counts(p, size) for size in SIZES] for name, p in PROGRAMS.items()}
    for name, found in rows.items():
        for size, count in zip(SIZES, found, strict=True):
            ratios = (f"{k} {v / count['value']:6.3f}" for k, v in count.items() if k != "value")
            print(f"{name:14} {size:5}  value {count['value']:6}  {'  '.join(ratios)}")
    if path is not None:
        plot(rows, path)


if __name__ == "__main__":
    main()
