"""Gradients through cells: what torch's autograd finds through the same reads and writes."""

from __future__ import annotations

import pytest
import torch

from pyrelay.ir.expr import Call, RefWrite
from pyrelay.ir.traverse import post_order
from pyrelay.operators.host.shadow import shadow
from tests.unit.passes.grad.programs import (
    assert_close,
    check,
    expanded,
    operator_counts,
    run,
    scalar,
    vector,
)

X, Y = scalar(0.3), scalar(1.7)
LIST = "type List[T] { Nil, Cons(T, List[T]) }\n"

PROGRAMS = {
    "made, read": "let! %r = ref(%x * %y); let! %a = ref_read(%r); %a * %x",
    "written over": "let! %r = ref(%x); let! %_ = ref_write(%r, sin(%y)); ref_read(%r) * %x",
    "read before and after": """
      let! %r = ref(%x); let! %a = ref_read(%r); let! %_ = ref_write(%r, %a * %y);
      let! %b = ref_read(%r); %a * %b""",
    "what was written last counts": """
      let! %r = ref(%x); let! %_ = ref_write(%r, %x * %x); let! %a = ref_read(%r);
      let! %_ = ref_write(%r, 2.0f64); let! %b = ref_read(%r);
      let! %_ = ref_write(%r, %a * %b * %y); ref_read(%r) + ref_read(%r)""",
    "two cells of one type": """
      let! %r = ref(%x); let! %s = ref(%y); let! %_ = ref_write(%r, ref_read(%s) * %x);
      let! %_ = ref_write(%s, ref_read(%r)); ref_read(%r) * ref_read(%s)""",
    "two names of one cell": """
      let! %r = ref(%x); let %p = (%r, %r); let! %_ = ref_write(%p.0, %x * %y);
      ref_read(%p.1) * ref_read(%r)""",
    "a cell that a branch chooses": """
      let! %r = ref(%x); let! %s = ref(%y); let %t = if (%x < %y) { %r } else { %s };
      let! %_ = ref_write(%t, ref_read(%t) * ref_read(%s)); ref_read(%r) * ref_read(%s)""",
    "written in one arm": """
      let! %r = ref(%x);
      let %_ = if (%x < %y) { ref_write(%r, ref_read(%r) * %y) } else { () };
      sin(ref_read(%r))""",
    "written in both arms": """
      let! %r = ref(%x);
      let %k = if (%y < %x) { let! %_ = ref_write(%r, %x); 2.0f64 }
               else { let! %_ = ref_write(%r, sin(%y) * ref_read(%r)); 3.0f64 };
      ref_read(%r) * %k""",
    "a cell in a cell": """
      let! %r = ref(%x); let! %s = ref(%y); let! %c = ref(%r);
      let! %_ = ref_write(ref_read(%c), %x * %y); let! %_ = ref_write(%c, %s);
      let! %_ = ref_write(ref_read(%c), ref_read(%r) * ref_read(%s));
      ref_read(ref_read(%c)) * ref_read(%r)""",
    "a pair in a cell": """
      let! %r = ref((%x, (%y, 2))); let! %a = ref_read(%r);
      let! %_ = ref_write(%r, (%a.1.0 * %a.0, (%x, 3))); let! %b = ref_read(%r);
      %b.0 * %b.1.0 * %a.0""",
    "a closure over a cell": """
      let! %r = ref(%x);
      let %f = fn (%a: float64) -> float64 {
        let! %_ = ref_write(%r, ref_read(%r) * %a); ref_read(%r) + %a };
      %f(%y) * %f(%x)""",
    "a function in a cell": """
      let! %r = ref(fn (%a: float64) -> float64 { %a * %x });
      let! %f = ref_read(%r);
      let! %_ = ref_write(%r, fn (%a: float64) -> float64 { %f(%a) * %y + sin(%a) });
      let! %g = ref_read(%r); %g(%y) * %f(%x)""",
    "knots tied through a cell": """
      let! %r = ref(fn (%n: int64, %a: float64) -> float64 { %a });
      let! %_ = ref_write(%r, fn (%n: int64, %a: float64) -> float64 {
        if (%n < 1) { %a * %y } else { let! %f = ref_read(%r); sin(%f(%n - 1, %a * %x)) } });
      let! %f = ref_read(%r); %f(3, %y)""",
    "an argument of a function": """
      let! %r = ref(%x); let %a = @double(%r); let %b = @double(%r);
      %a * %b * ref_read(%r)""",
    "a result of a function": """
      let %r = @fresh(%x, %y); let! %_ = ref_write(%r, ref_read(%r) * %x);
      let %s = @fresh(%y, %y); ref_read(%r) * ref_read(%s)""",
    "a result that does not matter": "let %r = @fresh(%x, %y); %x * %y",
    "written where nothing is given back": "let! %r = ref(%x); let %_ = @square(%r); ref_read(%r)",
    "a loop": """
      let! %r = ref(%x); let %_ = @times(4, %r, %y); ref_read(%r)""",
    "a loop that gives something": """
      let! %r = ref(%x); let %a = @sums(4, %r, %y); ref_read(%r) * %a""",
    "recursion": "let! %r = ref(%x); let %a = @down(3, %r, %y); %a + ref_read(%r)",
    "mutual recursion": "let! %r = ref(%x); let %a = @even(4, %r, %y); %a * ref_read(%r)",
    "a list of cells": """
      let! %r = ref(%x); let! %s = ref(%y);
      let %cells = Cons(%r, Cons(%s, Cons(%r, Nil())));
      let %_ = @each(%cells, %y); let %a = @product(%cells); %a * ref_read(%s)""",
    "two parameters that are two cells": """
      let! %r = ref(%x); let! %s = ref(%y); let %a = @exchange(%r, %s, %x);
      %a * ref_read(%r) + ref_read(%s)""",
    "two parameters that are one cell": """
      let! %r = ref(%x); let! %s = ref(%y); let %a = @exchange(%r, %r, %y);
      let %b = @exchange(%s, %r, %x); %a * %b * ref_read(%r) + ref_read(%s)""",
    "closures over two cells of one type": """
      let! %r = ref(%x); let! %s = ref(%y);
      let %f = fn (%a: float64) -> float64 {
        let! %_ = ref_write(%r, ref_read(%s) * %a); ref_read(%r) + %a };
      let %g = fn (%a: float64) -> float64 {
        let! %_ = ref_write(%s, ref_read(%r) * ref_read(%s)); ref_read(%s) * %a };
      let %h = if (%x < %y) { %g } else { %f };
      let %a = %f(%y); let %b = %h(%a); let %c = %f(%b); %c * ref_read(%s) + ref_read(%r)""",
    "a pair of closures over one cell, in data": """
      let! %r = ref(%x); let! %s = ref(%y);
      let %fs = Cons(fn (%a: float64) -> float64 {
          let! %_ = ref_write(%r, %a * ref_read(%s)); ref_read(%r) },
        Cons(fn (%a: float64) -> float64 {
          let! %_ = ref_write(%s, %a * ref_read(%r)); ref_read(%s) }, Nil()));
      let %a = @all(%fs, %x); let %b = @all(%fs, %a); %b * ref_read(%r) * ref_read(%s)""",
    "one of two cells in data does not matter": """
      let! %r = ref(%x); let! %s = ref(2.0f64);
      let %both = Cons(%r, Cons(%s, Nil())); let %_ = @each(%both, 0.5f64);
      let! %_ = ref_write(%s, 3.0f64); @product(%both) * %y""",
    "cells in data under several names": """
      let! %r = ref(%x); let! %s = ref(%y); let %one = Cons(%r, Cons(%s, Nil()));
      let %two = Cons(%s, Cons(%r, Cons(%s, %one))); let %_ = @each(%two, %x);
      let %a = @product(%one); let %_ = @each(%one, %y); %a * @product(%two)""",
    "a list in a cell": """
      let! %r = ref(Nil()); let %_ = @collect(3, %r, %x, %y); @total(ref_read(%r))""",
}
FUNCTIONS = (
    LIST
    + """
def @double(%r: ref(float64)) -> float64 {
  let! %a = ref_read(%r); let! %_ = ref_write(%r, %a * %a + %a); ref_read(%r) * %a }
def @square(%r: ref(float64)) { ref_write(%r, ref_read(%r) * ref_read(%r)) }
def @fresh(%x: float64, %y: float64) -> ref(float64) { ref(%x * %y) }
def @times(%n: int64, %r: ref(float64), %y: float64) -> () {
  if (%n < 1) { () }
  else { let! %_ = ref_write(%r, sin(ref_read(%r)) * %y); @times(%n - 1, %r, %y) } }
def @sums(%n: int64, %r: ref(float64), %a: float64) -> float64 {
  if (%n < 1) { %a * ref_read(%r) }
  else { let! %_ = ref_write(%r, sin(ref_read(%r)) * %a); @sums(%n - 1, %r, %a + ref_read(%r)) } }
def @down(%n: int64, %r: ref(float64), %y: float64) -> float64 {
  if (%n < 1) { ref_read(%r) }
  else {
    let! %_ = ref_write(%r, ref_read(%r) * %y);
    let %below = @down(%n - 1, %r, sin(%y));
    let! %_ = ref_write(%r, ref_read(%r) + %below);
    %below * ref_read(%r) } }
def @even(%n: int64, %r: ref(float64), %y: float64) -> float64 {
  if (%n < 1) { ref_read(%r) } else { let %b = @odd(%n - 1, %r, %y); %b * ref_read(%r) } }
def @odd(%n: int64, %r: ref(float64), %y: float64) -> float64 {
  let! %_ = ref_write(%r, ref_read(%r) * %y); @even(%n - 1, %r, %y) }
def @exchange(%r: ref(float64), %s: ref(float64), %k: float64) -> float64 {
  let! %a = ref_read(%r); let! %_ = ref_write(%r, ref_read(%s) * %k);
  let! %b = ref_read(%r); let! %_ = ref_write(%s, %a * %b); ref_read(%r) * ref_read(%s) + %a }
def @all(%fs: List[fn (float64) -> float64], %a: float64) -> float64 {
  match (%fs) { Cons(%f, %rest) => { @all(%rest, %f(%a)) }, Nil => { %a } } }
def @each(%cells: List[ref(float64)], %y: float64) -> () {
  match (%cells) {
    Cons(%c, %rest) => { let! %_ = ref_write(%c, sin(ref_read(%c) * %y)); @each(%rest, %y) },
    Nil => { () } } }
def @product(%cells: List[ref(float64)]) -> float64 {
  match (%cells) { Cons(%c, %rest) => { ref_read(%c) * @product(%rest) }, Nil => { 1.0f64 } } }
def @collect(%n: int64, %r: ref(List[float64]), %x: float64, %y: float64) -> () {
  if (%n < 1) { () }
  else {
    let! %_ = ref_write(%r, Cons(%x, ref_read(%r)));
    @collect(%n - 1, %r, sin(%x * %y), %y) } }
def @total(%items: List[float64]) -> float64 {
  match (%items) { Cons(%a, %rest) => { %a * %a + @total(%rest) * %a }, Nil => { 0.5f64 } } }
"""
)
PARAMS = "%x: float64, %y: float64"


@pytest.mark.parametrize("name", PROGRAMS)
def test_first_and_second_derivatives_are_those_of_autograd(name: str) -> None:
    text = f"{FUNCTIONS}def @f({PARAMS}) -> float64 {{ {PROGRAMS[name]} }}"
    check(text, PARAMS, X, Y)


def test_a_gradient_inside_a_gradient_goes_through_the_same_cell() -> None:
    text = """
    def @f(%x: float64, %y: float64) -> float64 {
      let! %r = ref(%x);
      let %g = grad(fn (%a: float64) -> float64 {
        let! %_ = ref_write(%r, ref_read(%r) * %a); let! %b = ref_read(%r); %b * %b * %y })(%y);
      %g * ref_read(%r) }
    def @main(%x: float64, %y: float64) { value_and_grad(@f)(%x, %y) }
    """

    def by_hand(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        # The slope of (x a)^2 y at a = y; the cell then holds x y.
        return 2 * x * x * y * y * (x * y)

    x, y = X.clone().requires_grad_(), Y.clone().requires_grad_()
    value = by_hand(x, y)
    assert_close(run(text, X, Y), (value, torch.autograd.grad(value, (x, y))))


def test_what_an_argument_held_before_is_a_constant() -> None:
    text = """
    def @f(%x: float64, %r: ref(float64)) -> float64 {
      let! %a = ref_read(%r); let! %_ = ref_write(%r, %a * %x); ref_read(%r) * %a }
    def @main(%x: float64) {
      let! %r = ref(%x); let! %g = grad(@f)(%x, %r); let! %h = grad(@f)(%x, %r);
      (%g, %h, ref_read(%r)) }
    """
    assert_close(run(text, X), (X**2, X**4, X**3))


def test_pullbacks_that_wait_do_not_meet() -> None:
    text = """
    def @f(%x: float64, %r: ref(float64)) -> float64 {
      let! %_ = ref_write(%r, ref_read(%r) * %x); ref_read(%r) * ref_read(%r) }
    def @main(%x: float64, %y: float64) {
      let! %r = ref(2.0f64);
      let! %a = vjp{wrt=(0,)}(@f)(%x, %r); let! %b = vjp{wrt=(0,)}(@f)(%y, %r);
      let %p = %a.1; let %q = %b.1;
      (%q(1.0f64), %p(1.0f64), %q(2.0f64)) }
    """
    b = 2 * (2 * X) ** 2 * Y
    assert_close(run(text, X, Y), (b, 8 * X, 2 * b))


def test_effects_happen_once_and_in_order() -> None:
    text = """
    def @f(%x: float64, %r: ref(float64), %log: ref(int64)) -> float64 {
      let! %_ = ref_write(%log, ref_read(%log) * 10 + 1);
      let! %_ = ref_write(%r, ref_read(%r) * %x);
      let! %_ = ref_write(%log, ref_read(%log) * 10 + 2);
      ref_read(%r) * ref_read(%r) }
    def @main(%x: float64) {
      let! %r = ref(3.0f64); let! %log = ref(7);
      let! %g = grad{wrt=(0,)}(@f)(%x, %r, %log);
      (%g, ref_read(%r), ref_read(%log)) }
    """
    assert_close(run(text, X), (18 * X, 3 * X, torch.tensor(712)))


def test_a_cell_that_does_not_matter_costs_nothing() -> None:
    text = """
    def @f(%x: float64, %statistic: ref(float64)) -> float64 {
      let! %y = ref_read(%statistic); let! %_ = ref_write(%statistic, %y * 0.9f64 + %x);
      %x * %x }
    def @main(%x: float64) {
      let! %r = ref(0.0f64); let! %g = grad{wrt=(0,)}(@f)(%x, %r); (%g, ref_read(%r)) }
    """
    module = expanded(text)
    nodes = [n for f in module.functions.values() for n in post_order(f)]
    assert not any(isinstance(n, Call) and n.callee is shadow for n in nodes)
    assert sum(isinstance(n, RefWrite) for n in nodes) == 2  # in `f` and in its forward version
    assert_close(run(text, X), (2 * X, X))


def test_sizes_are_no_obstacle() -> None:
    text = """
    def @f[N: Dim](%x: Tensor[(N,), float64], %y: float64) -> float64 {
      let! %r = ref(%x);
      let %_ = @grow(3, %r, %y); let! %s = ref((%x + %y, %y)); let! %a = ref_read(%s);
      let! %_ = ref_write(%s, (%a.0 * %a.1, sum(ref_read(%r))));
      let! %b = ref_read(%s); sum(%b.0) * %b.1 }
    def @grow[N: Dim](%n: int64, %r: ref(Tensor[(N,), float64]), %y: float64) -> () {
      if (%n < 1) { () }
      else { let! %_ = ref_write(%r, sin(ref_read(%r)) * %y); @grow(%n - 1, %r, %y) } }
    """
    params = "%x: Tensor[(N,), float64], %y: float64"
    check(text, params, vector(0.3, -0.7, 1.1), Y, generics="[N: Dim]")


def test_the_cost_is_linear(monkeypatch: pytest.MonkeyPatch) -> None:
    text = f"""{FUNCTIONS}
    def @f(%n: int64, %x: float64, %y: float64) -> float64 {{
      let! %r = ref(%x); let %_ = @times(%n, %r, %y); ref_read(%r) }}
    def @main(%n: int64, %x: float64, %y: float64) {{
      value_and_grad{{wrt=(1, 2), single=False}}(@f)(%n, %x, %y) }}
    """
    module = expanded(text)
    counts = [
        operator_counts(monkeypatch, module, "main", n, X, Y)["elements"] for n in (10, 20, 30)
    ]
    assert counts[2] - counts[1] == counts[1] - counts[0]


def test_a_long_loop_through_a_cell() -> None:
    text = f"""{FUNCTIONS}
    def @f(%n: int64, %x: float64, %y: float64) -> float64 {{
      let! %r = ref(%x); let %_ = @times(%n, %r, %y); ref_read(%r) }}
    def @main(%n: int64, %x: float64, %y: float64) {{ grad{{wrt=(1,)}}(@f)(%n, %x, %y) }}
    """
    assert torch.isfinite(run(text, 5_000, X, scalar(1.0)))
