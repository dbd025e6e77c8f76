"""Gradients of functions that call themselves or each other, not only in tail position."""

from __future__ import annotations

import pytest

from pyrelay.runtime.compile.evaluator import evaluate
from pyrelay.text.printer import to_text
from tests.unit.passes.grad.programs import check, expanded, run, scalar

TWO = "%x: float64, %y: float64"

RECURSIONS = {
    "two calls": """
    def @fib(%n: int64, %x: float64, %w: float64) -> float64 {
      if (%n < 2) { %x * %w } else {
        let %a = @fib(%n - 1, %x, %w); let %b = @fib(%n - 2, %x, %w); sin(%a) * %b + %w * %x } }
    def @f(%x: float64, %y: float64) -> float64 { @fib(6, %x, %y) }""",
    "an argument that changes": """
    def @rec(%n: int64, %x: float64, %w: float64) -> float64 {
      if (%n < 2) { %x * %w } else { let %a = @rec(%n - 1, %x * %w, %w); sin(%a) * %x } }
    def @f(%x: float64, %y: float64) -> float64 { @rec(6, %x, %y) }""",
    "mutual, in tail position": """
    def @even(%n: int64, %x: float64, %w: float64) -> float64 {
      if (%n == 0) { %x } else { @odd(%n - 1, sin(%x) * %w, %w) } }
    def @odd(%n: int64, %x: float64, %w: float64) -> float64 {
      if (%n == 0) { %x * %x } else { @even(%n - 1, exp(%x), %w) } }
    def @f(%x: float64, %y: float64) -> float64 { @even(7, %x, %y) }""",
    "mutual, swapping invariants": """
    def @a(%n: int64, %u: float64, %v: float64) -> float64 {
      if (%n < 1) { %u } else { let %r = @b(%n - 1, %v, %u); %r * %u + %v } }
    def @b(%n: int64, %p: float64, %q: float64) -> float64 {
      if (%n < 1) { %p * %q } else { let %r = @a(%n - 1, %p, %q); let %s = @b(%n - 2, %q, %p);
        %r * %s + %q } }
    def @f(%x: float64, %y: float64) -> float64 { @a(5, %x, %y) }""",
    "Ackermann": """
    def @ack(%m: int64, %n: int64, %x: float64, %w: float64) -> float64 {
      if (%m == 0) { %x * %w + 1.0f64 } else {
        if (%n == 0) { @ack(%m - 1, 1, sin(%x), %w) } else {
          let %q = @ack(%m, %n - 1, %x * %w, %w); @ack(%m - 1, %n - 1, %q * %x, %w) } } }
    def @f(%x: float64, %y: float64) -> float64 { @ack(2, 3, %x, %y) }""",
    "results of which one part is used": """
    def @both(%n: int64, %x: float64, %w: float64) -> (float64, float64) {
      if (%n < 1) { (%x, %w * %x) } else {
        let %r = @both(%n - 1, sin(%x), %w); (%r.0 * %w, %r.1 + %r.0) } }
    def @f(%x: float64, %y: float64) -> float64 {
      let %r = @both(4, %x, %y); let %s = @both(3, %y, %x); %r.0 * %s.1 }""",
    "a varying argument that only integers follow": """
    def @count(%n: int64, %x: float64) -> int64 {
      if (%n < 1) { 0 } else { let %r = @count(%n - 1, sin(%x)); %r + 1 } }
    def @f(%x: float64, %y: float64) -> float64 {
      let %n = @count(3, %x); %x * cast(%n, dtype=float64) * %y * %y }""",
}


@pytest.mark.parametrize("text", RECURSIONS.values(), ids=RECURSIONS.keys())
def test_recursion_is_differentiated(text: str) -> None:
    for x, y in ((0.8, 0.9), (0.3, -0.4)):
        check(text, TWO, scalar(x), scalar(y))


def test_an_invariant_parameter_is_neither_saved_by_each_call_nor_summed_afterwards() -> None:
    text = (
        RECURSIONS["two calls"]
        + """
    def @main(%x: float64, %y: float64) { let %g = grad(@f); %g(%x, %y) }"""
    )
    module = expanded(text)
    residual = module.adts["fib_res"]
    # The base case uses its parameters alone; the other saves two results and two residuals.
    assert sorted(len(c.fields) for c in residual.constructors) == [0, 5]
    backward = to_text(module).split("def @fib_bwd")[1].split("def ")[0]
    assert "full(" not in backward


def test_deep_recursion_is_differentiated() -> None:
    text = """
    def @f(%x: float64, %n: int64) -> float64 {
      if (%n < 1) { %x } else { let %r = @f(%x, %n - 1); sin(%r) + %x } }
    def @main(%x: float64, %n: int64) { let %g = grad{wrt=(0,)}(@f); %g(%x, %n) }
    """
    slope = float(run(text, scalar(0.3), 2_000))
    step = 1e-6
    module = expanded(text)
    above = evaluate(module, "f", (scalar(0.3 + step), 2_000))
    below = evaluate(module, "f", (scalar(0.3 - step), 2_000))
    assert slope == pytest.approx(float(above - below) / (2 * step), rel=1e-4)
