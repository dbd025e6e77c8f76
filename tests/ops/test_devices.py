"""Bodies stay on the device of their operands; torch's `meta` device stands for another one."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from pyrelay.ir.build import bind_attrs
from pyrelay.ir.op import Host, Library, Op, ShapeBehaviour, View
from pyrelay.ir.ops.table import ALL
from pyrelay.lower_torch.apply import run_time_attr
from tests.ops.checks import operands_of, samples
from tests.ops.materials import tensors
from tests.ops.references import promoted

META = torch.device("meta")


def with_bodies(kind: Any) -> Any:
    ops = [op for op in ALL if isinstance(op.lowering, kind) and not isinstance(op.lowering, Host)]
    return pytest.mark.parametrize("op", ops, ids=lambda op: op.name)


def devices(value: Any) -> set[str]:
    if isinstance(value, tuple | list):
        return set().union(*map(devices, value))
    return {value.device.type} if isinstance(value, torch.Tensor) else set()


def placed_number(value: Any) -> Any:
    return value.to(META) if isinstance(value, torch.Tensor) else value


def attributes(op: Op, attrs: Any) -> list[Any]:
    bound = bind_attrs(op, attrs)
    return [run_time_attr(v, lambda dim: dim.evaluate({})) for v in bound.values()]


@with_bodies((Library, View))
def test_a_body_gives_its_result_where_its_operands_are(op: Op) -> None:
    assert isinstance(op.lowering, Library | View)
    for sample in samples(op):
        placed = [t.to(META) for t in tensors(sample)]
        if op.shape is ShapeBehaviour.FACTORY:
            operands: list[Any] = [META]
        elif not any(t.dim() for t in placed):
            continue
        else:
            operands = [placed_number(v) for v in promoted(op, operands_of(sample, placed))]
            operands += [None] * (len(op.operands) - len(operands))
        try:
            found = op.lowering.body(torch, *operands, *attributes(op, sample.attrs))
        except (NotImplementedError, RuntimeError) as error:
            # Sizes that depend on the values: they have none on this device.
            if "meta" not in str(error):
                raise
            continue
        assert devices(found) == {"meta"}, sample
