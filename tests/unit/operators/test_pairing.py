"""In which order the operands of an einsum are multiplied."""

from __future__ import annotations

from itertools import combinations
from math import prod

import torch
from hypothesis import given
from hypothesis import strategies as st

from pyrelay.ir.expr import Call
from pyrelay.ir.op import Op
from pyrelay.ir.traverse import post_order
from pyrelay.kernels.fusion.decompose import decompose
from pyrelay.operators.composite import einsum
from pyrelay.operators.composite.einsum import contract, left_labels, order_of
from pyrelay.runtime.compile.evaluator import evaluate
from tests.unit.kernels.kernels import module

SIZES = {"a": 2, "b": 30, "c": 3, "d": 50, "e": 5}


def cost(terms: list[str], result: str, order: einsum.Order) -> int:
    """Return how many products an order makes."""
    alive, total = dict(enumerate(terms)), 0
    for number, (i, j) in enumerate(order, len(terms)):
        one, two = alive.pop(i), alive.pop(j)
        total += prod(SIZES[c] for c in set(one + two))
        alive[number] = left_labels(one, two, result + "".join(alive.values()))
    assert len(alive) == 1
    return total


def orders(count: int) -> list[einsum.Order]:
    """Return all orders."""
    found: list[tuple[tuple[int, ...], einsum.Order]] = [(tuple(range(count)), ())]
    for number in range(count, 2 * count - 1):
        found = [
            ((*(i for i in alive if i not in pair), number), (*steps, pair))
            for alive, steps in found
            for pair in combinations(alive, 2)
        ]
    return [steps for _, steps in found]


LABELS = st.sets(st.sampled_from("abcde"), max_size=3).map(lambda s: "".join(sorted(s)))


@given(st.lists(LABELS, min_size=1, max_size=4), st.sets(st.sampled_from("abcde")))
def test_few_operands_are_multiplied_in_the_best_order(terms: list[str], wanted: set[str]) -> None:
    result = "".join(sorted(wanted & set("".join(terms))))
    found = cost(terms, result, order_of(terms, result, SIZES))
    assert found == min(cost(terms, result, order) for order in orders(len(terms)))


def test_many_operands_are_multiplied_greedily() -> None:
    terms = ["ab", "bc", "cd", "de", "ea", "ab", "bc", "cd"]
    order = order_of(terms, "", SIZES)
    assert len(order) == len(terms) - 1
    last = len(terms) - 1
    left_to_right = ((0, 1), *((last + i, i + 1) for i in range(1, last)))
    assert cost(terms, "", order) < cost(terms, "", left_to_right)


def test_a_chain_of_matrices_is_multiplied_from_its_narrow_end() -> None:
    before = module(
        "def @main[N: Dim](%a: Tensor[(N, 40), float32], %b: Tensor[(40, 30), float32],"
        " %c: Tensor[(30, 2), float32]) { let %t = (%a, %b, %c);"
        ' einsum(%t, equation="ij,jk,kl->il") }'
    )
    written = decompose(before, "main")
    calls = [n for n in post_order(written.functions["main"].body) if isinstance(n, Call)]
    equations = [c.attrs["equation"] for c in calls if c.callee is contract]
    assert equations == ["jk,kl->jl", "ij,jl->il"]
    assert all(isinstance(c.callee, Op) and c.callee.name != "einsum" for c in calls)
    args = [torch.randn(3, 40), torch.randn(40, 30), torch.randn(30, 2)]
    torch.testing.assert_close(evaluate(written, "main", args), evaluate(before, "main", args))
