"""Loops over rows of tensors, lists and zips: values, gradients, and what is left in a round."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any, Final, NamedTuple

import pytest
import torch

from pyrelay import Dim, Float, Int, Tensor, relay
from pyrelay.analysis.call_graph import call_graph
from pyrelay.ir.expr import Call
from pyrelay.ir.module import Module
from pyrelay.ir.normal_form import to_anf
from pyrelay.ir.op import Op
from pyrelay.ir.traverse import post_order
from pyrelay.ir.verify import Stage, verify
from pyrelay.passes.closures import first_order
from pyrelay.passes.rewrites.hoist import hoist
from pyrelay.passes.simplify.simplify import simplify

N, T, U, D = Dim("N"), Dim("T"), Dim("U"), Dim("D")


@relay
def of_rows(w: Tensor[Float, (2, 3)], xs: Tensor[Float, (T, 3)]) -> Float:
    h = relay.zeros((2,))
    for x in xs:
        h = relay.tanh(w @ relay.sin(x * 2.0) + h)
    return h.sum()


@relay
def pointwise(w: Tensor[Float, (D,)], xs: Tensor[Float, (T, D)]) -> Float:
    h = relay.zeros((w.shape[0],))
    for x in xs:
        h = relay.tanh(relay.softmax(relay.exp(x) * w, dim=0) + h)
    return h.sum()


@relay
def backwards(w: Tensor[Float, (2, 3)], xs: Tensor[Float, (T, 3)]) -> Float:
    h = relay.zeros((2,))
    for i, x in enumerate(reversed(xs)):
        h = relay.tanh(relay.linear(relay.cos(x), w) + h * i)
    return h.sum()


@relay
def zipped(w: Tensor[Float, (2, 3)], xs: Tensor[Float, (T, 3)], ys: Tensor[Float, (U, 2)]) -> Float:
    h = relay.zeros((2,))
    for x, y in zip(xs, ys):  # noqa: B905
        h = relay.tanh(relay.linear(x, w) * relay.exp(y) + h)
    return h.sum()


@relay
def listed(w: Tensor[Float, (2, 3)], xs: list[Tensor[Float, (3,)]]) -> Float:
    h = relay.zeros((2,))
    for x in xs:
        h = relay.tanh(w @ relay.sin(x) + h)
    return h.sum()


@relay
def listed_with_rows(
    w: Tensor[Float, (2, 3)], xs: list[Tensor[Float, (3,)]], ys: Tensor[Float, (T, 3)]
) -> Float:
    h = relay.zeros((2,))
    for x, y in zip(xs, ys):  # noqa: B905
        h = relay.tanh(w @ relay.sin(x) + w @ y + h)
    return h.sum()


@relay
def left_early(w: Tensor[Float, (2, 3)], xs: Tensor[Float, (T, 3)]) -> Float:
    h = relay.zeros((2,))
    for x in xs:
        if h.sum() > 1.5:
            break
        h = relay.tanh(w @ relay.sin(x) + h)
    return h.sum()


@relay
def unchanging(w: Tensor[Float, (2, 2)], n: int) -> Float:
    h = relay.ones((2,))
    for _ in range(n):
        h = relay.tanh(relay.exp(w).T @ h)
    return h.sum()


@relay
def nested(w: Tensor[Float, (2, 3)], xs: Tensor[Float, (T, 4, 3)]) -> Float:
    h = relay.zeros((2,))
    for rows in xs:
        for x in rows:
            h = relay.tanh(relay.linear(relay.sin(x), w) + h)
    return h.sum()


@relay
def sizes_of_rows(xs: Tensor[Float, (T, 3)], n: int) -> Float:
    total = relay.zeros((3,))
    for i in range(n):
        total = total + relay.tanh(relay.exp(relay.sin(xs[i])))
    return total.sum()


class Case(NamedTuple):
    """A loop, its arguments for a number of rounds, and the operators that leave its rounds."""

    function: Any
    arguments: Callable[[int], tuple[Any, ...]]
    moved: frozenset[str]
    wrt: tuple[str, ...] = ("w",)
    stays: frozenset[str] = frozenset()


def weight() -> torch.Tensor:
    return torch.randn(2, 3)


def rows(count: int, *, size: int = 3) -> torch.Tensor:
    return torch.randn(count, size)


CASES: Final = {
    "rows": Case(of_rows, lambda n: (weight(), rows(n)), frozenset({"sin", "matmul"}), ("w", "xs")),
    "pointwise": Case(
        pointwise, lambda n: (torch.randn(3), rows(n)), frozenset({"exp", "softmax"}), ("w", "xs")
    ),
    "backwards": Case(backwards, lambda n: (weight(), rows(n)), frozenset({"cos", "linear"})),
    "zip": Case(
        zipped,
        lambda n: (weight(), rows(n), rows(n + 2, size=2)),
        frozenset({"linear", "exp"}),
        ("w", "ys"),
    ),
    "list": Case(listed, lambda n: (weight(), list(rows(n))), frozenset({"sin", "matmul"})),
    "list and rows": Case(
        listed_with_rows,
        lambda n: (weight(), list(rows(n + 1)), rows(n)),
        frozenset({"sin", "matmul"}),
    ),
    "left early": Case(left_early, lambda n: (weight(), rows(n)), frozenset({"sin", "matmul"})),
    "unchanging": Case(unchanging, lambda n: (torch.randn(2, 2), n), frozenset({"exp", "permute"})),
    "nested": Case(
        nested, lambda n: (weight(), torch.randn(n, 4, 3)), frozenset({"sin", "linear"})
    ),
    "other rows": Case(
        sizes_of_rows,
        lambda n: (rows(n + 1), n),
        frozenset(),
        ("xs",),
        frozenset({"sin", "exp", "tanh"}),
    ),
}


def globals_of(function: Any, *, is_hoisted: bool) -> tuple[Module, str]:
    """Return a program as global functions, simplified, with its loops hoisted or not."""
    name = function.__name__
    module = simplify(to_anf(function.module), name)
    module = simplify(first_order(module, name), name)
    if is_hoisted:
        module = simplify(hoist(module, name), name)
        verify(module, Stage.DERIVED)
    return module, name


def in_rounds(module: Module) -> Counter[str]:
    """Return the operators in functions that call themselves."""
    graph = call_graph(module)
    nodes = (n for name in graph.recursive for n in post_order(module.functions[name].body))
    return Counter(n.callee.name for n in nodes if isinstance(n, Call) and isinstance(n.callee, Op))


@pytest.mark.parametrize("label", CASES)
def test_rounds_do_less(label: str) -> None:
    case = CASES[label]
    before = in_rounds(globals_of(case.function, is_hoisted=False)[0])
    after = in_rounds(globals_of(case.function, is_hoisted=True)[0])
    assert case.moved | case.stays <= set(before)
    assert case.moved.isdisjoint(after)
    assert case.stays <= set(after)
    assert after.total() <= before.total()


@pytest.mark.parametrize("label", CASES)
def test_values_and_gradients_stay(label: str) -> None:
    case = CASES[label]
    gradient = relay.grad(case.function, wrt=case.wrt)
    for count in (0, 1, 4):
        args = case.arguments(count)
        torch.testing.assert_close(case.function(*args), case.function.interpret(*args))
        torch.testing.assert_close(gradient(*args), gradient.interpret(*args))


@pytest.mark.parametrize("label", [name for name, case in CASES.items() if case.moved])
def test_loops_that_are_local_functions(label: str) -> None:
    case = CASES[label]
    name = case.function.__name__
    module = simplify(to_anf(case.function.module), name)
    after = simplify(hoist(module, name), name)
    verify(after, Stage.ANF)
    inside = in_rounds(simplify(first_order(after, name), name))
    assert case.moved.isdisjoint(inside)


def test_what_fails_stays_where_it_may_not_run() -> None:
    @relay
    def words(
        table: Tensor[Float, (5, 2)], ns: Tensor[Int, (T,)], least: float
    ) -> Tensor[Float, (2,)]:
        total = relay.zeros((2,))
        for n in ns:
            if total.sum() > least:
                break
            total = relay.exp(relay.tanh(total + relay.embedding(n, table)))
        return total

    args = (torch.ones(5, 2), torch.tensor([1, 99]), 0.0)
    torch.testing.assert_close(words(*args), torch.ones(2).tanh().exp())

    @relay
    def printed(table: Tensor[Float, (5, 2)], ns: Tensor[Int, (T,)]) -> Float:
        total = 0.0
        for n in ns:
            print("one")  # noqa: T201
            total += relay.embedding(n, table).sum()
        return total

    for function in (words, printed):
        module = globals_of(function, is_hoisted=True)[0]
        assert "embedding" in in_rounds(module)


def test_rows_as_large_as_all_of_them_together_stay() -> None:
    @relay
    def outer(xs: Tensor[Float, (T, 40)], w: Tensor[Float, (40, 40)]) -> Float:
        total = 0.0
        for x in xs:
            total += relay.tanh(relay.exp(x[:, None] * w)).sum() * total
        return total

    assert {"exp", "multiply"} <= set(in_rounds(globals_of(outer, is_hoisted=True)[0]))


def test_integers_that_may_overflow_stay() -> None:
    @relay
    def sums(ns: Tensor[Int, (T,)], most: int) -> int:
        total = 0
        for n in ns:
            if int(n) > most:
                break
            total += int(n) * int(n) * int(n)
        return total

    assert sums(torch.tensor([2, 3, 2**62]), 10) == 35
