"""Values of users' classes: into programs, through them, and back."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import numpy as np
import pytest
import torch

from pyrelay import CheckError, Dim, Float, Int, RunError, Tensor, relay
from pyrelay.prelude.values import Present, some, some_value
from pyrelay.runtime.values.representation import maker

T = TypeVar("T")
K = TypeVar("K")
N, M = Dim("N"), Dim("M")


@dataclass(frozen=True)
class Leaf(Generic[T]):
    value: T


@dataclass(frozen=True)
class Node(Generic[T]):
    left: Tree[T]
    right: Tree[T]


Tree = Leaf[T] | Node[T]


@dataclass(frozen=True, slots=True)
class Cons:
    head: Float
    tail: Chain


@dataclass(frozen=True)
class Nil:
    pass


Chain = Cons | Nil


@dataclass(frozen=True)
class Everything:
    count: int
    rate: float
    flag: bool
    name: str
    pair: tuple[Int, Tensor[Float, (N, 2)]]
    tree: Tree[Int] | None = None
    number: int | None = None


@dataclass(frozen=True)
class Row:
    """A row of any length, with as many weights."""

    items: Tensor[Float, (M,)]
    weights: Tensor[Float, (M,)]
    rest: Row | None = None


@dataclass(frozen=True)
class Vector(Generic[K]):
    items: Tensor[Float, (K,)]


@relay
def same(t: Tree[Float]) -> Tree[Float]:
    return t


@relay
def same_everything(e: Everything, x: Tensor[Float, (N, 2)]) -> Everything:
    return e


@relay
def same_chain(c: Chain) -> Chain:
    return c


@relay
def longer(c: Chain, x: float) -> Chain:
    return Cons(x * 2, Cons(head=x, tail=c))


@relay
def same_row(r: Row) -> Row:
    return r


@relay
def same_vectors(a: Vector[K], b: Vector[K]) -> tuple[Vector[K], Vector[K]]:
    return b, a


@relay
def anything(t: Tree[T]) -> tuple[Tree[T], Tree[T]]:
    return Node(t, t), t


def tensor(value: Any) -> torch.Tensor:
    return torch.tensor(value)


def run(function: Any, *args: Any) -> Any:
    """Return the result, which compiled code and the evaluator agree on."""
    result = function(*args)
    assert repr(function.interpret(*args)) == repr(result)
    return result


def test_instances_go_in_and_come_back_as_instances() -> None:
    tree: Any = Node(Leaf(tensor(1.0)), Leaf(tensor(2.0)))
    found: Any = run(same, tree)
    assert type(found) is Node
    assert repr(found) == repr(tree)
    assert vars(found.left)["value"] is not vars(tree.left)["value"], "results are fresh storage"


def test_numbers_in_fields_become_what_the_field_is() -> None:
    tree: Any = Node(Leaf(1.5), Leaf(np.float32(2.5)))
    assert repr(run(same, tree)) == repr(Node(Leaf(tensor(1.5)), Leaf(tensor(2.5))))


def test_values_are_made_with_defaults_and_slots() -> None:
    found = run(longer, Nil(), 3.0)
    assert repr(found) == repr(Cons(tensor(6.0), Cons(tensor(3.0), Nil())))
    assert hash(found.tail.tail) == hash(Nil())


def test_every_type_of_field_passes() -> None:
    x = torch.ones(3, 2)
    given = Everything(3, 0.5, True, "a", (4, x), Leaf(7), 8)
    found = run(same_everything, given, x)
    assert type(found.count) is int
    assert type(found.rate) is float
    assert type(found.flag) is bool
    assert found.number == 8
    assert type(found.number) is int
    assert repr(found.tree) == repr(Leaf(tensor(7)))
    assert found.pair[1].equal(x)
    again = run(same_everything, Everything(1, 1.0, False, "", (tensor(1), x)), x)
    assert again.tree is None
    assert again.number is None


def test_a_deep_value_passes_without_recursion() -> None:
    chain: Chain = Nil()
    for number in range(20_000):
        chain = Cons(float(number), chain)
    found = same_chain(chain)
    assert isinstance(found, Cons)
    assert float(found.head) == 19_999
    assert same_chain.cache_info().misses == 1


def test_shared_parts_stay_shared() -> None:
    part = Leaf(tensor(1.0))
    tree: Any = Node(part, part)
    for _ in range(60):
        tree = Node(tree, tree)
    found: Any = same(tree)
    assert found.left is found.right
    assert found.left.left is found.left.right


def test_a_cycle_is_refused() -> None:
    node: Any = Node(Leaf(tensor(1.0)), Leaf(tensor(1.0)))
    object.__setattr__(node, "right", Node(node, Leaf(tensor(2.0))))
    with pytest.raises(RunError, match="contains itself"):
        same(node)


class Sub(Leaf[Any]):
    pass


@pytest.mark.parametrize(
    ("tree", "text"),
    [
        (Node(Leaf[Any](1.0), Leaf("x")), "got the str 'x' as `t.right.value`"),
        (Node(Leaf(1.0), 3), "got the int 3 as `t.right`"),
        (Node(Node(Leaf(True), Leaf(1.0)), Leaf(1.0)), "as `t.left.left.value`"),
        (Leaf(torch.ones(2)), "got Tensor[Float, (2,)] as `t.value`"),
        (Leaf(tensor(1.0).double()), "got Tensor[float64, ()] as `t.value`"),
        (Sub(1.0), "not an instance of a subclass"),
        (None, "got None as `t`"),
    ],
)
def test_what_does_not_fit_is_named_by_its_path(tree: Any, text: str) -> None:
    with pytest.raises(RunError) as caught:
        same(tree)
    assert text in str(caught.value)


def test_sizes_of_a_value_are_its_own_and_agree_within_it() -> None:
    rows = Row(torch.ones(3), torch.ones(3), Row(torch.ones(5), torch.ones(5)))
    assert run(same_row, rows).rest.items.shape == (5,)
    wrong = Row(torch.ones(3), torch.ones(3), Row(torch.ones(5), torch.ones(4)))
    with pytest.raises(RunError) as caught:
        same_row(wrong)
    text = str(caught.value)
    assert "dimension 0 of `r.rest.weights` is 4, not 5" in text
    assert "`M` is 5 because of `r.rest.items`" in text


def test_sizes_that_are_parameters_agree_across_values() -> None:
    a, b = run(same_vectors, Vector(torch.ones(2)), Vector(torch.zeros(2)))
    assert a.items.sum() + 2 == b.items.sum()
    with pytest.raises(RunError, match=r"dimension 0 of `b\.items` is 3, not 2"):
        same_vectors(Vector(torch.ones(2)), Vector(torch.ones(3)))


@pytest.mark.parametrize("value", [tensor(1.0), 3, "text", (1, tensor(2)), Leaf(True), None])
def test_a_polymorphic_function_takes_any_value(value: Any) -> None:
    both, one = run(anything, Leaf(value))
    assert repr(one.value) == repr(value)
    assert repr(both) == repr(Node(Leaf(value), Leaf(value)))


def test_one_compile_serves_all_shapes() -> None:
    random = np.random.default_rng(0)

    def tree(size: int) -> Tree[Any]:
        if size == 1:
            return Leaf(tensor(float(random.normal())))
        cut = int(random.integers(1, size))
        return Node(tree(cut), tree(size - cut))

    @relay
    def both(t: Tree[Float], u: Tree[Float]) -> Tree[Float]:
        return Node(u, t)

    for _ in range(200):
        both(tree(int(random.integers(1, 12))), tree(3))
    assert (both.cache_info().misses, both.cache_info().hits) == (1, 199)


def test_a_maker_makes_what_the_class_makes() -> None:
    assert maker(Leaf, ("value",))(3) == Leaf(3)
    assert maker(Cons, ("head", "tail"))(3, Nil()) == Cons(3, Nil())
    assert maker(Nil, ())() == Nil()


def test_an_optional_of_an_optional_is_told_apart() -> None:
    for value in (None, 3, some(None)):
        assert some_value(some(value)) is value
    assert some(3) == 3
    assert type(some(None)) is Present


def test_a_redefined_class_is_explained(monkeypatch: pytest.MonkeyPatch) -> None:
    old = Leaf(tensor(1.0))
    same(old)
    home = sys.modules[__name__]
    for name in ("Leaf", "Tree"):
        monkeypatch.setattr(home, name, vars(home)[name])  # so that they come back
    exec("@dataclass(frozen=True)\nclass Leaf(Generic[T]):\n    value: T", vars(home))
    with pytest.raises(CheckError, match="`Leaf` was defined anew"):
        same(old)
    exec("Tree = Leaf[T] | Node[T]", vars(home))
    new: Any = same(vars(home)["Leaf"](tensor(1.0)))
    assert type(new) is vars(home)["Leaf"]
    assert type(new) is not type(old)
    with pytest.raises(RunError, match="make the value again"):
        same(old)
