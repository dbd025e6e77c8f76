"""Bodies stay on the device of their operands; torch's `meta` device stands for another one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.utils._pytree import tree_map

from pyrelay.diagnostics.diagnostic import RunError
from pyrelay.ir.calls.attributes import bind_attrs
from pyrelay.ir.op import Effect, Host, Library, Op, Sample, ShapeBehaviour, View
from pyrelay.lower_torch.apply import run_time_attr
from pyrelay.operators.table import ALL
from pyrelay.passes.normalise.flavours import with_flavours
from pyrelay.runtime.host import compile_module
from tests.ops.checks import assert_equal, operands_of, samples
from tests.ops.materials import tensors
from tests.ops.programs import CPU, call_program
from tests.ops.references import promoted

CUDA = torch.device("cuda")
PRETENCE_ENDS = (
    "DataDependentOutputException",
    "DynamicOutputShapeException",
    "not linked with support for cuda",
    "CUDA driver version is insufficient",
    "no CUDA-capable device is detected",
    "list assignment index out of range",
    "cond must be a bool",
)
"""Limits of fake tensors: code that looks at values; kernels that guard the device themselves, with
other words where torch has CUDA; splits of empty tensors in torch 2.9; and `upsample_nearest2d`,
whose shape function checks a number as a bool."""
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
        except (NotImplementedError, RuntimeError, TypeError) as error:
            # Sizes that depend on the values: they have none on this device.
            limits = ("meta", *PRETENCE_ENDS)
            if not any(limit.lower() in str(error).lower() for limit in limits):
                raise
            continue
        assert devices(found) == {"meta"}, sample


ON_DEVICE = [op for op in ALL if not isinstance(op.lowering, Host) and not op.effect & ~Effect.FAIL]


def compiled(op: Op, sample: Sample, device: torch.device) -> Callable[..., Any]:
    """Return the host code of one call for a device."""
    program, result = call_program(op, sample, {})
    return compile_module(with_flavours(program.module(result)), "main", device)


@pytest.mark.parametrize("op", ON_DEVICE, ids=lambda op: op.name)
def test_an_operator_stays_on_a_pretended_gpu(op: Op) -> None:
    """Fake tensors have shape, dtype and device, and refuse to mix devices as torch does."""
    for sample in samples(op):
        with FakeTensorMode():
            given = [
                torch.empty_strided(t.shape, t.stride(), dtype=t.dtype, device=CUDA)
                for t in tensors(sample)
            ]
            program, result = call_program(op, sample, {})
            runs = (
                lambda: compiled(op, sample, CUDA)(*given),  # noqa: B023  called at once
                lambda: program.run(result, given, CUDA),  # noqa: B023
            )
            for run in runs:
                try:
                    found = run()
                except RunError as error:
                    if not any(limit in str(error) for limit in PRETENCE_ENDS):
                        raise
                    continue
                assert devices(found) <= {"cuda"}, sample


@pytest.mark.gpu
@pytest.mark.parametrize("op", ON_DEVICE, ids=lambda op: op.name)
def test_an_operator_gives_on_a_gpu_what_it_gives_here(op: Op) -> None:
    for sample in samples(op):
        given = tensors(sample)
        expected = compiled(op, sample, CPU)(*given)
        found = compiled(op, sample, CUDA)(*(t.to(CUDA) for t in given))
        assert devices(found) <= {"cuda"}, sample
        here = tree_map(lambda v: v.cpu() if isinstance(v, torch.Tensor) else v, found)
        assert_equal(here, expected, rtol=1e-4, atol=1e-4)
