"""Partial evaluation ends, with a residual program of bounded size, whatever calls itself how."""

from __future__ import annotations

from unittest.mock import patch

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pyrelay.ir.equality import alpha_equal
from pyrelay.ir.module import Module
from pyrelay.ir.traverse import post_order
from pyrelay.ir.verify import Stage, verify
from pyrelay.passes.partial_eval import limits, partially_evaluated
from tests.strategies import Draw
from tests.unit.passes.partial_eval.residuals import LISTS, derived
from tests.unit.passes.programs import folding

NAMES = ("f", "g", "h")
INTEGERS = (
    "%n",
    "%n + 1i64",
    "%n - 1i64",
    "%n * 2i64",
    "floor_divide(%n, 2i64)",
    "%m",
    "7i64",
    "0i64",
)
LISTED = ("%l", "%t", "Cons(%x, %l)", "Cons(1.0f32, %l)", "Cons(%x, Cons(2.0f32, Nil()))", "Nil()")
FUNCTIONS = (
    "%k",
    "fn (%a: float32) { %k(%k(%a)) }",
    "fn (%a: float32) { %a * %x }",
    "fn (%a: float32) { %a + 1.0f32 }",
)
TESTS = (
    "%n > 0i64",
    "%n < 3i64",
    "%x > 0.0f32",
    "%m > %n",
    "equal(mod(%n, 3i64), 1i64)",
    "%x < %k(%x)",
)
TAKEN = "%n: int64, %l: L, %k: fn(float32) -> float32, %x: float32, %m: int64"


@st.composite
def endless(draw: Draw) -> str:
    """Draw functions that call each other, with data, numbers and functions that grow."""
    names = NAMES[: draw(st.integers(1, 3))]

    def one(*options: str) -> str:
        return draw(st.sampled_from(options))

    def call() -> str:
        numbers, data, function = one(*INTEGERS), one(*LISTED), one(*FUNCTIONS)
        return f"@{one(*names)}({numbers}, {data}, {function}, {one('%x', '%x * 0.5f32')}, %m)"

    def body(depth: int) -> str:
        match draw(st.integers(0, 5 if depth else 2)):
            case 0:
                return one("%x", "%k(%x)", "%k(1.0f32)")
            case 1 | 2:
                return call()
            case 3:
                return f"if ({one(*TESTS)}) {{ {body(depth - 1)} }} else {{ {body(depth - 1)} }}"
            case 4:
                return f"{body(0)} + {body(0)}"
            case _:
                rest = f"Cons(_, %t) => {{ {body(depth - 1)} }}"
                return f"match (%l) {{ Nil => {{ {body(depth - 1)} }}, {rest} }}"

    def function(name: str) -> str:
        return f"def @{name}({TAKEN}) -> float32 {{ let %t = %l; {body(3)} }}\n"

    start = f"@f({one('0i64', '3i64', '%m')}, {one('Nil()', 'Cons(2.0f32, Nil())', '%u')}"
    main = f"{start}, fn (%a: float32) {{ %a * 2.0f32 }}, %x, %m)"
    entry = f"def @main(%x: float32, %m: int64, %u: L) -> float32 {{ {main} }}\n"
    return LISTS + "".join(map(function, names)) + entry


def size_of(module: Module) -> int:
    return sum(1 for f in module.functions.values() for _ in post_order(f))


def expect_bounded(text: str) -> None:
    """Partially evaluate a program; the result is a program of the type, of bounded size, and its
    own residual program."""
    module = derived(text)
    made = partially_evaluated(module, "main", folding)
    verify(made, Stage.DERIVED)
    assert made.functions["main"].ty == module.functions["main"].ty
    assert size_of(made) < 8 * size_of(module) + 10 * limits.MAX_OPERATIONS
    assert alpha_equal(partially_evaluated(made, "main", folding), made)


@settings(max_examples=8)
@given(endless())
def test_functions_that_call_themselves_at_random_leave_a_bounded_program(text: str) -> None:
    with patch.multiple(limits, MAX_STEPS=3_000, MAX_OPERATIONS=1_000, MAX_CALLS=500):
        expect_bounded(text)


@pytest.mark.slow
@pytest.mark.timeout(7200)
@settings(max_examples=200)
@given(endless())
def test_many_functions_that_call_themselves_leave_a_bounded_program(text: str) -> None:
    expect_bounded(text)
