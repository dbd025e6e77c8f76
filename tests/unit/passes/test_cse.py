"""Common subexpressions are computed once, where that is in scope and pure."""

from __future__ import annotations

import pytest

from pyrelay.ir.verify import Stage, verify
from pyrelay.passes.simplify.cse import share
from tests.unit.passes.programs import body_of, normal


def shared(text: str) -> str:
    module = share(normal(text))
    verify(module, Stage.ANF)
    assert share(module) is module, "once is enough"
    return body_of(module)


@pytest.mark.parametrize(
    "expr", ["sin(%x)", "sum(%x, dim=0)", "%x + 1.0", "(%x, %x).0", "@f(%x)", "Box(%x)"]
)
def test_an_equal_pure_value_is_computed_once(expr: str) -> None:
    text = shared(f"""
        type Box[a] {{ Box(a) }}
        def @f(%x: Tensor[(2, 3), float32]) {{ exp(%x) }}
        def @main(%x: Tensor[(2, 3), float32]) {{
          let %a = {expr}; let %b = {expr}; (%a, %b)
        }}
    """)
    assert "= (%a, %a)" in text


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("sin(%x)", "cos(%x)"),
        ("%x - %y", "%y - %x"),
        ("sum(%x, dim=0)", "sum(%x, dim=1)"),
        ("%x * 0.0", "%x * -0.0"),
        ("full(size=(2,), fill_value=1)", "full(size=(2,), fill_value=1.0)"),
        ("full(size=(2,), fill_value=0.0)", "full(size=(2,), fill_value=-0.0)"),
        ("cast(%x, dtype=float64)", "cast(%x, dtype=float16)"),
        ("ref(%x)", "ref(%x)"),
        ("ref_read(%r)", "ref_read(%r)"),
        ("fn () { %x }", "fn () { %x }"),
        ("@impure(%r)", "@impure(%r)"),
    ],
)
def test_values_that_differ_or_have_effects_are_kept(one: str, other: str) -> None:
    text = shared(f"""
        def @impure(%r: ref(float32)) {{ ref_read(%r) }}
        def @main(%x: Tensor[(3, 3), float32], %y: Tensor[(3, 3), float32], %r: ref(float32)) {{
          let %a = {one}; let %b = {other}; (%a, %b)
        }}
    """)
    assert "= (%a, %b)" in text


def test_a_value_in_front_of_a_branch_is_known_inside() -> None:
    text = shared("""
        def @main(%x: float32, %b: bool) {
          let %a = sin(%x);
          if (%b) { sin(%x) } else { let %f = fn () { sin(%x) }; %f() + %a }
        }
    """)
    assert text.count("sin(") == 1


def test_a_value_of_one_branch_is_unknown_in_the_other_and_after() -> None:
    text = shared("""
        def @main(%x: float32, %b: bool) {
          let %a = if (%b) { sin(%x) } else { sin(%x) + 1.0 };
          %a + sin(%x)
        }
    """)
    assert text.count("sin(") == 3


def test_equal_operands_make_equal_operations() -> None:
    text = shared("def @main(%x: float32) { exp(sin(%x)) + exp(sin(%x)) }")
    assert text.count("sin(") == text.count("exp(") == 1
    assert "add(%exp, %exp)" in text
