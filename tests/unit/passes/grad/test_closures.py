"""Gradients of and through function values: captures, nesting, functions in data."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from pyrelay.ir.verify import Stage, verify
from pyrelay.passes.transforms import expand_transforms
from pyrelay.runtime.compile.evaluator import evaluate
from tests.unit.passes.grad.programs import assert_close, check, expanded, prepared, run, scalar

TWO = "%x: float64, %y: float64"
X, Y = scalar(0.3), scalar(-0.7)


@pytest.mark.parametrize(
    "text",
    [
        """def @f(%x: float64, %y: float64) -> float64 {
          let %h = fn (%a: float64) -> float64 { sin(%a * %y) * %x }; %h(%x) * %h(%y) }""",
        """def @f(%x: float64, %y: float64) -> float64 {
          let %add = fn (%a: float64) { fn (%b: float64) { %a * %b + %x } };
          let %h = %add(%y); %h(%x) * %h(%y) }""",
        """def @twice(%g: fn (float64) -> float64, %a: float64) -> float64 { %g(%g(%a)) }
        def @f(%x: float64, %y: float64) -> float64 {
          let %h = fn (%a: float64) -> float64 { sin(%a) * %y }; @twice(%h, %x) }""",
        """type List[T] { Nil, Cons(T, List[T]) }
        def @all(%fs: List[fn (float64) -> float64], %x: float64) -> float64 {
          match (%fs) { Nil => %x, Cons(%f, %r) => @all(%r, %f(%x)) } }
        def @f(%x: float64, %y: float64) -> float64 {
          let %a = fn (%u: float64) -> float64 { sin(%u) * %y };
          let %b = fn (%u: float64) -> float64 { %u * %u * %x };
          @all(Cons(%a, Cons(%b, Cons(%a, Nil()))), %x) }""",
        """def @f(%x: float64, %y: float64) -> float64 {
          let %a = fn (%u: float64) -> float64 { %u * %y };
          let %b = fn (%u: float64) -> float64 { sin(%u) };
          let %h = if (%x < 0.5f64) { %a } else { %b }; %h(%x) * %h(%y) }""",
        """def @f(%x: float64, %y: float64) -> float64 {
          let rec %loop = fn (%i: int64, %s: float64) -> float64 {
            if (%i < 4) { %loop(%i + 1, sin(%s) * %y + %x) } else { %s } };
          %loop(0, %x) }""",
        """type List[T] { Nil, Cons(T, List[T]) }
        def @map[A, B](%g: fn (A) -> B, %xs: List[A]) -> List[B] {
          match (%xs) { Nil => Nil(), Cons(%h, %t) => Cons(%g(%h), @map(%g, %t)) } }
        def @sum(%xs: List[float64]) -> float64 {
          match (%xs) { Nil => 0.0f64, Cons(%h, %t) => %h + @sum(%t) } }
        def @f(%x: float64, %y: float64) -> float64 {
          let %pairs = @map(fn (%u: float64) { (%u * %y, 3) }, Cons(%x, Cons(%y, Nil())));
          let %ups = @map(fn (%p: (float64, int64)) { %p.0 * %p.0 * %x }, %pairs); @sum(%ups) }""",
    ],
    ids=["capture", "returned", "passed", "in a list", "chosen", "recursive", "polymorphic"],
)
def test_function_values_are_differentiated(text: str) -> None:
    check(text, TWO, X, Y)


def test_a_gradient_of_a_local_function_leaves_its_captures_alone() -> None:
    text = """
    def @main(%x: float64, %y: float64) {
      let %h = fn (%a: float64) -> float64 { %a * %a * %y * %x };
      let %g = grad(%h); %g(%x) }
    """
    assert_close(run(text, X, Y), 2 * X * Y * X)


def test_an_inner_gradient_is_not_confused_with_the_outer_one() -> None:
    # d/dx (x * d/dy (x + y)) is 1: the inner gradient is the constant 1.
    text = """
    def @h(%x: float64) -> float64 {
      let %i = fn (%y: float64) -> float64 { %x + %y };
      let %d = grad(%i); %x * %d(%x) }
    def @main(%x: float64) { let %g = grad(@h); %g(%x) }
    """
    assert_close(run(text, X), scalar(1.0))


def test_three_levels_of_gradients_see_each_others_variables() -> None:
    text = """
    def @h(%x: float64) -> float64 {
      let %i = fn (%y: float64) -> float64 {
        let %j = fn (%z: float64) -> float64 { sin(%x * %y * %z) };
        let %d = grad(%j); %d(%y) * %x };
      let %e = grad(%i); %e(%x) * %x }
    def @main(%x: float64) { let %g = grad(@h); %g(%x) }
    """

    def inner(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        z = y.detach().requires_grad_() + 0 * y
        return x * y * torch.cos(x * y * z) * x if z is None else torch.cos(x * y * y) * x * y * x

    x = X.clone().requires_grad_()
    y = (x * 1.0).detach().requires_grad_()
    slope = torch.autograd.grad(inner(x, y), y, create_graph=True)[0]
    # The value of the slope at y = x, as a function of x alone.
    total = slope * x
    dx, dy = torch.autograd.grad(total, (x, y))
    assert_close(run(text, X), dx + dy)


def test_a_gradient_of_a_gradient_of_a_local_function() -> None:
    text = """
    def @main(%x: float64, %z: float64) {
      let %f = fn (%y: float64) -> float64 { sin(%y) * %z };
      let %d = grad(%f); let %dd = grad(%d); %dd(%x) }
    """
    assert_close(run(text, X, Y), -torch.sin(X) * Y)


def test_the_function_to_differentiate_may_be_passed_in() -> None:
    text = """
    def @slope(%f: fn (float64) -> float64, %x: float64) -> float64 {
      let %g = grad(%f); %g(%x) * %x }
    def @main(%x: float64, %z: float64) {
      let %a = fn (%y: float64) -> float64 { sin(%y) * %z };
      let %b = fn (%y: float64) -> float64 { %y * %y * %z };
      (@slope(%a, %x), @slope(%b, %x)) }
    """
    assert_close(run(text, X, Y), (torch.cos(X) * Y * X, 2 * X * Y * X))


def test_the_function_to_differentiate_may_be_chosen_while_running() -> None:
    text = """
    def @main(%x: float64, %z: float64) {
      let %a = fn (%y: float64) -> float64 { sin(%y) * %z };
      let %b = fn (%y: float64) -> float64 { %y * %y * %z };
      let %f = if (%x < 0.5f64) { %a } else { %b };
      let %g = grad(%f); %g(%x) }
    """
    module = expanded(text)
    assert_close(evaluate(module, "main", (X, Y)), torch.cos(X) * Y)
    assert_close(evaluate(module, "main", (scalar(2.0), Y)), 4 * Y)


def test_a_gradient_may_be_kept_as_a_value() -> None:
    text = """
    def @apply(%f: fn (float64) -> float64, %x: float64) -> float64 { %f(%f(%x)) }
    def @main(%x: float64, %z: float64) {
      let %a = fn (%y: float64) -> float64 { sin(%y) * %z };
      let %g = grad(%a); @apply(%g, %x) }
    """
    assert_close(run(text, X, Y), torch.cos(torch.cos(X) * Y) * Y)


def test_a_polymorphic_function_is_differentiated_at_the_types_of_its_use() -> None:
    text = """
    def @first[A](%x: float64, %a: A) -> float64 { %x * %x }
    def @main(%x: float64, %n: int64) { let %g = grad{wrt=(0,)}(@first); %g(%x, %n) }
    """
    assert_close(run(text, X, 3), 2 * X)


PULLED = """
def @pulled(%f: fn (float64) -> float64, %x: float64) -> float64 {
  let %v = vjp(@given)(%x); let %p = %v.1; %p(%v.0) }
""".replace("@given", "%f")


@pytest.mark.parametrize(
    "body",
    [
        "@pulled(fn (%a: float64) -> float64 { %a * %a * %y }, %x)",
        "@pulled(@square, %x) * @pulled(fn (%a: float64) -> float64 { sin(%a) }, %y)",
        "@outer(fn (%a: float64) -> float64 { %a * %a * %y }, %x)",
        "@again(fn (%a: float64) -> float64 { sin(%a) * %y }, 3, %x)",
        "@again(@square, 2, %x) * %y",
    ],
)
def test_a_pullback_of_what_is_passed_in(body: str) -> None:
    text = f"""{PULLED}
    def @square(%a: float64) -> float64 {{ %a * %a }}
    def @outer(%f: fn (float64) -> float64, %x: float64) -> float64 {{ @pulled(%f, sin(%x)) }}
    def @again(%f: fn (float64) -> float64, %n: int64, %x: float64) -> float64 {{
      if (%n < 1) {{ %x }}
      else {{ let %v = vjp(%f)(%x); let %p = %v.1; @again(%f, %n - 1, %p(%v.0)) }} }}
    def @f(%x: float64, %y: float64) -> float64 {{ {body} }}
    """

    def pulled(function: Any, x: Any) -> Any:
        value = function(x)
        return torch.autograd.grad(value, x, value, create_graph=True)[0]

    def again(function: Any, n: int, x: Any) -> Any:
        return x if n < 1 else again(function, n - 1, pulled(function, x))

    def square(a: Any) -> Any:
        return a * a

    x, y = (v.clone().requires_grad_() for v in (scalar(0.3), scalar(1.7)))
    expected = {
        "@pulled(fn": lambda: pulled(lambda a: a * a * y, x),
        "@pulled(@s": lambda: pulled(square, x) * pulled(torch.sin, y),
        "@outer(fn ": lambda: pulled(lambda a: a * a * y, x.sin()),
        "@again(fn ": lambda: again(lambda a: a.sin() * y, 3, x),
        "@again(@sq": lambda: again(square, 2, x) * y,
    }[body[:10]]()
    main = "def @main(%x: float64, %y: float64) { value_and_grad(@f)(%x, %y) }"
    module = expand_transforms(prepared(text + main), "main")
    verify(module, Stage.DERIVED)
    found = evaluate(module, "main", [x.detach(), y.detach()])
    assert_close(found, (expected, _grads(expected, x, y)))


def _grads(value: Any, *inputs: Any) -> tuple[Any, ...]:
    return torch.autograd.grad(value, inputs)


def test_a_gradient_of_a_function_that_takes_functions() -> None:
    text = """
    def @twice(%f: fn (float64) -> float64, %x: float64) -> float64 { %f(%f(%x)) }
    def @slope(%f: fn (float64) -> float64, %x: float64) -> float64 {
      grad{wrt=(1,)}(@twice)(%f, %x) }
    def @main(%x: float64, %y: float64) {
      @slope(fn (%a: float64) -> float64 { %a * %a * %y }, %x) }
    """
    x, y = scalar(0.3), scalar(1.7)
    assert_close(run(text, x, y), 4 * x**3 * y**3)
