"""What operators declare, or are found, to do with storage."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from pyrelay.ir.calls.attributes import bind_attrs
from pyrelay.ir.calls.storage import makes_storage, overwritten_operand
from pyrelay.ir.op import Library, Op
from pyrelay.lower_torch.apply import run_time_attr
from pyrelay.operators.composite import einsum, optim
from pyrelay.operators.matrices import products as linalg
from pyrelay.operators.primitive import activation, compare, reduce, view
from pyrelay.operators.table import ALL
from tests.ops.checks import assert_equal, operands_of, samples
from tests.ops.materials import tensors
from tests.ops.programs import call_program
from tests.ops.references import promoted

FRESH = [op for op in ALL if makes_storage(op)]
UPDATING = [op for op in ALL if overwritten_operand(op) is not None]


def storages(value: Any) -> set[int]:
    if isinstance(value, tuple | list):
        return set().union(*map(storages, value))
    is_there = isinstance(value, torch.Tensor) and value.numel()
    return {value.untyped_storage().data_ptr()} if is_there else set()


@pytest.mark.parametrize("op", FRESH, ids=lambda op: op.name)
def test_results_share_no_storage(op: Op) -> None:
    for sample in samples(op):
        program, result = call_program(op, sample, {})
        given = tensors(sample)
        assert not storages(program.run(result, given)) & storages(given), sample


def test_what_may_give_an_operand_back_is_known() -> None:
    for op in (activation.stop_gradient, compare.cast, einsum.einsum, reduce.sum_to, view.reshape):
        assert not makes_storage(op)
    for op in (linalg.matmul, reduce.sum_, optim.sgd_step, activation.relu):
        assert makes_storage(op)


@pytest.mark.parametrize("op", UPDATING, ids=lambda op: op.name)
def test_in_place_gives_the_same_value_where_it_overwrites(op: Op) -> None:
    lowering = op.lowering
    assert isinstance(lowering, Library)
    assert lowering.in_place is not None
    place = overwritten_operand(op)
    assert place is not None
    for sample in samples(op):
        operands = promoted(op, operands_of(sample, tensors(sample)))
        attrs = [
            run_time_attr(v, lambda dim: dim.evaluate({}))
            for v in bind_attrs(op, sample.attrs).values()
        ]
        expected = lowering.body(torch, *operands, *attrs)
        target = operands[place] = operands[place].clone()
        found = lowering.in_place(torch, *operands, *attrs)
        assert_equal(found, expected, rtol=0, atol=0)
        backwards = any(
            entry[0] == "slice" and (entry[3] or 1) < 0 for entry in sample.attrs.get("spec", ())
        )
        assert backwards or storages(found) == storages(target)
