"""`tuple[T, ...]` is the type of lists, which scripts have as tuples."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import optree
import pytest
import torch

from pyrelay import CheckError, Dim, Float, Tensor, options, relay

N, M = Dim("N"), Dim("M")


@dataclass(frozen=True)
class Node:
    value: Float
    children: tuple[Node, ...]

    def total(self) -> Float:
        return self.value + sum(child.total() for child in self.children)


@relay
def total(node: Node) -> Float:
    return node.total()


@relay
def doubled(node: Node) -> Node:
    return Node(node.value * 2.0, tuple(doubled(child) for child in node.children))


@relay
def under(node: Node, x: Float) -> Node:
    return Node(x, (*node.children, Node(x * x, tuple()), node))  # noqa: C408


@relay
def joined(left: Node, right: Node) -> Node:
    return Node(0.0, (left, right))


@relay
def squares(xs: tuple[float, ...]) -> float:
    found = 0.0
    for place, x in enumerate(xs):
        found += x * x * place
    return found


@relay
def nested(xs: tuple[int, ...], rows: tuple[tuple[int, ...], ...]) -> tuple[tuple[int, ...], ...]:
    return (xs, *rows, (*xs[1:], 7, 8))


@relay
def added(xs: Sequence[Float]) -> Float:
    return sum(xs)


@relay
def of_written(x: Float, y: Float) -> tuple[Float, Float]:
    pair = (x, y)
    kept: Sequence[Float] = (x, 1.0)
    return added((x, 2.0 * x, 3)), added(pair) * added(kept)


@relay
def sums(xs: Sequence[Tensor[Float, (Any,)]]) -> list[Float]:
    return [x.sum() for x in xs]


@relay
def of_two(x: Tensor[Float, (N,)], y: Tensor[Float, (M,)]) -> list[Float]:
    return sums((x, y))


@relay
def optional(xs: tuple[Float, ...] | None) -> tuple[Float, ...] | None:
    return None if xs is None else (*xs, 1.0)


TREE: Any = Node(1.0, (Node(2.0, ()), Node(3.0, (Node(4.0, ()),))))


@pytest.mark.parametrize("lowering", ["evaluator", "torch", "c"])
def test_fields_that_are_tuples_go_in_and_come_out(lowering: str) -> None:
    with options(lowering=lowering):
        assert total(TREE) == TREE.total() == 10
        two: Any = optree.tree_map(lambda x: 2.0 * x, TREE)
        assert doubled(TREE) == two
        assert type(doubled(TREE).children) is tuple
        grown = under(TREE, 3.0)
        assert grown == Node(3.0, (*TREE.children, Node(9.0, ()), TREE))
        assert joined(TREE, two) == Node(0.0, (TREE, two))
        assert relay.grad(total)(TREE) == optree.tree_map(lambda _: 1.0, TREE)


@pytest.mark.parametrize("lowering", ["evaluator", "torch", "c"])
def test_results_and_gradients_are_tuples(lowering: str) -> None:
    with options(lowering=lowering):
        values: list[Any] = [(1.0, 2.0, 3.0), [1.0, 2.0, 3.0]]
        for given in values:
            assert squares(given) == 22.0
            assert relay.grad(squares)(given) == (0.0, 4.0, 12.0)
        assert squares(()) == 0.0
        assert nested((1, 2), ((3,), ())) == ((1, 2), (3,), (), (2, 7, 8))
        assert optional(None) is None
        assert optional((2.0,)) == (2.0, 1.0)


@pytest.mark.parametrize("lowering", ["evaluator", "torch", "c"])
def test_a_tuple_is_a_list_where_one_is_wanted(lowering: str) -> None:
    with options(lowering=lowering):
        assert added((1.0, 2.0)) == added([1.0, 2.0]) == 3
        assert of_written(2.0, 5.0) == (9.0, 21.0)
        assert of_two(torch.ones(2), torch.ones(3)).to_list() == [2, 3]
        assert sums((torch.ones(2), torch.ones(3))).to_list() == [2, 3]


def test_other_tuples_are_refused_by_name() -> None:
    @relay
    def mixed(x: Float) -> Float:
        return added((x, "a"))

    @relay
    def nothing() -> Float:
        return added(())

    with pytest.raises(CheckError, match=r"`added` takes list\[Float\] as `xs`"):
        mixed.check()
    with pytest.raises(CheckError, match=r"`added` takes list\[Float\] as `xs`") as caught:
        nothing.check()
    assert "an empty list is `[]`, and as a tuple `tuple()`" in str(caught.value)
    text = "def @f(%x: List[float32]) { 1 }\ndef @main() { @f((1f, 2f)) }"
    with pytest.raises(CheckError, match="takes List"):
        relay.parse(f'#[version = "0.0.5"]\n{text}')["main"].check()
