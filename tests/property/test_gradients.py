"""Gradients of random programs are what torch's autograd finds through the evaluator."""

from __future__ import annotations

from typing import Any

import torch
from hypothesis import given, settings

from pyrelay.infer import infer
from pyrelay.ir.equality import alpha_equal
from pyrelay.ir.module import Module
from pyrelay.ir.normal_form import to_anf
from pyrelay.ir.verify import Stage, verify
from pyrelay.passes.normalise.flavours import with_flavours
from pyrelay.passes.simplify.promote_refs import promote_refs
from pyrelay.passes.simplify.simplify import simplify
from pyrelay.passes.transforms import expand_transforms
from pyrelay.runtime.compile.evaluator import evaluate
from pyrelay.runtime.host.compiled import compile_module
from pyrelay.text.json import from_json, to_json
from pyrelay.text.parser import parse_module
from pyrelay.text.printer import to_text
from tests.strategies import Program, programs
from tests.tolerances import assert_program

PARAMS = "%a: Tensor[(N, M), float64], %v: Tensor[(M,), float64], %s: float64, %k: int64, %b: bool"
FIRST = f"""
def @derived[N: Dim, M: Dim]({PARAMS}) {{
  value_and_grad{{wrt=(0, 1, 2), single=False}}(@main)(%a, %v, %s, %k, %b)
}}
"""
SECOND = f"""
def @slope[N: Dim, M: Dim]({PARAMS}) -> float64 {{
  let %g = grad{{wrt=(0, 1, 2), single=False}}(@main)(%a, %v, %s, %k, %b);
  sum(%g.0 * %g.0) + sum(%g.1) + %g.2
}}
def @derived[N: Dim, M: Dim]({PARAMS}) {{
  value_and_grad{{wrt=(0, 1, 2), single=False}}(@slope)(%a, %v, %s, %k, %b)
}}
"""


HALF = settings(max_examples=settings().max_examples // 2)


def derived(program: Program, text: str) -> Module:
    """Return the program with functions that differentiate it, expanded."""
    bare = to_text(program.module).replace(", typed]", "]", 1)
    module = expand_transforms(to_anf(infer(parse_module(bare + text))))
    verify(module, Stage.DERIVED)
    return module


def by_autograd(result: torch.Tensor, inputs: list[Any], *, again: bool = False) -> Any:
    """Return what torch finds for the three float inputs."""
    if not result.requires_grad:
        return tuple(torch.zeros_like(x) for x in inputs[:3])
    return torch.autograd.grad(result, inputs[:3], create_graph=again, materialize_grads=True)


def assert_first(program: Program) -> None:
    """Compare value and gradient with torch's."""
    value, gradients = evaluate(derived(program, FIRST), "derived", program.arguments())
    inputs = program.arguments(requires_grad=True)
    expected = evaluate(program.module, "main", inputs, grad=True)
    assert_program(value, expected.detach())
    assert_program(gradients, by_autograd(expected, inputs))


def assert_second(program: Program) -> None:
    """Compare the gradient of a function of the gradient with torch's."""
    value, gradients = evaluate(derived(program, SECOND), "derived", program.arguments())
    inputs = program.arguments(requires_grad=True)
    a, v, s = by_autograd(evaluate(program.module, "main", inputs, grad=True), inputs, again=True)
    expected = (a * a).sum() + v.sum() + s
    assert_program(value, expected.detach())
    assert_program(gradients, by_autograd(expected, inputs))


@given(programs(differentiable=True))
def test_a_gradient_is_what_autograd_finds(program: Program) -> None:
    assert_first(program)


@HALF
@given(programs(5, differentiable=True))
def test_a_second_gradient_is_what_autograd_finds(program: Program) -> None:
    assert_second(program)


@HALF
@given(programs(differentiable=True))
def test_a_gradient_simplifies_and_compiles_to_the_same_value(program: Program) -> None:
    module = derived(program, FIRST)
    final = with_flavours(simplify(module, "derived", lambda m, entry: evaluate(m, entry, ())))
    verify(final, Stage.FLAVOURED)
    compiled = compile_module(final, "derived", torch.device("cpu"))
    expected = evaluate(module, "derived", program.arguments())
    assert_program(compiled(*program.arguments()), expected)


@HALF
@given(programs(differentiable=True))
def test_a_derived_program_reads_back(program: Program) -> None:
    module = derived(program, FIRST)
    assert alpha_equal(parse_module(to_text(module)), module)
    again = from_json(to_json(module))
    assert isinstance(again, Module)
    assert to_text(again, spans=True) == to_text(module, spans=True)


@given(programs(differentiable=True, effects=True))
def test_a_gradient_flows_through_cells(program: Program) -> None:
    assert_first(program)


@given(programs(differentiable=True, effects=True))
def test_a_gradient_flows_through_cells_that_became_values(program: Program) -> None:
    bare = to_text(program.module).replace(", typed]", "]", 1)
    module = expand_transforms(promote_refs(to_anf(infer(parse_module(bare + FIRST)))))
    verify(module, Stage.DERIVED)
    expected = evaluate(derived(program, FIRST), "derived", program.arguments())
    assert_program(evaluate(module, "derived", program.arguments()), expected)


@HALF
@given(programs(5, differentiable=True, effects=True))
def test_a_second_gradient_flows_through_cells(program: Program) -> None:
    assert_second(program)
