"""What a gradient costs: a constant factor of what it differentiates, at any order."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch

from pyrelay.diagnostics.source import NOWHERE
from pyrelay.ir.expr import (
    Binding,
    Call,
    Differentiation,
    Expr,
    Flavour,
    Function,
    GlobalVar,
    If,
    LetBlock,
    Rule,
    Transform,
    Var,
)
from pyrelay.ir.module import Module
from pyrelay.ir.names import Names
from pyrelay.ir.traverse import let
from pyrelay.ir.types import INT, FnType, TensorType, float64
from pyrelay.ir.verify import Stage, verify
from pyrelay.operators.builder import Builder
from pyrelay.operators.primitive.compare import less
from pyrelay.operators.primitive.math import sin
from pyrelay.passes.transforms import expand_transforms
from pyrelay.runtime.compile.evaluator import evaluate
from tests.steps import calls_of
from tests.unit.passes.grad.programs import expanded, operator_counts, scalar

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


@pytest.mark.parametrize(("text", "small", "large"), [(LOOP, 20, 80), (FOLD, 6, 10)])
def test_what_is_saved_grows_as_the_calls_of_the_function(
    monkeypatch: pytest.MonkeyPatch, text: str, small: int, large: int
) -> None:
    module = expanded(text + ORDERS)

    def saved(n: int) -> int:
        value, residual = evaluate(module, "f_fwd", (scalar(0.3), scalar(0.9), n))
        assert value.ndim == 0
        pending, count = [residual], 0
        while pending:
            part = pending.pop()
            count += isinstance(part, torch.Tensor)
            pending += part if isinstance(part, tuple) else ()
        return count

    def calls(n: int) -> int:
        counts = operator_counts(monkeypatch, module, "f", scalar(0.3), scalar(0.9), n)
        return counts["less"]

    assert saved(large) / saved(small) == pytest.approx(calls(large) / calls(small), rel=0.15)


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


FLOAT = TensorType((), float64)


def derived_from(function: Function) -> Module:
    """Return a module with `@f` and its gradient for the first parameter, not yet expanded."""
    ty = function.ty
    assert isinstance(ty, FnType)
    made = Transform(
        Rule.GRAD,
        GlobalVar("f", ty, span=NOWHERE),
        Differentiation((0,)),
        ty=FnType(ty.params, FLOAT),
        span=NOWHERE,
    )
    gradient = Var("g", made.ty, span=NOWHERE)
    params = tuple(Var(p.name, p.ty, span=NOWHERE) for p in function.params)
    call = Call(gradient, params, ty=FLOAT, span=NOWHERE)
    block = LetBlock((Binding(gradient, made),), call, Flavour.PURE, ty=FLOAT, span=NOWHERE)
    main = Function(params, block, FLOAT, ty=FnType(ty.params, FLOAT), span=NOWHERE)
    module = Module({"f": function, "main": main}, {})
    verify(module, Stage.ANF)
    return module


def straight(length: int) -> Module:
    """Return a program of many operators in a row."""
    x = Var("x", FLOAT, span=NOWHERE)
    builder = Builder(NOWHERE)
    value = builder.value(x)
    for _ in range(length):
        value = sin(value)
    body = builder.block(value)
    return derived_from(Function((x,), body, FLOAT, ty=FnType((FLOAT,), FLOAT), span=NOWHERE))


def nested(depth: int) -> Module:
    """Return a program of conditionals, each in the arm of another, that save something."""
    x, n = Var("x", FLOAT, span=NOWHERE), Var("n", INT, span=NOWHERE)
    names = Names()
    body: Expr = x
    for level in range(depth):
        builder = Builder(NOWHERE, names)
        condition = less(builder.value(n), level)
        arm = Builder(NOWHERE, names)
        root = sin(arm.value(x))
        then = arm.block(root * root)
        branch = If(condition.atom, then, body, ty=FLOAT, span=NOWHERE)
        body = let(builder.bindings, branch)
    ty = FnType((FLOAT, INT), FLOAT)
    return derived_from(Function((x, n), body, FLOAT, ty=ty, span=NOWHERE))


@pytest.mark.parametrize(("make", "size"), [(straight, 500), (nested, 100)])
def test_the_work_of_deriving_grows_with_the_program_at_any_depth(
    make: Callable[[int], Module], size: int
) -> None:
    def calls(length: int) -> int:
        module = make(length)
        return calls_of(lambda: expand_transforms(module))

    calls(10)
    assert calls(4 * size) < 5 * calls(size)
