"""What a gradient costs: a constant factor of what it differentiates, at any order."""

from __future__ import annotations

import time

import pytest
import torch

from pyrelay.ir.module import Module
from pyrelay.passes.grad import expand_transforms
from tests.unit.passes.grad.programs import expanded, operator_counts, prepared, scalar

LOOP = """
def @loop(%i: int64, %s: float64, %y: float64, %n: int64) -> float64 {
  if (%i < %n) { @loop(%i + 1, sin(%s) * %y, %y, %n) } else { %s } }
def @f(%x: float64, %y: float64, %n: int64) -> float64 { @loop(0, %x, %y, %n) }
"""
FOLD = """
def @tree(%n: int64, %x: float64, %w: float64) -> float64 {
  if (%n < 2) { %x * %w } else {
    let %a = @tree(%n - 1, %x, %w); let %b = @tree(%n - 2, %x, %w); sin(%a) * %b + %w } }
def @f(%x: float64, %y: float64, %n: int64) -> float64 { @tree(%n, %x, %y) }
"""
ORDERS = """
def @first(%x: float64, %y: float64, %n: int64) {
  grad{wrt=(0, 1), single=False}(@f)(%x, %y, %n) }
def @norm(%x: float64, %y: float64, %n: int64) -> float64 {
  let %r = @first(%x, %y, %n); %r.0 * %r.0 + %r.1 * %r.1 }
def @second(%x: float64, %y: float64, %n: int64) {
  grad{wrt=(0, 1), single=False}(@norm)(%x, %y, %n) }
"""


@pytest.mark.parametrize(("text", "small", "large"), [(LOOP, 20, 80), (FOLD, 6, 10)])
def test_operators_grow_as_those_of_the_function_at_both_orders(
    monkeypatch: pytest.MonkeyPatch, text: str, small: int, large: int
) -> None:
    module = expanded(text + ORDERS)

    def work(entry: str, n: int) -> int:
        counts = operator_counts(monkeypatch, module, entry, scalar(0.3), scalar(0.9), n)
        return sum(counts.values()) - counts["elements"]

    plain = work("f", large) / work("f", small)
    assert work("first", large) < 4 * work("f", large)
    assert work("second", large) < 14 * work("f", large)
    for entry in ("first", "second"):
        assert work(entry, large) / work(entry, small) == pytest.approx(plain, rel=0.1)


INDEXED = """
def @loop[N: Dim](%i: int64, %s: float64, %x: Tensor[(N,), float64]) -> float64 {
  let %n = size(dim=N);
  if (%i < %n) {
    let %v = index(%x, (%i,), spec=(("int", 0),)); @loop(%i + 1, %s * %s + %v * %v, %x)
  } else { %s } }
def @f[N: Dim](%x: Tensor[(N,), float64]) -> float64 { @loop(0, 0.5f64, %x) }
def @first[N: Dim](%x: Tensor[(N,), float64]) { grad(@f)(%x) }
def @norm[N: Dim](%x: Tensor[(N,), float64]) -> float64 { let %r = @first(%x); sum(%r * %r) }
def @second[N: Dim](%x: Tensor[(N,), float64]) { grad(@norm)(%x) }
"""


@pytest.mark.parametrize("entry", ["first", "second"])
def test_a_loop_that_indexes_a_tensor_makes_no_zeros_per_iteration(
    monkeypatch: pytest.MonkeyPatch, entry: str
) -> None:
    module = expanded(INDEXED)
    zeros = [
        operator_counts(monkeypatch, module, entry, torch.full((n,), 0.1, dtype=torch.float64))
        for n in (8, 32)
    ]
    assert zeros[0]["full"] == zeros[1]["full"]


def straight(length: int) -> Module:
    """Give a program of many operators in a row."""
    lines = [f"let %a{i} = sin(%a{i - 1});" for i in range(1, length)]
    body = "\n".join(["let %a0 = sin(%x);", *lines, f"%a{length - 1}"])
    return prepared(f"""
    def @f(%x: float64) -> float64 {{ {body} }}
    def @main(%x: float64) {{ grad(@f)(%x) }}""")


def nested(depth: int) -> Module:
    """Give a program of conditionals, each in the arm of another, that save something."""
    opening = [
        f"if (%n < {i}) {{ let %q{i} = sin(%x); %q{i} * %q{i} }} else {{" for i in range(depth)
    ]
    body = "\n".join([*opening, "%x", "}" * depth])
    return prepared(f"""
    def @f(%x: float64, %n: int64) -> float64 {{ {body} }}
    def @main(%x: float64, %n: int64) {{ grad{{wrt=(0,)}}(@f)(%x, %n) }}""")


@pytest.mark.parametrize(("make", "size"), [(straight, 4000), (nested, 600)])
def test_deriving_takes_linear_time_at_any_depth(make: object, size: int) -> None:
    assert callable(make)

    def seconds(length: int) -> float:
        module = make(length)
        best = float("inf")
        for _ in range(3):
            start = time.process_time()
            expand_transforms(module)
            best = min(best, time.process_time() - start)
        return best

    assert seconds(4 * size) < 10 * seconds(size)
