"""Walks see every child of every kind of node, in one order, at any depth."""

from __future__ import annotations

from typing import get_args

import pytest

from pyrelay.diagnostics.source import NOWHERE
from pyrelay.ir.expr import (
    Atom,
    Binding,
    BindPattern,
    Call,
    Clause,
    Composite,
    Constant,
    Constructor,
    Differentiation,
    Expr,
    Flavour,
    Function,
    GlobalVar,
    If,
    LetBlock,
    Match,
    RefCreate,
    RefRead,
    RefWrite,
    Rule,
    Transform,
    Tuple,
    TupleGet,
    Var,
    Wildcard,
)
from pyrelay.ir.traverse import children, free_vars, post_order, rebuild, refresh, rewrite, spine
from pyrelay.operators.primitive.arithmetic import negative

a, b, c, d = (Var(name, span=NOWHERE) for name in "abcd")
ANY = Wildcard(span=NOWHERE)

LEAVES: list[Expr] = [
    a,
    GlobalVar("f", span=NOWHERE),
    Constant(1, span=NOWHERE),
    Constructor("List", "Nil", span=NOWHERE),
    Tuple((), span=NOWHERE),
]
NODES: list[tuple[Expr, tuple[Expr, ...]]] = [
    (Call(a, (b, c), {"size": (1, d), "dim": 0}, span=NOWHERE), (a, b, c, d)),
    (Call(negative, (b,), span=NOWHERE), (b,)),
    (Tuple((a, b), span=NOWHERE), (a, b)),
    (TupleGet(a, 0, span=NOWHERE), (a,)),
    (LetBlock((Binding(a, b), Binding(c, d)), a, Flavour.PURE, span=NOWHERE), (b, d, a)),
    (If(a, b, c, span=NOWHERE), (a, b, c)),
    (Function((a,), b, span=NOWHERE), (b,)),
    (
        Match(a, (Clause(BindPattern(b, span=NOWHERE), c, d), Clause(ANY, a)), span=NOWHERE),
        (a, d, c, a),
    ),
    (RefCreate(a, span=NOWHERE), (a,)),
    (RefRead(a, span=NOWHERE), (a,)),
    (RefWrite(a, b, span=NOWHERE), (a, b)),
    (Transform(Rule.GRAD, a, Differentiation(), span=NOWHERE), (a,)),
]


def test_every_kind_of_expression_is_among_these() -> None:
    seen = {type(leaf) for leaf in LEAVES} | {type(node) for node, _ in NODES}
    assert seen == {*get_args(Atom), *get_args(Composite)}
    assert set(get_args(Expr)) == seen


@pytest.mark.parametrize("leaf", LEAVES)
def test_a_leaf_has_no_children(leaf: Expr) -> None:
    assert children(leaf) == ()
    assert rebuild(leaf, ()) is leaf


@pytest.mark.parametrize(("node", "inside"), NODES)
def test_a_node_is_rebuilt_around_children_in_the_order_in_which_they_are_given(
    node: Expr, inside: tuple[Expr, ...]
) -> None:
    assert children(node) == inside
    assert rebuild(node, inside) is node
    others = tuple(Constant(i, span=NOWHERE) for i in range(len(inside)))
    rebuilt = rebuild(node, others)
    assert type(rebuilt) is type(node)
    assert children(rebuilt) == others
    assert children(node) == inside


def nested(depth: int) -> Expr:
    """Return `-(-(... a))`."""
    expr: Expr = a
    for _ in range(depth):
        expr = Call(negative, (expr,), span=NOWHERE)
    return expr


def test_walks_go_to_any_depth() -> None:
    deep = nested(50_000)
    assert sum(1 for _ in post_order(deep)) == 50_001
    changed = rewrite(deep, lambda node: b if node is a else node)
    assert free_vars(changed) == (b,)
    assert rewrite(deep, lambda node: node) is deep


def test_a_refreshed_copy_binds_nothing_that_the_original_binds() -> None:
    block = LetBlock((Binding(b, a),), Tuple((a, b), span=NOWHERE), Flavour.PURE, span=NOWHERE)
    copy = refresh(Function((a,), block, span=NOWHERE))
    assert isinstance(copy, Function)
    (inner,), body = spine(copy.body)
    assert copy.params[0] is not a
    assert inner.bindings[0].var is not b
    assert children(body) == (copy.params[0], inner.bindings[0].var)
