"""Folding computes what is known, and only by laws that hold for every value."""

from __future__ import annotations

import math

import pytest
import torch

from pyrelay.ir.expr import Constant, TensorData
from pyrelay.ir.module import Module
from pyrelay.ir.verify import Stage, verify
from pyrelay.passes.simplify.fold import fold
from tests.unit.passes.programs import body_of, end_of, evaluate, folding, normal


def folded(text: str) -> Module:
    module = fold(normal(text), folding)
    verify(module, Stage.ANF)
    assert fold(module, folding) is module, "once is enough"
    return module


def folded_expr(expr: str, params: str = "%x: Tensor[(2, 3), float32], %b: bool") -> str:
    """Return the body that is left of a function that gives an expression."""
    return body_of(folded(f"def @main({params}) {{ {expr} }}"))


def given(expr: str, params: str = "%x: Tensor[(2, 3), float32], %b: bool") -> str:
    """Return what a function that gives an expression gives after folding."""
    return folded_expr(expr, params).splitlines()[-1]


@pytest.mark.parametrize(
    ("expr", "expected"),
    [
        ("1.5 + 2.0 * 4.0", 9.5),
        ("exp(0.0)", 1.0),
        ("floor_divide(-7, 2)", -4),
        ("mod(-7, 3)", 2),
        ("3 < 4", True),
        ("1.0 / 0.0", math.inf),
        ("cast(3, dtype=float32)", 3.0),
        ("sum(tensor[(3,), float32][1.0, 2.0, 3.0])", 6.0),
        ("sum(cat((tensor[(2,), float32][1.0, 2.0], tensor[(1,), float32][4.0]), dim=0))", 7.0),
    ],
)
def test_operators_on_constants_are_evaluated(expr: str, expected: float) -> None:
    end = end_of(folded(f"def @main() {{ {expr} }}"))
    assert isinstance(end, Constant)
    assert end.value == expected
    assert type(end.value) is type(expected)


def test_a_result_is_rounded_to_its_dtype() -> None:
    end = end_of(folded("def @main() { 0.1 + 0.2 }"))
    assert isinstance(end, Constant)
    assert end.value == float(torch.tensor(0.1) + torch.tensor(0.2))


def test_a_small_tensor_is_folded_and_a_large_one_is_not() -> None:
    four = "tensor[(4,), float32][1.0, 2.0, 3.0, 4.0]"
    small = folded(f"def @main() {{ reshape({four}, shape=(2, 2)) }}")
    end = end_of(small)
    assert isinstance(end, Constant)
    assert isinstance(end.value, TensorData)
    assert end.value.shape == (2, 2)
    assert torch.equal(evaluate(small, "main", ()), torch.tensor([[1.0, 2.0], [3.0, 4.0]]))
    large = "def @main() { expand(1.0, size=(1000, 1000)) }"
    assert "expand" in body_of(folded(large))


def test_what_fails_is_left_where_it_stands() -> None:
    assert "floor_divide" in folded_expr("if (%b) { floor_divide(1i64, 0i64) } else { 2i64 }")


def test_without_an_evaluator_operators_stay() -> None:
    module = normal("def @main() { exp(1.0) }")
    assert fold(module) is module


@pytest.mark.parametrize(
    "expr",
    [
        "%x * 1.0",
        "1.0 * %x",
        "%x / 1.0",
        "%x - 0.0",
        "%x + -0.0",
        "-0.0 + %x",
        "power(%x, 1.0)",
        "negative(negative(%x))",
        "cast(%x, dtype=float32)",
        "cast(cast(%x, dtype=float64), dtype=float32)",
        "reshape(%x, shape=(2, 3))",
        "reshape(reshape(%x, shape=(6,)), shape=(2, 3))",
        "expand(%x, size=(2, 3))",
        "sum_to(%x, size=(2, 3))",
        "transpose(%x, dim0=1, dim1=-1)",
        "transpose(transpose(%x, dim0=0, dim1=1), dim0=-1, dim1=0)",
        "permute(%x, dims=(0, -1))",
        "permute(permute(%x, dims=(1, 0)), dims=(1, 0))",
        "if (%b) { %x } else { %x }",
        "if (True) { %x } else { exp(%x) }",
        "(%x, %b).0",
        "match ((%x, 2)) { (%y, 1) => exp(%y), (%y, _) => %y }",
        "{ let %y = %x; let %z = %y; %z }",
    ],
)
def test_a_law_that_holds_is_applied(expr: str) -> None:
    assert given(expr) == "%x"


@pytest.mark.parametrize(
    "expr",
    [
        "%x + 0.0",
        "%x - -0.0",
        "%x * 0.0",
        "%x * 1.5",
        "1.0 / %x",
        "1.0 - %x",
        "power(1.0, %x)",
        "cast(cast(%x, dtype=float16), dtype=float32)",
        "cast(cast(%x, dtype=int64), dtype=float32)",
        "floor_divide(%x, 1.0)",
        "transpose(transpose(%x, dim0=0, dim1=1), dim0=0, dim1=0)",
        "sum_to(expand(%x, size=(5, 2, 3)), size=(2, 3))",
        "%x * expand(1.0, size=(4, 2, 3))",
        "print((%x,))",
    ],
)
def test_what_is_no_law_is_left(expr: str) -> None:
    assert given(expr) != "%x"


def test_integers_may_lose_a_zero() -> None:
    params = "%n: int64"
    for expr in ("%n + 0", "0 + %n", "%n - 0", "%n * 1", "floor_divide(%n, 1)"):
        assert given(expr, params) == "%n"
    assert given("0 - %n", params) != "%n"


def test_truth_values_lose_what_is_neutral() -> None:
    params = "%b: bool"
    for expr in (
        "logical_and(%b, True)",
        "logical_or(False, %b)",
        "logical_not(logical_not(%b))",
        "if (%b) { True } else { False }",
    ):
        assert given(expr, params) == "%b"
    assert folded_expr("logical_and(False, %b)", params) == "False"
    assert folded_expr("logical_or(%b, True)", params) == "True"


def test_a_condition_is_known_in_its_branches() -> None:
    inner = "if (%b) {{ {} }} else {{ {} }}"
    left = folded_expr(inner.format(inner.format("1.0", "2.0"), inner.format("3.0", "4.0")))
    assert left.split() == ["if", "(%b)", "{", "1.0f32", "}", "else", "{", "4.0f32", "}"]


LIST = "type List[a] { Nil, Cons(a, List[a]) }\n"


def test_a_known_constructor_decides_a_match() -> None:
    module = folded(
        LIST
        + """def @main(%x: float32) -> float32 {
          match (Cons(%x, Nil())) { Nil() => 0.0, Cons(_, Cons(%y, _)) => %y, Cons(%y, _) => %y }
        }"""
    )
    assert body_of(module).splitlines()[-1] == "%x"


def test_an_arm_knows_how_its_value_was_made() -> None:
    module = folded(
        LIST
        + """def @main(%xs: List[float32]) -> float32 {
          match (%xs) {
            Nil() => 0.0,
            Cons(%x, %rest) => match (%xs) { Nil() => 1.0, Cons(%y, _) => %y }
          }
        }"""
    )
    assert body_of(module).count("match") == 1


def test_a_guard_keeps_a_match_open() -> None:
    left = folded_expr("match (1) { 1 if %b => 1.0, 1 => 2.0, _ => 3.0 }")
    assert "match" in left
    assert "3.0" not in left


def test_a_guard_that_is_known_goes() -> None:
    left = folded_expr(
        "match (%n) { 1 if 1 < 2 => 1.0, 2 if 1 > 2 => 2.0, 3 => 3.0, _ => 4.0 }", "%n: int64"
    )
    assert " if " not in left
    assert "1.0" in left
    assert "2.0" not in left


def test_a_match_whose_only_guards_are_false_stays() -> None:
    left = folded_expr("match? (%n) { 1 if False => 1.0, _ if False => 2.0 }", "%n: int64")
    assert left.count(" if ") == 2


def test_floats_that_differ_may_be_equal_in_a_narrower_dtype() -> None:
    assert "match" in folded_expr("match (0.1) { 0.10000000001 => 1.0, _ => 2.0 }")
    assert "match" not in folded_expr("match (0.1) { 0.1 => 1.0, _ => 2.0 }")


def test_a_clause_that_cannot_match_goes() -> None:
    module = folded("""
        def @main(%x: float32, %n: int64) -> float32 {
          match ((1, %n)) { (2, _) => 0.0, (1, 5) => %x, (1, _) => 1.0, (_, _) => 2.0 }
        }
    """)
    text = body_of(module)
    assert "2.0" not in text
    assert "1.0" in text
    assert "0.0" not in text


def test_a_known_size_is_a_number() -> None:
    module = folded("""
        def @main(%x: Tensor[(2, 3), float32]) { dim_size(%x, dim=1) * dim_size(%x, dim=0) }
    """)
    end = end_of(module)
    assert isinstance(end, Constant)
    assert end.value == 6


def test_a_copy_that_shows_another_size_stays() -> None:
    module = normal("""
        def @id[N: Dim](%x: Tensor[(N,), float32]) { %x }
        def @main[A: Dim, B: Dim](%x: Tensor[(A,), float32], %y: Tensor[(B,), float32]) {
          let %z: Tensor[(B,), float32] = %x;
          %z + full(size=(B,), fill_value=1.0, dtype=float32)
        }
    """)
    made = fold(module, folding)
    verify(made, Stage.ANF)
    assert "let %z" in body_of(made)
