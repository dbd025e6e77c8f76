"""Gradients of loops: functions that call themselves in tail position."""

from __future__ import annotations

import pytest
import torch

from pyrelay.ir.types import TensorType
from pyrelay.text.printer import to_text
from tests.unit.passes.grad.programs import check, expanded, run, scalar

TWO = "%x: float64, %y: float64"

LOOPS = {
    "an invariant": """
    def @loop(%i: int64, %s: float64, %y: float64, %x: float64) -> float64 {
      if (%i < 10) { let %u = sin(%s) * %y + %x; @loop(%i + 1, %u, %y, %x) } else { %s } }
    def @f(%x: float64, %y: float64) -> float64 { @loop(0, %x, %y, %x) }""",
    "a branch inside": """
    def @loop(%i: int64, %s: float64, %y: float64) -> float64 {
      if (%i < 10) {
        let %u = if (%s < 0.3f64) { exp(%s) * %y } else { let %q = sin(%s); %q * %q + %y };
        @loop(%i + 1, %u, %y)
      } else { tanh(%s) * %y } }
    def @f(%x: float64, %y: float64) -> float64 { @loop(0, %x, %y) }""",
    "several ways on and out": """
    def @loop(%i: int64, %s: float64, %y: float64) -> float64 {
      let %p = cos(%s);
      if (%i < 10) {
        if (%s < 0.3f64) { @loop(%i + 1, exp(%s) * %y * %p, %y) } else {
          let %q = sin(%s);
          if (%q < 0.1f64) { %q * %y } else { @loop(%i + 1, %q * %q + %y, %y) } }
      } else { if (%y < 0.1f64) { %p } else { tanh(%s) * %y + %p } } }
    def @f(%x: float64, %y: float64) -> float64 { @loop(0, %x, %y) }""",
    "state in a tuple": """
    def @loop(%s: (float64, float64), %n: int64) -> (float64, float64) {
      if (%n < 1) { %s } else { let %a = %s.0; @loop((%s.1 * %a, sin(%a)), %n - 1) } }
    def @f(%x: float64, %y: float64) -> float64 { let %r = @loop((%x, %y), 5); %r.0 }""",
    "a loop in a loop": """
    def @inner(%i: int64, %s: float64, %y: float64) -> float64 {
      if (%i < 3) { @inner(%i + 1, sin(%s) * %y, %y) } else { %s } }
    def @outer(%i: int64, %s: float64, %y: float64) -> float64 {
      if (%i < 4) { let %t = @inner(0, %s, %y); @outer(%i + 1, %t + %s * %y, %y) } else { %s } }
    def @f(%x: float64, %y: float64) -> float64 { @outer(0, %x, %y) }""",
    "a state that is overwritten": """
    def @loop(%i: int64, %s: float64, %t: float64, %y: float64) -> float64 {
      if (%i < 4) { @loop(%i + 1, %t * %y, sin(%s), %y) } else { %s } }
    def @f(%x: float64, %y: float64) -> float64 { @loop(0, %x, %y, %y) }""",
    "a state that is not used": """
    def @loop(%i: int64, %s: float64, %t: float64) -> float64 {
      if (%i < 4) { @loop(%i + 1, sin(%s), %t * %s) } else { %s } }
    def @f(%x: float64, %y: float64) -> float64 { @loop(0, %x, %y) * %y }""",
    "the same argument for two parameters": """
    def @loop(%i: int64, %s: float64, %a: float64, %b: float64) -> float64 {
      if (%i < 4) { @loop(%i + 1, sin(%s) * %a + %b, %a, %b) } else { %s } }
    def @f(%x: float64, %y: float64) -> float64 { @loop(0, %x, %y, %y) * @loop(1, %y, %y, %x) }""",
    "no iteration": """
    def @loop(%i: int64, %s: float64) -> float64 {
      if (%i < 4) { @loop(%i + 1, sin(%s)) } else { %s * %s } }
    def @f(%x: float64, %y: float64) -> float64 { @loop(7, %x * %y) }""",
    "a non-tail call as well": """
    def @loop(%i: int64, %s: float64, %y: float64) -> float64 {
      if (%i < 4) { let %t = @loop(%i + 2, %s * %y, %y); @loop(%i + 1, sin(%t), %y) }
      else { %s * %y } }
    def @f(%x: float64, %y: float64) -> float64 { @loop(0, %x, %y) }""",
}


@pytest.mark.parametrize("text", LOOPS.values(), ids=LOOPS.keys())
def test_a_loop_is_differentiated(text: str) -> None:
    for x, y in ((0.3, 0.2), (0.9, 0.05), (-0.5, 1.1)):
        check(text, TWO, scalar(x), scalar(y))


RNN = """
def @loop[T: Dim, D: Dim](%i: int64, %h: Tensor[(D,), float64], %x: Tensor[(T, D), float64],
    %w: Tensor[(D, D), float64]) -> Tensor[(D,), float64] {
  let %n = size(dim=T);
  if (%i < %n) {
    let %r = index(%x, (%i,), spec=(("int", 0),));
    @loop(%i + 1, tanh(matmul(%r, %w) + matmul(%h, %w)), %x, %w)
  } else { %h } }
def @f[T: Dim, D: Dim](%x: Tensor[(T, D), float64], %w: Tensor[(D, D), float64]) -> float64 {
  let %h = @loop(0, zeros(size=(D,), dtype=float64), %x, %w); sum(%h * %h) }
"""


def test_a_recurrent_network_is_differentiated() -> None:
    torch.manual_seed(0)
    x, w = torch.randn(4, 3, dtype=torch.float64), torch.randn(3, 3, dtype=torch.float64)
    params = "%x: Tensor[(T, D), float64], %w: Tensor[(D, D), float64]"
    check(RNN, params, x, w, generics="[T: Dim, D: Dim]")


def test_weights_and_the_indexed_tensor_are_accumulated_and_not_saved_per_iteration() -> None:
    main = """
    def @main[T: Dim, D: Dim](%x: Tensor[(T, D), float64], %w: Tensor[(D, D), float64]) {
      let %g = grad(@f); %g(%x, %w) }
    """
    module = expanded(RNN + main)
    loop = to_text(module).split("def @loop_bwd_loop")[1].split("def ")[0]
    assert "index_accumulate(%d_x" in loop
    assert "full(" not in loop
    (trace,) = (a for a in module.adts.values() if a.name == "loop_trace")
    saved = [f for f in trace.constructors[1].fields if isinstance(f, TensorType)]
    assert saved
    assert all(f.rank < 2 for f in saved)


MANY = """
def @loop(%i: int64, %s: float64, %y: float64, %n: int64) -> float64 {
  if (%i < %n) { @loop(%i + 1, sin(%s) * %y, %y, %n) } else { %s } }
def @f(%x: float64, %y: float64, %n: int64) -> float64 { @loop(0, %x, %y, %n) }
def @main(%x: float64, %y: float64, %n: int64) {
  let %g = grad{wrt=(0, 1), single=False}(@f); %g(%x, %y, %n) }
"""


def test_tail_calls_stay_tail_calls_forwards_and_backwards() -> None:
    text = to_text(expanded(MANY))
    for name in ("loop_fwd", "loop_bwd_loop"):
        body = text.split(f"def @{name}(")[1].split("\ndef ")[0]
        lines = [line for line in body.splitlines() if f"@{name}(" in line]
        assert lines
        assert all(line.strip().startswith(f"@{name}(") for line in lines)


def test_a_loop_of_many_iterations_is_differentiated() -> None:
    n, y = 5_000, 1.0001
    dx, dy = run(MANY, scalar(0.3), scalar(y), n)
    x = scalar(0.3).requires_grad_()
    factor = scalar(y).requires_grad_()
    s = x
    for _ in range(n):
        s = torch.sin(s) * factor
    torch.testing.assert_close((dx, dy), torch.autograd.grad(s, (x, factor)))
