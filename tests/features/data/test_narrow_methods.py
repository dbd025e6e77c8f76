"""Methods become functions of the module, follow their class, and are read from their own text."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

import pytest
import torch

from pyrelay import CheckError, Float, Int, relay
from pyrelay.prelude import map as mapped
from tests.loading import load_file


@dataclass(frozen=True)
class Leaf:
    value: Float

    def total(self, factor: Float = 1.0) -> Float:
        return self.value * factor

    def scaled(self, factor: Float) -> Tree:
        return Leaf(self.value * factor)


@dataclass(frozen=True)
class Node:
    left: Tree
    right: Tree

    def total(self, factor: Float = 1.0) -> Float:
        return self.left.total(factor) + self.right.total(factor)

    def scaled(self, by: Float) -> Tree:
        return Node(self.left.scaled(by), self.right.scaled(by))


Tree = Leaf | Node


@dataclass(frozen=True)
class Basket:
    items: list[Float]

    def total(self) -> Float:
        return sum(self.items)

    def held(self) -> list[Float]:
        return self.items

    def copy(self) -> list[Float]:
        return self.items

    def more(self, xs: list[Float]) -> list[Float]:
        return [*self.items, *xs]


TREE = Node(Leaf(1.0), Node(Leaf(2.0), Leaf(4.0)))


@relay
def total(tree: Tree) -> Float:
    return tree.total(2.0) + tree.scaled(3.0).total()


def test_methods_of_a_union_are_called_through_one_function() -> None:
    functions = total.module.functions
    assert {"Tree.total", "Leaf.total", "Node.total"} <= functions.keys()
    assert "Tree.scaled" not in functions  # its parameters have different names


def test_defaults_and_positions_are_those_of_each_method() -> None:
    assert float(total(TREE)) == TREE.total(2.0) + TREE.scaled(3.0).total()


@relay
def by_map(tree: Tree, xs: list[Float]) -> list[Float]:
    scaled = mapped(tree.scaled, xs)
    return [t.total() for t in scaled]


def test_a_method_without_its_call_is_a_function() -> None:
    assert [float(x) for x in by_map(Leaf(2.0), [1.0, 3.0])] == [2.0, 6.0]


@relay
def later_known(xs: list[Float]) -> Float:
    baskets = [Basket([x, 1.0]) for x in xs]
    trees = [Leaf(x) for x in xs]
    return sum(b.total() for b in baskets) * sum(t.total() for t in trees)


def test_inference_decides_which_class_is_meant() -> None:
    assert float(later_known([1.0, 2.0])) == 15.0


def test_a_method_that_is_replaced_is_compiled_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    @relay
    def run(basket: Basket) -> Float:
        return basket.total()

    assert float(run(Basket([1.0, 2.0]))) == 3.0
    monkeypatch.setattr(Basket, "total", _first)
    assert float(run(Basket([1.0, 2.0]))) == 1.0


def _first(self: Basket) -> Float:
    return self.items[0]


def test_a_method_of_a_local_class_sees_the_names_around() -> None:
    @dataclass(frozen=True)
    class Chain:
        value: Int
        rest: Chain | None

        def length(self) -> int:
            rest = self.rest
            return 1 if rest is None else 1 + rest.length()

    @relay
    def length(chain: Chain) -> int:
        return chain.length()

    assert length(Chain(1, Chain(2, Chain(3, None)))) == 3


def test_a_local_class_with_the_names_of_another_is_another() -> None:
    def made(factor: float) -> Callable[[float], torch.Tensor]:
        @dataclass(frozen=True)
        class Point:
            x: Float

            def far(self) -> Float:
                return self.x * factor

        @relay
        def far(x: Float) -> Float:
            return Point(x).far()

        return far

    assert [float(made(f)(3.0)) for f in (2.0, 5.0)] == [6.0, 15.0]


# Lists that methods share.


@relay
def shared(basket: Basket) -> int:
    xs = basket.held()
    xs.append(1.0)
    return len(basket.items)


@relay
def copied_in_name_only(basket: Basket) -> int:
    xs = basket.copy()
    xs.append(1.0)
    return len(basket.items)


@relay
def fresh(basket: Basket) -> int:
    xs = [1.0]
    ys = basket.more(xs)
    xs.append(2.0)
    ys.append(3.0)
    return len(xs) * 10 + len(ys)


def test_the_list_that_a_method_gives_back_is_not_changed() -> None:
    for function in (shared, copied_in_name_only):
        with pytest.raises(CheckError, match="may have an alias"):
            function(Basket([1.0]))


def test_a_new_list_that_a_method_makes_is_changed() -> None:
    assert fresh(Basket([1.0])) == 23


# Text.

PROGRAM = """
from __future__ import annotations

from dataclasses import dataclass

from pyrelay import Float, relay


@dataclass(frozen=True)
class Line:
    slope: Float

    def at(self, x: Float) -> Float:
        return self.slope * x

    def saved(self, path):
        with open(path, "w") as file:
            file.write(str(self))


@relay
def run(line: Line, x: Float) -> Float:
    return line.at(x)
"""


def loaded(path: Path, text: str) -> ModuleType:
    path.write_text(text, encoding="utf-8")
    return load_file(path)


def test_methods_that_compiled_code_does_not_call_may_be_any_python(tmp_path: Path) -> None:
    program = loaded(tmp_path / "any_python.py", PROGRAM)
    assert float(program.run(program.Line(2.0), 4.0)) == 8.0


def test_a_method_whose_text_has_changed_is_not_compiled(tmp_path: Path) -> None:
    program = loaded(tmp_path / "changed.py", PROGRAM)
    text = PROGRAM.replace("self.slope * x", "self.slope + x")
    (tmp_path / "changed.py").write_text(text, encoding="utf-8")
    with pytest.raises(CheckError, match="RL109"):
        program.run(program.Line(2.0), 4.0)
