"""Every operator passes through a box: all that a fallback sees, and what it gives back fits."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from pyrelay import RunError, dispatch
from pyrelay.dispatch.registry import REGISTRY
from pyrelay.dispatch.state import STATE
from pyrelay.dispatch.view import calls_of, view_of
from pyrelay.ir.dims import Dim
from pyrelay.ir.module import Module
from pyrelay.ir.op import Clash, Effect, Op
from pyrelay.operators.table import ALL
from pyrelay.passes.normalise.flavours import with_flavours
from pyrelay.runtime.compile.evaluator import evaluate
from pyrelay.runtime.host import compile_module
from tests.ops.checks import assert_equal, samples
from tests.ops.materials import shape_names, tensors
from tests.ops.programs import CPU, call_program

Boxed = dispatch.mode("Boxed")
PURE = [op for op in ALL if not op.effect & ~Effect.FAIL]


def module_of(op: Op, sample: Any, names: dict[int, Dim]) -> Module:
    program, result = call_program(op, sample, names)
    return with_flavours(program.module(result))


@pytest.mark.parametrize("op", PURE, ids=lambda op: op.name)
def test_an_operator_gives_through_a_box_what_it_gives_without(op: Op) -> None:
    seen: list[dispatch.OperatorCall] = []

    def boxed(call: dispatch.OperatorCall) -> Any:
        seen.append(call)
        assert len(call.operands) == len(call.operator.operands)
        assert list(call.attributes) == [p.name for p in call.operator.attributes]
        return call.redispatch(*call.operands)

    for sample in samples(op):
        module, given = module_of(op, sample, {}), tensors(sample)
        expected = compile_module(module, "main", CPU)(*given)
        with dispatch.fallback(Boxed, boxed), dispatch.include(Boxed):
            view = view_of(REGISTRY.table, STATE.get(), dispatch.CPU, calls_of(module))
            seen.clear()
            found = compile_module(module, "main", CPU, view=view)(*given)
            assert op in [call.operator for call in seen]
            assert_equal(found, expected, rtol=1e-5, atol=1e-6)
            seen.clear()
            assert_equal(evaluate(module, "main", given), expected, rtol=1e-5, atol=1e-6)
            assert op in [call.operator for call in seen]
            assert all(call.device == torch.device("cpu") for call in seen)


@pytest.mark.parametrize("op", PURE, ids=lambda op: op.name)
def test_results_fit_where_sizes_are_names(op: Op) -> None:
    for sample in samples(op):
        try:
            module = module_of(op, sample, shape_names(sample))
        except Clash:
            continue  # some operators need a number where others take a name
        given = tensors(sample)
        expected = compile_module(module, "main", CPU)(*given)
        with dispatch.fallback(Boxed, lambda call: call.redispatch()), dispatch.include(Boxed):
            view = view_of(REGISTRY.table, STATE.get(), dispatch.CPU, calls_of(module))
            found = compile_module(module, "main", CPU, view=view)(*given)
        assert_equal(found, expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("op", PURE, ids=lambda op: op.name)
def test_a_result_that_lost_an_element_or_its_dtype_does_not_fit(op: Op) -> None:
    def spoiled(call: dispatch.OperatorCall) -> Any:
        result = call.redispatch()
        if call.operator is not op:
            return result
        return spoil(result)

    def spoil(value: Any) -> Any:
        match value:
            case torch.Tensor():
                return value.to(torch.int8 if value.dtype is not torch.int8 else torch.int16)
            case tuple() if value:
                return (*value[:-1], spoil(value[-1]))
            case str():
                return 3
            case _:
                return str(value)

    for sample in list(samples(op))[:2]:
        module, given = module_of(op, sample, {}), tensors(sample)
        with dispatch.fallback(Boxed, spoiled), dispatch.include(Boxed):
            view = view_of(REGISTRY.table, STATE.get(), dispatch.CPU, calls_of(module))
            with pytest.raises(RunError) as caught:
                compile_module(module, "main", CPU, view=view)(*given)
        assert caught.value.codes == ("RL587",)
