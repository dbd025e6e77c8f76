"""Every operator's samples, fused and run as kernels in C."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import pytest

from pyrelay.ir.expr import Function
from pyrelay.ir.op import Op, Sample
from pyrelay.kernels.calling import Form, Layout
from pyrelay.kernels.fusion.decompose import decompose
from pyrelay.kernels.fusion.fuse import fuse
from pyrelay.kernels.operands import is_number
from pyrelay.lower_c.math import host_target
from pyrelay.lower_c.text import lower
from pyrelay.runtime.compile.evaluator import evaluate
from tests.ops.checks import samples
from tests.ops.fused import inputs
from tests.ops.in_kernels import OPS, Kernels
from tests.ops.test_kernels import program_of
from tests.tolerances import assert_kernel
from tests.unit.kernels.recognised import group_of
from tests.unit.lower_c.running import run


def in_c(function: Function, operands: Sequence[Any]) -> Any:
    """Return what the C of a function gives. Raises NoKernel."""
    forms = (Form.NUMBER if is_number(o) else Form.CONTIGUOUS for o in operands)
    lower(group_of(function), Layout(tuple(forms)), host_target())
    return run(function, operands)


def check(op: Op, sample: Sample) -> bool:
    """Compare a sample in kernels with the evaluator; return whether all kernels ran in C."""
    module, sizes = program_of(op, sample)
    args = inputs(op, sample)
    expected = evaluate(module, "main", args)
    in_kernels = Kernels(fuse(decompose(module, "main")), sizes, in_c)
    assert_kernel(in_kernels(args), expected)
    return not in_kernels.refused


EVERY: Final = 6
"""One operator of so many is run each time, and all of them with the slow tests."""


@pytest.mark.parametrize("op", OPS[::EVERY], ids=lambda op: op.name)
def test_a_sample_of_some_operators(op: Op) -> None:
    check(op, samples(op)[0])


@pytest.mark.slow
@pytest.mark.parametrize("op", OPS, ids=lambda op: op.name)
def test_all_samples_of_an_operator(op: Op) -> None:
    ran_in_c = [check(op, sample) for sample in samples(op)]
    assert any(ran_in_c)
