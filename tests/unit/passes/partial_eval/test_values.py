"""What is known is computed; what is known in part is taken apart; the rest stays as it is."""

from __future__ import annotations

import pytest
import torch

from tests.unit.passes.partial_eval.residuals import LISTS, left, residual
from tests.unit.passes.programs import body_of

X = torch.tensor(1.5)
NATURALS = """
type Nat { Z, S(Nat) }
def @plus(%a: Nat, %b: Nat) -> Nat { match (%a) { Z => { %b }, S(%n) => { S(@plus(%n, %b)) } } }
def @minus(%a: Nat, %b: Nat) -> Nat {
  match (%a, %b) { (Z, _) => { %b }, (_, Z) => { %a }, (S(%m), S(%n)) => { @minus(%m, %n) } }
}
def @nat(%n: int64) -> Nat { if (equal(%n, 0i64)) { Z() } else { S(@nat(%n - 1i64)) } }
def @count(%n: Nat) -> int64 { match (%n) { Z => { 0i64 }, S(%m) => { 1i64 + @count(%m) } } }
"""


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("def @main(%x: float32) { (4.0f32, %x).1 }", "%x"),
        ("def @main() { let %d = 4.0f32; %d + %d }", "8.0f32"),
        ("def @main(%x: float32) { (fn (%d: float32) { %d + %d })(4.0f32) }", "8.0f32"),
        ("def @main() { match ((1, 1)) { (%a, %b) => { %a + %b } } }", "2size"),
        (NATURALS + "def @id(%n: Nat) -> Nat "
         "{ match (%n) { Z => { Z() }, S(%m) => { S(@id(%m)) } } }"
         " def @main() { @count(@id(@nat(3i64))) }", "3i64"),
        (NATURALS + "def @main() { @count(@minus(@nat(7i64), @nat(3i64))) }", "4i64"),
        (NATURALS + "def @main() { @count(@plus(@nat(3i64), @nat(3i64))) }", "6i64"),
        ("def @main() { @f(10i64) } def @f(%n: int64) -> int64 "
         "{ if (equal(%n, 0i64)) { 0i64 } else { %n + @f(%n - 1i64) } }", "55i64"),
        (LISTS + "def @main(%x: float32) { match (Cons(%x, Nil())) "
         "{ Cons(%h, _) => { %h }, Nil => { 0.0f32 } } }", "%x"),
        ('def @main() { if (same_text("a", "b")) { 1.0f32 } else { 2.0f32 } }', "2.0f32"),
    ],
)  # fmt: skip
def test_what_is_known_is_computed(text: str, expected: str) -> None:
    arguments = (X,) if "%x" in text.partition("@main")[2].partition(")")[0] else ()
    assert left(text, arguments) == expected


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("(fn (%a: float32) { %a + %y })(%x)", "add(%x, %y)"),
        ("(fn (%a: float32) { fn (%b: float32) { %a + %b } })(%y)(%x)", "add(%y, %x)"),
        ("(fn (%f: fn(float32) -> float32) { %f(%x) })(fn (%a: float32) { %a * %y })",
         "multiply(%x, %y)"),
        ("0.0f32 + %x", "add(0.0f32, %x)"),
        ("%x * 0.0f32", "multiply(%x, 0.0f32)"),
    ],
)  # fmt: skip
def test_functions_that_are_known_are_applied(expression: str, expected: str) -> None:
    body = left(f"def @main(%x: float32, %y: float32) {{ {expression} }}", (X, X))
    assert body.splitlines()[0].partition(" = ")[2] == f"{expected};"


@pytest.mark.parametrize("expression", ["0.0f32 + %x", "%x + 0.0f32", "%x - 0.0f32"])
def test_a_sum_with_zero_is_its_operand_under_fast_math(expression: str) -> None:
    text = f"def @main(%x: float32) {{ {expression} }}"
    assert left(text, (X,), fast_math=True) == "%x"


def test_a_match_is_left_on_the_unknown_part_alone() -> None:
    text = """
        type I { More(int64, I), End }
        def @main(%t: I) -> int64 {
          match (More(1i64, %t)) {
            More(2, _) => { 2i64 },
            More(%a, More(%b, _)) => { %a + %b },
            More(%a, End) => { %a },
            End => { 0i64 },
          }
        }
    """
    body = left(text)
    assert body.startswith("match (%t) {")
    assert "2i64" not in body
    assert "add(1i64, %b)" in body


def test_several_unknown_parts_are_matched_together() -> None:
    text = (
        LISTS
        + """
        def @main(%a: L, %b: L, %x: float32) -> float32 {
          match ((%a, %x, %b)) {
            (Nil, %y, _) => { %y },
            (_, _, Nil) => { 1.0f32 },
            (Cons(%p, _), _, Cons(%q, _)) => { %p - %q },
          }
        }
    """
    )
    assert "match (%parts)" in left(text)


def test_guards_that_are_known_are_decided() -> None:
    text = LISTS + (
        "def @main(%l: L, %x: float32) -> float32 { let %n = 3i64; match (%l) {"
        " Cons(%h, _) if (%n > 4i64) => { %h }, Cons(%h, _) if (%h > %x) => { %x },"
        " Cons(%h, _) if (%n > 2i64) => { %h + %x }, _ => { 0.0f32 } } }"
    )
    body = left(text)
    assert body.count("Cons") == 2, "the clause whose guard never holds is gone"
    assert body.count("greater(") == 1, "the guard that always holds is gone"


def test_a_branch_shows_what_its_condition_is() -> None:
    text = (
        "def @main(%b: bool, %x: float32) -> float32 "
        "{ if (%b) { if (%b) { %x } else { 1.0f32 } } else { if (%b) { 2.0f32 } else { 3.0f32 } } }"
    )
    body = left(text, (True, X), (False, X))
    assert " ".join(body.split()) == "if (%b) { %x } else { 3.0f32 }"


DATA = "type V { One(float32), Two(float32, float32) }\n"


def test_arms_that_give_one_constructor_are_joined_below_it() -> None:
    text = DATA + (
        "def @main(%b: bool, %x: float32) -> float32 {"
        " let %v = if (%b) { One(%x) } else { One(%x * 2.0f32) };"
        " let %y = match (%v) { One(%a) => { %a }, Two(_, %c) => { %c } }; %y + 1.0f32 }"
    )
    body = left(text, (True, X), (False, X))
    assert "One" not in body
    assert body.count("add(") == 1


def test_what_follows_arms_that_give_different_data_is_evaluated_in_each() -> None:
    text = DATA + (
        "def @main(%b: bool, %x: float32) -> float32 {"
        " let %v = if (%b) { One(%x) } else { Two(%x, %x * 2.0f32) };"
        " match (%v) { One(%a) => { %a }, Two(_, %c) => { %c } } }"
    )
    body = left(text, (True, X), (False, X))
    assert "One" not in body
    assert "match" not in body


def test_an_arm_that_fails_hides_nothing() -> None:
    text = DATA + (
        "def @main(%b: bool, %x: float32) -> float32 {"
        ' let %v = if (%b) { One(%x) } else { fail(message="no") };'
        " match (%v) { One(%a) => { %a }, Two(_, %c) => { %c } } }"
    )
    body = left(text, (True, X))
    assert "match" not in body
    assert "fail" in body


def test_large_tensors_are_not_made_constants() -> None:
    text = "def @main(%x: float32) { %x + sum(expand(2.0f32, size=(100, 100))) }"
    assert "expand" in body_of(residual(text, (X,)))


def test_sizes_of_known_data_take_the_place_of_those_that_functions_find() -> None:
    text = """
        def @twice[N: Dim](%f: fn(Tensor[(N,), float32]) -> Tensor[(N,), float32],
                           %x: Tensor[(N,), float32]) -> Tensor[(N,), float32] { %f(%f(%x)) }
        def @main[M: Dim](%x: Tensor[(M,), float32], %w: Tensor[(3, M), float32]) {
          @twice(fn (%a: Tensor[(M,), float32]) { %a + sum(%w, dim=(0,)) }, %x)
        }
    """
    body = left(text, (torch.ones(2), torch.ones(3, 2)))
    assert "(M,)" in body
    assert body.count("sum(") == 2
