"""Rose trees and natural numbers of the prelude, in programs and between programs and scripts."""

from __future__ import annotations

import pytest
import torch

from pyrelay import Float, Int, prelude, relay
from pyrelay.prelude import List, Nat, Rose, Succ, Tree, Zero, tmap

DEEP = 20_000


@relay
def incremented(tree: Tree[Float]) -> Tree[Float]:
    return tmap(lambda x: x + 1, tree)


@relay
def squares(tree: Tree[Float]) -> Float:
    match tree:
        case Rose(value, children):
            return value * value + sum([squares(child) for child in children])


@relay
def measured(tree: Tree[Float]) -> Int:
    return prelude.size(tree)


def wide() -> Rose[float]:
    return Rose(1.0, [Rose(2.0, []), Rose(3.0, [Rose(4.0, [])])])


def values(tree: Rose[torch.Tensor]) -> list[float]:
    """Return the values of a tree, a tree before its children."""
    found: list[float] = []
    pending = [tree]
    while pending:
        here = pending.pop()
        found.append(float(here.value))
        pending += reversed(list(here.children))
    return found


def deep() -> Rose[float]:
    tree = Rose(0.0, [])
    for _ in range(DEEP):
        tree = Rose(1.0, [tree])
    return tree


def test_a_tree_is_mapped() -> None:
    for run in (incremented, incremented.interpret):
        found = run(wide())
        assert isinstance(found, Rose)
        assert isinstance(found.children, List)
        assert values(found) == [2.0, 3.0, 4.0, 5.0]


def test_the_size_of_a_root_with_three_trees_of_three() -> None:
    leaf = Rose(0.0, [])
    assert int(measured(Rose(0.0, [Rose(0.0, [leaf, leaf])] * 3))) == 10
    assert int(prelude.size(wide())) == 4


def test_gradients_are_trees() -> None:
    assert float(squares(wide())) == float(squares.interpret(wide())) == 30
    assert values(relay.grad(squares)(wide())) == [2.0, 4.0, 6.0, 8.0]

    @relay
    def mapped(tree: Tree[Float]) -> Float:
        return squares(tmap(relay.tanh, tree))

    x = torch.tensor([1.0, 2.0, 3.0, 4.0], requires_grad=True)
    (torch.tanh(x) ** 2).sum().backward()
    assert x.grad is not None
    torch.testing.assert_close(torch.tensor(values(relay.grad(mapped)(wide()))), x.grad)


def test_the_order_of_a_map_is_a_tree_before_its_children(
    capsys: pytest.CaptureFixture[str],
) -> None:
    @relay
    def shown(tree: Tree[Int]) -> Tree[Int]:
        def show(x: Int):
            print(x)  # noqa: T201
            return x

        return tmap(show, tree)

    shown(Rose(1, [Rose(2, [Rose(3, [])]), Rose(4, [])]))
    assert capsys.readouterr().out.split() == ["1", "2", "3", "4"]


def test_deep_trees_need_no_deep_stack() -> None:
    tree = deep()
    assert int(measured(tree)) == DEEP + 1
    assert float(squares(tree)) == DEEP
    found = incremented(tree)
    assert values(found)[:2] == [2.0, 2.0]
    gradient = relay.grad(squares)(tree)
    assert values(gradient)[:2] == [2.0, 2.0]


# Natural numbers.


@relay
def computed(n: Nat) -> tuple[Nat, Nat, Int]:
    return prelude.nat_double(n), prelude.nat_add(n, Succ(Zero())), prelude.nat_to(n)


@relay
def counted(n: Nat) -> Int:
    match n:
        case Zero():
            return 0
        case Succ(less):
            return 1 + counted(less)


def test_arithmetic_of_naturals() -> None:
    double, plus, number = computed(Succ(Zero()))
    assert int(double) == 2
    assert int(plus) == 2
    assert int(number) == 1
    assert isinstance(double, Succ)
    assert int(counted(prelude.nat_from(DEEP))) == DEEP
    assert int(prelude.nat_from(-3)) == 0


def test_lists_by_naturals() -> None:
    @relay
    def changed(xs: List[Int], n: Nat) -> tuple[Int, List[Int], Int]:
        twice = prelude.nat_iterate(lambda x: 2 * x, n)
        return prelude.nat_nth(xs, n), prelude.nat_update(xs, n, 9), twice(3)

    element, xs, power = changed([4, 5, 6], Succ(Succ(Zero())))
    assert int(element) == 6
    assert xs == [4, 5, 9]
    assert int(power) == 12
