"""Results that operators declare, or are found, to make in storage of their own are."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from pyrelay.ir.op import Op
from pyrelay.ir.ops import activation, compare, einsum, linalg, optim, reduce, view
from pyrelay.ir.ops.table import ALL
from pyrelay.ir.storage import makes_storage
from tests.ops.checks import samples
from tests.ops.materials import tensors
from tests.ops.programs import call_program

FRESH = [op for op in ALL if makes_storage(op)]


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
