"""Row by row, a call on all rows at once has the values of calls on single rows."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

import pytest
import torch

from pyrelay.ir.dims import Dim
from pyrelay.ir.expr import Call, Expr, Var, type_of
from pyrelay.ir.op import Op, Pointwise, Reduction, Sample
from pyrelay.ir.types import TensorType
from pyrelay.operators.table import ALL
from pyrelay.passes.batching.rules import RULES, batched, is_total
from tests.ops.checks import assert_equal, samples
from tests.ops.materials import specs, tensor
from tests.ops.programs import Program, call_program

COUNT = 3
BATCHED = [op for op in ALL if op in RULES or isinstance(op.lowering, Pointwise | Reduction)]
PARTIAL = {"embedding"}
"""Operators that may fail, so only callers that know that all rows are computed batch them."""


def choices(call: Call) -> Iterator[tuple[bool, ...]]:
    """Return which operands are rows: each set of tensors among them but the empty one."""
    options = [(False, True) if isinstance(a, Var) else (False,) for a in call.args]
    return (choice for choice in product(*options) if any(choice))


def is_batched(op: Op, sample: Sample, is_row: tuple[bool, ...] | None = None) -> bool:
    """Compare a call on all rows with calls on each; return whether any rule gives one."""
    single, result = call_program(op, sample, {})
    call = single.builder.bindings[-1].value if len(single.builder.bindings) == 1 else None
    if not isinstance(call, Call) or not (is_total(call) or op.name in PARTIAL):
        return False
    if is_row is None:
        found = [is_batched(op, sample, choice) for choice in choices(call)]
        return any(found)
    flags = dict(zip(call.args, is_row, strict=True))
    generator = torch.Generator().manual_seed(0)
    values = [
        torch.stack([tensor(spec, generator) for _ in range(COUNT)])
        if flags.get(param)
        else tensor(spec, generator)
        for param, spec in zip(single.params, specs(sample), strict=True)
    ]
    several = Program({})
    whole: dict[Expr, Expr] = {}
    for param in single.params:
        ty = type_of(param)
        assert isinstance(ty, TensorType)
        rows = TensorType((Dim.of(COUNT), *ty.shape), ty.dtype)
        whole[param] = several.parameter(rows if flags.get(param) else ty).atom
    operands = [several.builder.value(whole.get(a, a)) for a in call.args]
    found = batched(several.builder, call, operands, is_row, Dim.of(COUNT))
    if found is None:
        return False
    expected = [
        single.run(
            result,
            [v[i] if flags.get(p) else v for p, v in zip(single.params, values, strict=True)],
        )
        for i in range(COUNT)
    ]
    actual = several.run(found, values)
    assert_equal(actual, torch.stack(list(map(torch.as_tensor, expected))), rtol=1e-5, atol=1e-6)
    return True


@pytest.mark.parametrize("op", BATCHED, ids=lambda op: op.name)
def test_rows_of_the_value_are_values_of_rows(op: Op) -> None:
    found = [is_batched(op, sample) for sample in samples(op)]
    assert any(found) or op not in RULES


def test_every_float_operator_that_is_pointwise_is_batched() -> None:
    assert sum(any(is_batched(op, s) for s in samples(op)) for op in BATCHED) >= 60
