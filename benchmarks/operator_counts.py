"""Operators that torch runs for derivatives of recursive programs, by the size of their data.

Counts the operators of a gradient, a tangent and a product with the Hessian, over those of the
value, for a list, a balanced tree, a comb (a tree as deep as it has nodes) and a loop that indexes
a vector, at 50 to 3,200 elements: these ratios stay the same as data grow. Counts those of the
value and of the gradient mapped over a batch of weights, too: they are as many for any batch.
Prints tables, and with `--plot FILE` draws them for the documentation.
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
BATCHES: Final = (1, 4, 16, 64, 256, 1024)
MAPPED_SIZE: Final = 50
"""The elements of the data that a batch shares."""


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


def mapped_runs(program: Program, batch: int) -> dict[str, Callable[[], Any]]:
    """Return the value and the gradient mapped over a batch of weights, as calls."""
    data, w = program.data(MAPPED_SIZE), torch.linspace(0.1, 0.9, batch, dtype=torch.float64)
    value = relay.vmap(program.function, in_axes=(None, 0))
    gradient = relay.vmap(relay.grad(program.function, wrt="w"), in_axes=(None, 0))
    return {"vmap": lambda: value(data, w), "vmap of gradient": lambda: gradient(data, w)}


def counts(given: dict[str, Callable[[], Any]]) -> dict[str, int]:
    """Return how many operators each call takes."""
    found: dict[str, int] = {}
    for name, run in given.items():
        for _ in range(3):  # compiles, and prepares direct calls
            run()
        with Count() as count:
            run()
        found[name] = count.operators
    return found


def plot(
    rows: dict[str, list[dict[str, int]]], mapped: dict[str, list[dict[str, int]]], path: Path
) -> None:
    """Draw the counts over that of the value, a panel for each program, above those by batch."""
    import matplotlib.pyplot as plt

    figure, panels = plt.subplots(2, len(rows), figsize=(12, 5.5), sharey="row")
    for above, below, name in zip(*panels, rows, strict=True):
        for derivative in ("hvp", "gradient", "jvp"):
            ratios = [c[derivative] / c["value"] for c in rows[name]]
            above.plot(SIZES, ratios, marker="o", markersize=3, label=derivative)
        above.set_title(name)
        above.set_xlabel("elements")
        for kind in ("vmap of gradient", "vmap"):
            numbers = [c[kind] for c in mapped[name]]
            below.plot(BATCHES, numbers, marker="o", markersize=3, label=kind)
        below.set_xlabel(f"batch, over {MAPPED_SIZE} elements")
        for panel in (above, below):
            panel.set_xscale("log")
            panel.set_ylim(bottom=0)
    for row, label in zip(panels, ("operators / those of the value", "operators"), strict=True):
        row[0].set_ylabel(label)
        row[-1].legend()
    figure.tight_layout()
    figure.savefig(path, metadata={"Date": None})


def main() -> None:
    """Count, print, draw."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--plot", type=Path)
    path = parser.parse_args().plot
    rows = {name: [counts(runs(p, size)) for size in SIZES] for name, p in PROGRAMS.items()}
    mapped = {n: [counts(mapped_runs(p, batch)) for batch in BATCHES] for n, p in PROGRAMS.items()}
    for name, found in rows.items():
        for size, count in zip(SIZES, found, strict=True):
            ratios = (f"{k} {v / count['value']:6.3f}" for k, v in count.items() if k != "value")
            print(f"{name:14} {size:5}  value {count['value']:6}  {'  '.join(ratios)}")
    for name, found in mapped.items():
        for batch, count in zip(BATCHES, found, strict=True):
            numbers = "  ".join(f"{k} {v:5}" for k, v in count.items())
            print(f"{name:14} batch {batch:5}  {numbers}")
    if path is not None:
        plot(rows, mapped, path)


if __name__ == "__main__":
    main()
