"""Calls: unfolded where known values decide, specialised where they do not, always to an end."""

from __future__ import annotations

import pytest
import torch

from pyrelay.passes.partial_eval import partially_evaluated
from pyrelay.passes.partial_eval.limits import MAX_VARIANTS
from pyrelay.text.printer import to_text
from tests.unit.passes.partial_eval.residuals import LISTS, derived, left, residual
from tests.unit.passes.programs import body_of, folding

X = torch.tensor(1.5)
POWER = """
def @power(%x: float32, %n: int64) -> float32 {
  if (equal(%n, 0i64)) { 1.0f32 } else {
    let %h = @power(%x, floor_divide(%n, 2i64));
    if (equal(mod(%n, 2i64), 0i64)) { %h * %h } else { %x * %h * %h }
  }
}
"""
PARITY = """
def @even(%n: int64, %x: float32) -> float32 {
  if (equal(%n, 0i64)) { %x } else { @odd(%n - 1i64, %x + 1.0f32) }
}
def @odd(%n: int64, %x: float32) -> float32 {
  if (equal(%n, 0i64)) { 0.0f32 } else { @even(%n - 1i64, %x * 2.0f32) }
}
"""
SUM_ABOVE = """
def @sum(%l: L, %x: float32) -> float32 {
  match (%l) {
    Nil => { 0.0f32 },
    Cons(%h, %t) => { if (%x > %h) { %h + @sum(%t, %x) } else { @sum(%t, %x) } },
  }
}
"""
MAP = """
def @map(%f: fn(float32) -> float32, %l: L) -> L {
  match (%l) { Nil => { Nil() }, Cons(%h, %t) => { Cons(%f(%h), @map(%f, %t)) } }
}
"""


def displayed(count: int) -> str:
    """Return a list of numbers as an expression."""
    return "".join(f"Cons({i}.0f32, " for i in range(count)) + "Nil()" + ")" * count


def test_a_power_takes_as_many_products_as_its_exponent_has_digits() -> None:
    body = left(POWER + "def @main(%x: float32) { @power(%x, 13i64) }", (X,))
    assert body.count("multiply(") == 5
    assert "if" not in body


def test_an_unknown_exponent_leaves_the_recursion() -> None:
    made = residual(POWER + "def @main(%x: float32, %n: int64) { @power(%x, %n) }", (X, 5))
    assert set(made.functions) == {"main", "power"}


@pytest.mark.parametrize("start", ["1i64, 2i64", "%n, 2i64", "%n, %n"])
def test_what_never_ends_stays_a_call(start: str) -> None:
    text = "def @loop(%a: int64, %b: int64) -> int64 { @loop(%b, %a) }\n"
    made = residual(text + f"def @main(%n: int64) {{ @loop({start}) }}")
    assert len(made.functions) <= 3


def test_a_counter_under_an_unknown_bound_is_no_constant() -> None:
    text = """
        def @count(%i: int64, %n: int64, %x: float32) -> float32 {
          if (%i < %n) { @count(%i + 1i64, %n, %x * 2.0f32) } else { %x }
        }
        def @main(%n: int64, %x: float32) { @count(0i64, %n, %x) }
    """
    made = residual(text, (3, X), (0, X))
    assert set(made.functions) == {"main", "count"}
    assert body_of(made) == "@count(0i64, %n, %x)"


def test_mutual_recursion_is_unfolded_for_a_number_and_left_for_an_unknown_one() -> None:
    text = PARITY + "def @main(%n: int64, %x: float32) { (@even(3i64, %x), @even(%n, %x)) }"
    made = residual(text, (2, X), (3, X))
    assert set(made.functions) == {"main", "even", "odd"}
    assert "@odd" not in body_of(made)


def test_arms_that_go_on_alike_share_a_function() -> None:
    text = LISTS + SUM_ABOVE + f"def @main(%x: float32) {{ @sum({displayed(24)}, %x) }}"
    made = residual(text, (X,))
    assert len(to_text(made).splitlines()) < 2_000, "not one arm for each of 2 ** 24 ways"
    assert "match" not in to_text(made)


def test_a_known_function_is_mapped_over_a_list_that_is_not() -> None:
    text = LISTS + MAP + "def @main(%l: L, %y: float32) { @map(fn (%x: float32) { %x + %y }, %l) }"
    made = residual(text)
    assert len(made.functions) == 2
    assert "Fn" not in to_text(made)


def test_a_known_function_is_mapped_over_a_known_list() -> None:
    mapped = f"@map(fn (%a: float32) {{ %a * %x }}, {displayed(3)})"
    body = left(LISTS + MAP + f"def @main(%x: float32) {{ {mapped} }}", (X,))
    assert body.count("multiply(") == 2, "one of the three numbers is 1"
    assert body.count("Cons(") == 3


def test_a_chain_of_compositions_is_straight_line() -> None:
    text = """
        def @twice(%f: fn(float32) -> float32) -> fn(float32) -> float32 {
          fn (%a: float32) { %f(%f(%a)) }
        }
        def @main(%x: float32) { @twice(@twice(fn (%a: float32) { %a * %a }))(%x) }
    """
    assert left(text, (X,)).count("multiply(") == 4


# Effects.


def test_effects_stay_in_order() -> None:
    text = """
        def @show(%n: int64, %x: float32) -> float32 {
          if (equal(%n, 0i64)) { %x } else {
            let %_ = check(%x > 0.0f32, message="no");
            @show(%n - 1i64, %x + 1.0f32)
          }
        }
        def @main(%x: float32) { @show(3i64, %x) }
    """
    body = left(text, (X,))
    assert body.count("check(") == 3
    assert body.index("check(") < body.index("add(")


def test_an_assertion_that_fails_stays_where_it_stands() -> None:
    text = (
        "def @main(%b: bool, %x: float32) -> float32 "
        '{ if (%b) { let %_ = check(False, message="no"); %x } else { 1.0f32 } }'
    )
    body = left(text, (False, X))
    assert body.index("check(False") > body.index("if (%b)")


def test_an_operator_that_fails_is_left_to_fail() -> None:
    text = "def @main(%b: bool) { if (%b) { floor_divide(1i64, 0i64) } else { 0i64 } }"
    assert "floor_divide(1i64, 0i64)" in left(text, (False,))


REFS = [
    "let %r = ref(%x); ref_write(%r, ref_read(%r) * ref_read(%r)); ref_read(%r)",
    "let %r = ref(%x); let %f = fn () { ref_write(%r, ref_read(%r) + %x); ref_read(%r) };"
    " %f() * %f()",
    "let %r = ref(%x); if (%b) { ref_write(%r, 2.0f32) } else { () }; ref_read(%r) + %x",
    "let %r = ref(1.0f32); let %s = ref(%x); let %t = if (%b) { %r } else { %s };"
    " ref_write(%t, 3.0f32); ref_read(%r) + ref_read(%s)",
    "let %r = ref(1.0f32); let %f = if (%b) { fn () { ref_write(%r, 5.0f32) } }"
    " else { fn () { () } }; %f(); ref_read(%r) + %x",
]


@pytest.mark.parametrize("body", REFS)
def test_a_reference_holds_what_was_written_last(body: str) -> None:
    residual(f"def @main(%b: bool, %x: float32) {{ {body} }}", (True, X), (False, X))


@pytest.mark.parametrize("body", REFS[:3])
def test_references_that_do_not_escape_are_gone(body: str) -> None:
    assert "ref" not in left(f"def @main(%b: bool, %x: float32) {{ {body} }}", (True, X))


def test_a_function_that_writes_makes_what_references_hold_unknown() -> None:
    text = """
        def @drain(%r: ref(float32), %n: int64) -> () {
          if (%n > 0i64) { ref_write(%r, ref_read(%r) * 2.0f32); @drain(%r, %n - 1i64) } else { () }
        }
        def @main(%x: float32, %n: int64) {
          let %r = ref(%x);
          let %before = ref_read(%r);
          let %_ = @drain(%r, %n);
          %before + ref_read(%r)
        }
    """
    residual(text, (X, 3), (X, 0))


# Limits.

ENDLESS = {
    "ackermann": "def @main() { @a(3i64, 6i64) } def @a(%m: int64, %n: int64) -> int64 {"
    " if (equal(%m, 0i64)) { %n + 1i64 } else { if (equal(%n, 0i64)) { @a(%m - 1i64, 1i64) }"
    " else { @a(%m - 1i64, @a(%m, %n - 1i64)) } } }",
    "doubling": "def @main(%x: float32) { @f(25i64, %x) } def @f(%n: int64, %x: float32) -> float32"
    " { if (%n < 2i64) { %x } else { @f(%n - 1i64, %x) + @f(%n - 2i64, %x) } }",
    "growing": LISTS + "def @main(%x: float32) { @f(Nil(), %x) }"
    " def @f(%l: L, %x: float32) -> float32 { @f(Cons(1.0f32, %l), %x) }",
    "growing under a branch": LISTS + "def @main(%x: float32) { @f(Nil(), %x) }"
    " def @f(%l: L, %x: float32) -> float32"
    " { if (%x > 0.0f32) { @f(Cons(%x, %l), %x - 1.0f32) } else { @f(%l, %x) } }",
    "wandering": "def @main(%x: float32) { @f(1i64, %x) } def @f(%n: int64, %x: float32) -> float32"
    " { if (%x > 0.0f32) { @f(%n * 3i64, %x) } else { @f(%n - 7i64, %x) } }",
    "many calls": "".join(
        f"def @f{i}(%x: float32) -> float32 {{ @f{i + 1}(%x) + @f{i + 1}(%x * 2.0f32) }} "
        for i in range(30)
    )
    + "def @f30(%x: float32) -> float32 { %x * %x } def @main(%x: float32) { @f0(%x) }",
    "many branches": "type T { A, B } def @main(%x: float32) { "
    + "".join(
        f"let %v{i} = if (%x > {i}.0f32) {{ A() }} else {{ B() }};"
        f" let %w{i} = match (%v{i}) {{ A => {{ 1.0f32 }}, B => {{ %x }} }}; "
        for i in range(40)
    )
    + " + ".join(f"%w{i}" for i in range(40))
    + " }",
}


@pytest.mark.parametrize("name", ENDLESS)
def test_a_residual_program_has_bounded_size(name: str) -> None:
    made = residual(ENDLESS[name])
    assert len(to_text(made).splitlines()) < 2_000
    assert len(made.functions) <= MAX_VARIANTS


def test_a_recursion_that_is_known_takes_each_call_once() -> None:
    text = (
        "def @f(%n: int64) -> int64 "
        "{ if (%n < 2i64) { %n } else { @f(%n - 1i64) + @f(%n - 2i64) } }"
    )
    assert left(text + " def @main() { @f(60i64) }") == "1548008755920i64"


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("count", [20_000])
def test_deep_data_are_walked(count: int) -> None:
    cells = "".join(f"let %l{i + 1} = Cons(%x, %l{i}); " for i in range(count))
    text = LISTS + f"def @main(%x: float32) {{ let %l0 = Nil(); {cells} @sum(%l{count}, %x) }}"
    module = derived(text + SUM_ABOVE)
    made = partially_evaluated(module, "main", folding)
    assert set(made.functions) == {"main", "sum"}
