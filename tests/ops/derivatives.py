"""First and second derivatives of operator calls, and the two things they must agree with."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pytest
import torch

from pyrelay.ir.build import Value
from pyrelay.ir.dims import Dim
from pyrelay.ir.op import NoGradient, Op, Sample
from tests.ops.checks import operands_of
from tests.ops.materials import tensors, widened
from tests.ops.programs import (
    Program,
    call_program,
    differentiate,
    float_parameters,
    float_parts,
)
from tests.ops.references import call_reference, reference

STEP = 1e-5


class Derivative:
    """An operator call in double precision on one sample, and its first derivative."""

    def __init__(self, op: Op, sample: Sample, names: Mapping[int, Dim] | None = None) -> None:
        self.op, self.sample = op, widened(sample)
        self.program, result = call_program(op, self.sample, names or {})
        self.inputs = list(self.program.params)
        self.values = tensors(self.sample)
        self.by = float_parameters(self.program)
        self.results = float_parts(result)
        self.cotangents = differentiate(self.program, self.results, self.by) if self.exists else []
        sizes = {str(dim): size for size, dim in (names or {}).items()}
        self.seeds = random_values(self.results, sizes, seed=1)

    @property
    def exists(self) -> bool:
        """Whether floats go in and come out."""
        return bool(self.by and self.results)

    @property
    def args(self) -> list[torch.Tensor]:
        """The operands and then the cotangents of the results."""
        return [*self.values, *self.seeds]

    def value(self, args: Sequence[torch.Tensor]) -> list[torch.Tensor]:
        """Give the float results of the call itself."""
        return results_of(self.program, self.results, args)

    def gradient(self, args: Sequence[torch.Tensor]) -> list[torch.Tensor]:
        """Give the cotangents of the float operands."""
        return results_of(self.program, self.cotangents, args)


def results_of(
    program: Program, values: Sequence[Value], args: Sequence[Any]
) -> list[torch.Tensor]:
    """Give several values of a program, which stays as it was."""
    before = len(program.builder.bindings)
    found = program.run(program.builder.tuple(values), args)
    del program.builder.bindings[before:]
    return list(found)


def random_values(like: Sequence[Value], sizes: Mapping[str, int], seed: int) -> list[torch.Tensor]:
    """Make a double for each value, of its shape."""
    generator = torch.Generator().manual_seed(seed)
    shapes = [tuple(d.evaluate(sizes) for d in v.shape) for v in like]
    return [torch.randn(s, generator=generator, dtype=torch.float64) for s in shapes]


def dot(left: Sequence[torch.Tensor], right: Sequence[torch.Tensor]) -> float:
    """Give the inner product of two lists of tensors."""
    return sum(float((a * b).sum()) for a, b in zip(left, right, strict=True))


def moved(
    args: Sequence[torch.Tensor], at: Sequence[int], along: Sequence[torch.Tensor], step: float
) -> list[torch.Tensor]:
    """Give arguments with those `at` the positions moved along a direction."""
    found = list(args)
    for position, direction in zip(at, along, strict=True):
        found[position] = found[position] + step * direction
    return found


def assert_is_slope(
    slope: Sequence[torch.Tensor],
    function: Callable[[Sequence[torch.Tensor]], Sequence[torch.Tensor]],
    weights: Sequence[torch.Tensor],
    args: Sequence[torch.Tensor],
    at: Sequence[int],
) -> None:
    """Compare a gradient of the weighted results with central differences, in two directions."""
    generator = torch.Generator().manual_seed(2)
    for _ in range(2):
        along = [torch.randn(args[i].shape, generator=generator, dtype=torch.float64) for i in at]
        ahead = dot(function(moved(args, at, along, STEP)), weights)
        behind = dot(function(moved(args, at, along, -STEP)), weights)
        expected = (ahead - behind) / (2 * STEP)
        assert dot(slope, along) == pytest.approx(expected, rel=1e-5, abs=1e-6)


def torch_gradient(case: Derivative) -> list[torch.Tensor]:
    """Give torch's own gradient of its own function, or of our lowering where it has none."""
    values = [v.clone().requires_grad_(v.is_floating_point()) for v in case.values]
    wanted = [v for v in values if v.requires_grad]
    with torch.enable_grad():
        found = _in_torch(case, values)
    flat = [found] if isinstance(found, torch.Tensor) else list(found)
    floats = [f for f in flat if f.is_floating_point()]
    pairs = [(f, s) for f, s in zip(floats, case.seeds, strict=True) if f.requires_grad]
    if not pairs:
        return [torch.zeros_like(v) for v in wanted]
    outputs, weights = zip(*pairs, strict=True)
    try:
        grads = torch.autograd.grad(outputs, wanted, weights, allow_unused=True)
    except RuntimeError as error:
        # Torch refuses some derivatives that are zero almost everywhere; others it gives as zero.
        if not isinstance(case.op.grad, NoGradient) or "not implemented" not in str(error):
            raise
        return [torch.zeros_like(v) for v in wanted]
    return [torch.zeros_like(v) if g is None else g for v, g in zip(wanted, grads, strict=True)]


def _in_torch(case: Derivative, values: Sequence[torch.Tensor]) -> Any:
    if reference(case.op) is not None:
        return call_reference(case.op, operands_of(case.sample, values), case.sample.attrs)
    program, result = call_program(case.op, case.sample, {})
    return program.run_in_torch(result, values)
