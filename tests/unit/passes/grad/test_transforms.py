"""What transforms give, and the mistakes that are found before anything runs."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from pyrelay.diagnostics.diagnostic import CheckError
from pyrelay.extension import declare
from pyrelay.infer import infer
from pyrelay.ir.expr import Transform
from pyrelay.ir.normal_form import to_anf
from pyrelay.ir.op import ShapeBehaviour
from pyrelay.ir.rules import same_as_operand
from pyrelay.ir.traverse import post_order
from pyrelay.operators.table import BY_NAME
from pyrelay.passes.transforms import expand_transforms
from pyrelay.runtime.compile.evaluator import evaluate
from pyrelay.text.parser import parse_module
from pyrelay.text.printer import to_text
from tests.unit.passes.grad.programs import assert_close, expanded, prepared, run, scalar, vector

X, Y = scalar(0.3), scalar(2.0)
PRODUCT = "def @f(%x: float64, %y: float64) -> float64 { %x * %y * %x }\n"


def test_a_module_without_transforms_is_given_back() -> None:
    module = prepared(PRODUCT)
    assert expand_transforms(module) is module


def test_no_transform_remains() -> None:
    text = PRODUCT + "def @main(%x: float64, %y: float64) { grad(@f)(%x, %y) }"
    functions = expanded(text).functions.values()
    assert not any(isinstance(n, Transform) for f in functions for n in post_order(f))


def test_two_expansions_give_the_same_text() -> None:
    text = PRODUCT + "def @main(%x: float64, %y: float64) { grad(@f)(%x, %y) }"
    assert to_text(expanded(text)) == to_text(expanded(text))


def test_derived_functions_say_what_they_come_from() -> None:
    module = expanded(PRODUCT + "def @main(%x: float64, %y: float64) { grad(@f)(%x, %y) }")
    assert module.functions["f_bwd"].span.because == "gradient of f"
    assert module.functions["f_bwd"].span.text.startswith("def @f")


@pytest.mark.parametrize(
    ("transform", "expected"),
    [
        ("grad(@f)(%x, %y)", (2 * X * Y, X * X)),
        ("grad{wrt=(1,)}(@f)(%x, %y)", X * X),
        ("grad{wrt=(1,), single=False}(@f)(%x, %y)", (X * X,)),
        ("value_and_grad(@f)(%x, %y)", (X * Y * X, (2 * X * Y, X * X))),
        ("value_and_grad{wrt=(0,)}(@f)(%x, %y)", (X * Y * X, 2 * X * Y)),
        (
            "let %v = vjp(@f)(%x, %y); let %p = %v.1; (%v.0, %p(%y))",
            (X * Y * X, (4 * Y * X, Y * X * X)),
        ),
    ],
)
def test_a_transform_gives_what_its_type_says(transform: str, expected: object) -> None:
    text = PRODUCT + f"def @main(%x: float64, %y: float64) {{ {transform} }}"
    assert_close(run(text, X, Y), expected)


def test_an_auxiliary_result_is_given_and_not_differentiated() -> None:
    text = """
    def @f(%x: float64, %y: float64) -> (float64, (float64, int64)) { (%x * %y, (sin(%y), 3)) }
    def @main(%x: float64, %y: float64) { value_and_grad{has_aux=True}(@f)(%x, %y) }
    """
    assert_close(run(text, X, Y), ((X * Y, (torch.sin(Y), 3)), (Y, X)))


def test_a_pullback_takes_a_cotangent_of_each_part_of_the_result() -> None:
    text = """
    def @f(%x: Tensor[(N,), float64], %y: float64) -> (Tensor[(N,), float64], (int64, float64)) {
      (%x * %y, (4, %y * %y)) }
    def @main(%x: Tensor[(N,), float64], %y: float64, %g: Tensor[(N,), float64]) {
      let %v = vjp(@f)(%x, %y); let %p = %v.1; (%p((%g, (0, 1.0f64))), %p((%x, (0, 0.0f64)))) }
    """.replace("def @f(", "def @f[N: Dim](").replace("def @main(", "def @main[N: Dim](")
    x, g = vector(1, 2, 3), vector(1, 0, 10)
    once, again = run(text, x, Y, g)
    assert_close(once, (g * Y, (g * x).sum() + 2 * Y))
    assert_close(again, (x * Y, (x * x).sum()))


def test_a_pullback_inside_a_differentiated_function_is_differentiated() -> None:
    text = """
    def @h(%a: float64) -> float64 { sin(%a) * %a }
    def @f(%x: float64) -> float64 {
      let %v = vjp(@h)(%x); let %p = %v.1; %p(%x) * %v.0 }
    def @main(%x: float64) { grad(@f)(%x) }
    """
    x = X.clone().requires_grad_()
    y = (torch.cos(x) * x + torch.sin(x)) * x * (torch.sin(x) * x)
    assert_close(run(text, X), torch.autograd.grad(y, x)[0])


def test_effects_happen_once_and_in_order() -> None:
    text = """
    def @f(%x: float64, %log: ref(float64)) -> float64 {
      let! %a = ref_read(%log);
      let! %b = ref_write(%log, %a * 10.0f64 + 1.0f64);
      let %y = %x * %x;
      let! %c = ref_read(%log);
      let! %d = ref_write(%log, %c * 10.0f64 + 2.0f64);
      %y * %a }
    def @main(%x: float64) {
      let! %log = ref(3.0f64);
      let! %g = grad{wrt=(0,)}(@f)(%x, %log);
      (%g, ref_read(%log)) }
    """
    assert_close(run(text, X), (6 * X, scalar(312.0)))


def codes(text: str) -> tuple[str, ...]:
    """Return the codes of the mistakes in a program."""
    with pytest.raises(CheckError) as caught:
        expanded(text)
    return caught.value.codes


def test_all_mistakes_are_reported_at_once() -> None:
    text = """
    def @f(%x: Tensor[(3,), float64], %n: int64) -> Tensor[(3,), float64] { %x }
    def @main(%x: Tensor[(3,), float64], %n: int64) { grad{wrt=(1,)}(@f)(%x, %n) }
    def @other(%x: Tensor[(3,), float64], %n: int64) { value_and_grad{wrt=(0,)}(@f)(%x, %n) }
    """
    assert codes(text) == ("RL302", "RL301", "RL301")
    with pytest.raises(CheckError, match=r"vjp"):
        expanded(text)
    with pytest.raises(CheckError, match=r"with respect to `n`"):
        expanded(text)


def test_a_function_that_differentiates_itself_is_refused() -> None:
    text = "def @f(%x: float64) -> float64 { let %g = grad(@f); %g(%x) * %x }"
    assert codes(text) == ("RL303",)


def test_a_function_from_outside_cannot_be_differentiated() -> None:
    text = """def @main(%f: fn (float64) -> float64, %x: float64) -> float64 {
      let %g = grad(%f); %g(%x) * %x }"""
    assert codes(text) == ("RL304",)


def test_a_type_that_grows_with_every_level_has_no_gradient() -> None:
    text = """
    type Nest[T] { End, More(T, Nest[(T, T)]) }
    def @f(%n: Nest[float64], %x: float64) -> float64 {
      match (%n) { End => %x, More(%y, _) => %y * %x } }
    def @main(%n: Nest[float64], %x: float64) { grad(@f)(%n, %x) }
    """
    assert codes(text) == ("RL306",)


def cube(x: Any) -> Any:
    return x * x * x


CUBE = declare(
    cube, type_rule=same_as_operand(), grad=None, samples=(), shape=ShapeBehaviour.POINTWISE
)


def test_an_operator_without_a_stated_derivative_is_never_a_silent_zero() -> None:
    text = """
    def @f(%x: float64, %y: float64) -> float64 { let %c = cube(%x); %c * %y }
    def @both(%x: float64, %y: float64) { grad(@f)(%x, %y) }
    def @main(%x: float64, %y: float64) { grad{wrt=(1,)}(@f)(%x, %y) }
    """
    operators = {**BY_NAME, "cube": CUBE}
    module = to_anf(infer(parse_module(text, operators=operators)))
    with pytest.raises(CheckError, match="`cube` has no gradient"):
        expand_transforms(module)
    wanted = text.replace("def @both(%x: float64, %y: float64) { grad(@f)(%x, %y) }", "")
    module = expand_transforms(to_anf(infer(parse_module(wanted, operators=operators))))
    assert_close(evaluate(module, "main", (X, Y)), X * X * X)
