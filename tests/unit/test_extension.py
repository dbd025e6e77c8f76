"""Operators of a user's own say what they are inside kernels."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
import torch

from pyrelay import Float, Tensor, relay
from pyrelay.extension import declare
from pyrelay.ir.declaration.elements import Elements, Place, Source
from pyrelay.ir.declaration.lowering import MadeOf
from pyrelay.ir.expr import Function, type_of
from pyrelay.ir.module import Module
from pyrelay.ir.normal_form import to_anf
from pyrelay.ir.op import Op, Pullback, Sample, TensorSpec
from pyrelay.ir.rules import same_as_operand
from pyrelay.ir.types import FnType, float32, tensor_type
from pyrelay.kernels.fusion.decompose import decompose
from pyrelay.kernels.fusion.fuse import fuse
from pyrelay.kernels.outlined import outlined_of
from pyrelay.operators.builder import Value
from pyrelay.operators.primitive import activation
from pyrelay.runtime.compile.evaluator import evaluate
from pyrelay.text.printer import to_text
from tests.ops.checks import assert_equal
from tests.ops.fused import fused_result
from tests.ops.programs import Program

MATRIX = Sample((TensorSpec((3, 4)),), {"by": 2.0})


def shifted(x: torch.Tensor, *, by: float) -> torch.Tensor:
    """Each element times a number, less the one to its left; 0 stands left of the first."""
    left = torch.nn.functional.pad(x, (1, 0))[..., :-1]
    return x * by - left


def shifted_element(k: Elements, place: Place, x: Source, *, by: float) -> Any:
    """Return one element of `shifted`."""
    *lead, column = place.index
    is_there = k.gt(k.number(column), k.number(column - column))
    left = x.within((*lead, column - 1), is_there, k.const(0.0))
    return k.sub(k.mul(x(*place.index), k.const(by)), left)


SHIFTED = declare(
    shifted, type_rule=same_as_operand(), grad=None, samples=[MATRIX], fused=shifted_element
)


def program(op: Op) -> Module:
    """Return a program with an operator between two others."""
    made = Program()
    x = made.parameter(tensor_type(float32, 3, 4))
    found = activation.relu(op(activation.relu(x), by=2.0))
    types = tuple(type_of(p) for p in made.params)
    function = Function(
        tuple(made.params),
        made.builder.block(found),
        found.ty,
        ty=FnType(types, found.ty),
        span=made.builder.span,
    )
    return to_anf(Module({"main": function}, {}))


def kernels_of(op: Op) -> tuple[list[str], Any]:
    """Return the kernel functions of the program as texts, and its value."""
    whole = program(op)
    fused = fuse(decompose(whole, "main"))
    value = evaluate(fused, "main", [X])
    assert_equal(value, evaluate(whole, "main", [X]), rtol=1e-6, atol=1e-6)
    texts = [to_text(Module({n: fused.functions[n]}, {})) for n in outlined_of(fused).kernels]
    return texts, value


X = torch.randn((3, 4), generator=torch.Generator().manual_seed(0))


def test_an_operator_with_a_fused_meaning_is_part_of_a_kernel() -> None:
    found = fused_result(SHIFTED, MATRIX, {}, [X])
    assert_equal(found, shifted(X, by=2.0), rtol=1e-6, atol=1e-6)
    texts, value = kernels_of(SHIFTED)
    assert len(texts) == 1
    assert "shifted" in texts[0]
    assert_equal(value, torch.relu(shifted(torch.relu(X), by=2.0)), rtol=1e-6, atol=1e-6)


def test_an_operator_without_one_is_called_between_kernels() -> None:
    silent = declare(shifted, type_rule=same_as_operand(), grad=None, samples=[MATRIX])
    with pytest.raises(KeyError):
        fused_result(silent, MATRIX, {}, [X])
    texts, _ = kernels_of(silent)
    assert not any("shifted" in text for text in texts)


def test_an_operator_may_be_made_of_others() -> None:
    def code(args: tuple[Value, ...], attrs: Mapping[str, Any]) -> Value:
        return activation.relu(args[0] * attrs["by"])

    @relay.operator(type_rule=same_as_operand(), samples=[MATRIX], fused=MadeOf(code))
    def ramp(x: torch.Tensor, *, by: float) -> torch.Tensor:
        """The positive part of a multiple."""
        return torch.relu(x * by)

    texts, value = kernels_of(ramp.__relay__)
    assert len(texts) == 1
    assert "ramp" not in texts[0]
    assert_equal(value, torch.relu(X) * 2.0, rtol=1e-6, atol=1e-6)


@relay.operator(
    type_rule=same_as_operand(), grad=lambda p: _growth(p), samples=[Sample((TensorSpec((2, 3)),))]
)
def grown(x: torch.Tensor) -> torch.Tensor:
    """The exponential."""
    return torch.exp(x)


@relay.operator(
    type_rule=same_as_operand(),
    grad=lambda p: (relay.sum(relay.stack((p.g, -p.g)), 0) * relay.cos(input=p.args[0]),),
    samples=[Sample((TensorSpec((2, 3)),))],
)
def one(x: torch.Tensor) -> torch.Tensor:
    """One everywhere."""
    return torch.ones_like(x)


def _growth(p: Pullback) -> tuple[Value]:
    return (p.g * grown(p.args[0]) * one(p.args[0]),)


@relay
def total(x: Tensor[Float, (2, 3)]) -> Float:
    return relay.sum(grown(x) * x)


@relay
def slopes(x: Tensor[Float, (2, 3)]) -> Float:
    return relay.sum(relay.grad(total)(x) * x)


def test_a_gradient_rule_may_call_operators_of_the_user_and_of_the_library() -> None:
    x = torch.tensor([[1.0, -2.0, 0.5], [0.0, 3.0, -1.0]], requires_grad=True)
    expected = torch.autograd.grad((torch.exp(x) * x).sum(), x, create_graph=True)[0]
    second = torch.autograd.grad((expected * x).sum(), x)[0]
    assert_equal(relay.grad(total)(x.detach()), expected.detach(), rtol=1e-5, atol=1e-6)
    assert_equal(relay.grad(slopes)(x.detach()), second, rtol=1e-5, atol=1e-6)
