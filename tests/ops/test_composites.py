"""Operators that are bodies in other operators: everything else follows from the body."""

from __future__ import annotations

import pytest
import torch

from pyrelay import Float, Tensor, relay
from pyrelay.ir.dims import Dim
from pyrelay.ir.expr import Call, Function, type_of
from pyrelay.ir.module import Module
from pyrelay.ir.op import (
    Clash,
    MadeOf,
    Op,
    Promotion,
    Sample,
    Stuck,
    TensorSpec,
    attribute,
    operand,
)
from pyrelay.ir.traverse import post_order
from pyrelay.ir.types import FnType, TensorType, bfloat16
from pyrelay.operators.builder import Value
from pyrelay.operators.declare import composite
from pyrelay.operators.primitive.math import exp, sigmoid
from pyrelay.operators.primitive.reduce import mean
from pyrelay.passes.normalise.write_out import write_out
from tests.ops.checks import assert_equal
from tests.ops.derivatives import Derivative, torch_gradient
from tests.ops.programs import Program, call_program
from tests.ops.rule_calls import floats, new_solver, type_of_call


def _gated(x: Value, y: Value | None, *, dim: int) -> Value:
    gate = sigmoid(x if y is None else x + y)
    return gate * exp(x - mean(x, dim=(dim,), keepdim=True))


GATED = composite(
    name="gated",
    doc="Elements through a gate.",
    params=(operand("x", promote=True), operand("y", promote=True), attribute("dim")),
    promotion=Promotion.FLOAT,
    body=_gated,
    torch_name=None,
    samples=lambda: (
        Sample((TensorSpec((3, 4)), TensorSpec((3, 4))), {"dim": 1}),
        Sample((TensorSpec((3, 4)), TensorSpec((4,))), {"dim": 0}),
    ),
)


def test_its_type_is_that_of_the_body() -> None:
    assert type_of_call(GATED, (floats("n", 4), floats(4)), {"dim": 0}) == floats("n", 4)


def test_its_type_waits_for_what_the_body_waits_for() -> None:
    solver = new_solver()
    for unknown in (solver.fresh(), floats(3, solver.fresh_dim_hole())):
        with pytest.raises(Stuck):
            type_of_call(GATED, (unknown, floats(4)), {"dim": 0}, solver)


def test_a_clash_in_the_body_speaks_of_the_composite() -> None:
    with pytest.raises(Clash) as caught:
        type_of_call(GATED, (floats(3, 4), floats(5)), {"dim": 0})
    assert caught.value.message.startswith("`gated` cannot broadcast")
    assert set(caught.value.labels) == {0, 1}
    with pytest.raises(Clash) as caught:
        type_of_call(GATED, (floats(3, 4), floats(4)), {"dim": 2})
    assert caught.value.message == "`gated` has no dim 2 here: the tensor has 2 dimensions"


def test_its_value_and_gradient_are_those_of_the_body() -> None:
    for sample in GATED.samples():
        case = Derivative(GATED, sample)
        assert_equal(case.gradient(case.args), torch_gradient(case), rtol=1e-7, atol=1e-9)
        x, y = case.values
        dim = sample.attrs["dim"]
        expected = torch.sigmoid(x + y) * torch.exp(x - x.mean(dim, keepdim=True))
        assert_equal(case.value(case.args), [expected], rtol=1e-7, atol=1e-9)


def test_half_types_are_computed_in_single_precision() -> None:
    program, result = call_program(
        GATED, Sample((TensorSpec((3, 4), "bfloat16"),) * 2, {"dim": 1}), {}
    )
    assert result.ty == TensorType((Dim.of(3), Dim.of(4)), bfloat16)
    x, y = (torch.randn(3, 4).bfloat16() for _ in range(2))
    wide = x.float()
    gate = torch.sigmoid(wide + y.float())
    expected = (gate * torch.exp(wide - wide.mean(1, keepdim=True))).bfloat16()
    assert torch.equal(program.run(result, (x, y)), expected)


def called(module: Module) -> set[str]:
    """Return the names of the operators that a module calls."""
    nodes = (n for f in module.functions.values() for n in post_order(f.body))
    return {n.callee.name for n in nodes if isinstance(n, Call) and isinstance(n.callee, Op)}


def test_the_body_replaces_the_call_unless_the_operator_is_opaque() -> None:
    program = Program()
    x, y = (program.parameter(floats(3, 4)) for _ in range(2))
    found = exp(GATED(x, y, dim=1))
    function = Function(
        tuple(program.params),
        program.builder.block(found),
        found.ty,
        ty=FnType(tuple(type_of(p) for p in program.params), found.ty),
        span=program.builder.span,
    )
    module = Module({"main": function}, {})
    assert "gated" in called(write_out(module, lambda op: op is GATED))
    written = called(write_out(module))
    assert written == {"add", "sigmoid", "mean", "subtract", "exp", "multiply"}


@relay.operator(
    samples=[Sample((TensorSpec((3,)),))],
    grad=None,
    fused=MadeOf(lambda args, _: args[0] * sigmoid(args[0])),
)
def swish(x: torch.Tensor) -> torch.Tensor:
    """Each element times its sigmoid."""
    return torch.nn.functional.silu(x)


@relay
def loss(x: Tensor[Float, (3,)]) -> Float:
    return relay.sum(swish(x))


@relay
def of_a_number() -> Float:
    return swish(0.5)


def test_a_users_composite_has_a_type_and_a_gradient() -> None:
    x = torch.tensor([0.5, -1.0, 2.0], requires_grad=True)
    torch.nn.functional.silu(x).sum().backward()
    assert_equal(loss(x.detach()), torch.nn.functional.silu(x.detach()).sum(), rtol=1e-6, atol=0.0)
    assert_equal(relay.grad(loss)(x.detach()), x.grad, rtol=1e-6, atol=1e-7)


def test_a_number_without_a_dtype_is_float32() -> None:
    half = torch.tensor(0.5)
    assert_equal(of_a_number(), torch.nn.functional.silu(half), rtol=1e-6, atol=0.0)


def test_a_users_operator_without_a_body_states_its_type() -> None:
    with pytest.raises(TypeError, match="`plain` needs a type rule"):

        @relay.operator(samples=[], grad=None)
        def plain(x: torch.Tensor) -> torch.Tensor:  # pyright: ignore[reportUnusedFunction]
            return x
