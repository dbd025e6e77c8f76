"""Recursion that is made to exhaust partial evaluation stays within its limits, in work too, and
leaves a program that is its own residual program."""

from __future__ import annotations

import cProfile
from typing import Any, Final
from unittest.mock import patch

import pytest

from pyrelay.ir.equality import alpha_equal
from pyrelay.ir.module import Module
from pyrelay.ir.traverse import post_order
from pyrelay.ir.verify import Stage, verify
from pyrelay.passes.partial_eval import partial_eval, partially_evaluated
from pyrelay.passes.partial_eval.specialise import Specialiser
from tests.unit.passes.partial_eval.residuals import LISTS, derived
from tests.unit.passes.programs import folding

ACKERMANN: Final = """
def @ack(%m: int64, %n: int64) -> int64 {
  if (%m <= 0i64) { %n + 1i64 } else {
    if (%n <= 0i64) { @ack(%m - 1i64, 1i64) } else {
      @ack(%m - 1i64, @ack(%m, %n - 1i64)) } } }
def @main(%x: int64) -> int64 {
  @ack(3i64, 6i64) + @ack(4i64, 4i64) + @ack(4i64, %x) + @ack(%x, 4i64) }
"""
GROWING_LISTS: Final = f"""{LISTS}
def @f(%l: L, %r: L, %x: float32) -> float32 {{
  @g(Cons(%x, %l), Cons(1.0f32, %r), %x - 1.0f32) + @g(Cons(2.0f32, %r), %l, %x) }}
def @g(%l: L, %r: L, %x: float32) -> float32 {{
  @f(Cons(%x, Cons(3.0f32, %l)), Cons(2.0f32, %r), %x + 2.0f32) + @f(%r, Cons(%x, %l), %x) }}
def @main(%x: float32) -> float32 {{ @f(Nil(), Nil(), %x) + @g(Cons(%x, Nil()), Nil(), 1.0f32) }}
"""
ONE_LIST: Final = f"""{LISTS}
def @f(%l: L, %n: int64, %x: float32) -> float32 {{ @f(Cons(1.0f32, %l), %n + 1i64, %x) }}
def @main(%x: float32) -> float32 {{
  @f(Nil(), 0i64, %x) + @f(Cons(2.0f32, Nil()), 0i64, %x) + @f(Cons(%x, Nil()), 3i64, %x) }}
"""
COUNTERS: Final = """
def @f(%a: int64, %b: int64, %c: int64, %x: float32) -> float32 {
  @f(%a + 1i64, %b, %c, %x * 2.0f32) + @f(%a, %b + 1i64, %c, %x + 1.0f32)
    + @f(%a, mod(%b, 7i64), %c + %a, %x) + @f(0i64, %a, %b, %x) }
def @main(%x: float32) -> float32 { @f(0i64, 0i64, 0i64, %x) + @f(5i64, 0i64, 1i64, %x) }
"""
CLOSURES: Final = """
def @f(%k: fn(float32) -> float32, %n: int64, %x: float32) -> float32 {
  @f(fn (%a: float32) { %k(%k(%a + %x)) }, %n + 1i64, %k(%x)) + @g(%k, %n, %x) }
def @g(%k: fn(float32) -> float32, %n: int64, %x: float32) -> float32 {
  @f(fn (%a: float32) { %k(%a) * 2.0f32 }, %n, %x) + %k(%x) }
def @main(%x: float32) -> float32 { @f(fn (%a: float32) { %a + 1.0f32 }, 0i64, %x) }
"""
MATCHES: Final = f"""{LISTS}
def @f(%a: L, %b: L, %c: L, %x: float32) -> float32 {{
  match ((%a, %b, %c)) {{
    (Cons(%p, Cons(%q, %r)), Cons(%s, %t), _) => {{
      @f(%r, Cons(%p, %b), Cons(%q, %t), %x + %p) + @f(%t, %r, Cons(%s, %a), %x) }},
    (Cons(%p, %r), Nil, Cons(%q, %u)) => {{ @f(Cons(%q, %r), Cons(%p, %r), %u, %x * %p) }},
    (Nil, Cons(%p, %r), %u) => {{ @f(%u, %r, Cons(%p, Cons(%x, %u)), %x) }},
    _ => {{ @f(%b, Cons(1.0f32, %c), Cons(%x, %a), %x + 1.0f32) }} }} }}
def @main(%x: float32, %u: L) -> float32 {{
  @f(Cons(1.0f32, Cons(%x, %u)), %u, Cons(2.0f32, Nil()), %x)
    + @f(Cons(1.0f32, Cons(2.0f32, Cons(3.0f32, Nil()))), Nil(), Cons(2.0f32, Nil()), %x) }}
"""
VARIANTS: Final = f"""{LISTS}
def @f(%n: int64, %l: L, %k: fn(float32) -> float32, %x: float32, %m: int64) -> float32 {{
  @f(floor_divide(%n, 2i64), %l, fn (%a: float32) {{ %k(%k(%a)) }}, %x, %m)
    + @h(7i64, Cons(1.0f32, %l), fn (%a: float32) {{ %a * %x }}, %x * 0.5f32, %m) }}
def @h(%n: int64, %l: L, %k: fn(float32) -> float32, %x: float32, %m: int64) -> float32 {{
  if (%x > 0.0f32) {{
    @f(%m, Cons(%x, Cons(2.0f32, Nil())), fn (%a: float32) {{ %k(%k(%a)) }}, %x, %m)
      + @f(0i64, Cons(1.0f32, %l), fn (%a: float32) {{ %a + 1.0f32 }}, %x, %m)
  }} else {{
    match (%l) {{
      Nil => {{
        @h(%n + 1i64, Cons(%x, Cons(2.0f32, Nil())),
           fn (%a: float32) {{ %a * %x }}, %x * 0.5f32, %m)
      }},
      Cons(_, %t) => {{ %x }} }} }} }}
def @main(%x: float32, %m: int64, %u: L) -> float32 {{
  @f(3i64, %u, fn (%a: float32) {{ %a * 2.0f32 }}, %x, %m) }}
"""
TEXTS: Final = {
    "Ackermann's function": ACKERMANN,
    "mutual recursion that grows lists": GROWING_LISTS,
    "one list that grows": ONE_LIST,
    "counters": COUNTERS,
    "closures in closures": CLOSURES,
    "deep matches": MATCHES,
}
MAX_STEPS: Final = 3_000
MAX_OPERATIONS: Final = 1_000
MAX_CALLS: Final = 500


def size_of(module: Module) -> int:
    return sum(1 for f in module.functions.values() for _ in post_order(f))


@pytest.mark.parametrize(
    "text",
    [*TEXTS.values(), pytest.param(VARIANTS, marks=pytest.mark.slow)],
    ids=[*TEXTS, "variants of variants"],
)
def test_adversarial_recursion_stays_within_the_limits_and_is_its_own_residual(text: str) -> None:
    made: list[Specialiser] = []

    def recorded(*args: Any) -> Specialiser:
        made.append(Specialiser(*args))
        return made[-1]

    module = derived(text)
    limits = "pyrelay.passes.partial_eval.limits."
    profile = cProfile.Profile()
    with (
        patch(limits + "MAX_STEPS", MAX_STEPS),
        patch(limits + "MAX_OPERATIONS", MAX_OPERATIONS),
        patch(limits + "MAX_CALLS", MAX_CALLS),
        patch.object(partial_eval, "Specialiser", recorded),
        profile,
    ):
        left = partially_evaluated(module, "main", folding)
        again = partially_evaluated(left, "main", folding)
    verify(left, Stage.DERIVED)
    steps = sum(each.steps for each in made)
    calls = sum(entry.callcount for entry in profile.getstats())
    assert max(each.steps for each in made) < 2 * MAX_STEPS + 2 * size_of(left)
    assert calls < 1_200 * steps, "a step costs what a step costs, however large data have become"
    assert size_of(left) < 3 * MAX_OPERATIONS
    assert alpha_equal(again, left)
