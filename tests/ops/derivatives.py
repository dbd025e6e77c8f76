"""First and second derivatives of operator calls, and the two things they must agree with."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

import pytest
import torch

from pyrelay.ir.dims import Dim
from pyrelay.ir.expr import Var
from pyrelay.ir.op import HiddenKind, NoGradient, Op, Sample
from pyrelay.ir.types import float64
from pyrelay.operators.builder import Value
from tests.ops.checks import operands_of
from tests.ops.materials import leaves, tensors, widened
from tests.ops.programs import Program, call_program, differentiate, float_parameters, float_parts
from tests.ops.references import call_reference, reference

STEP = 1e-5


class Derivative:
    """An operator call in double precision on one sample, and its first derivative."""

    def __init__(self, op: Op, sample: Sample, names: Mapping[int, Dim] | None = None) -> None:
        self.op, self.sample = op, widened(sample)
        self.program, result = call_program(op, self.sample, names or {})
        self.inputs = list(self.program.params)
        self.values = tensors(self.sample)
        buffers = buffer_leaves(op, self.sample)
        self.buffers = [v for i, v in enumerate(self.inputs) if i in buffers]
        self.by = self.without_buffers(float_parameters(self.program))
        # What follows the value of an operator with buffers are the new buffers, held constant.
        self.results = float_parts(result[0] if buffers else result)
        self.exists = bool(self.by and self.results)
        """Whether floats go in and come out."""
        first = results_of(self.program, self.results, self.values) if self.exists else []
        self.is_precise = all(r.dtype == float64 for r in self.results)
        """Whether the results are exact enough for finite differences."""
        self.seeds = random_like(first, seed=1)
        self.cotangents = differentiate(self.program, self.results, self.by) if self.exists else []

    def without_buffers(self, params: Sequence[Var]) -> list[Var]:
        """Return the parameters that carry a gradient."""
        return [v for v in params if v not in self.buffers]

    @property
    def args(self) -> list[torch.Tensor]:
        """The operands and then the cotangents of the results."""
        return [*self.values, *self.seeds]

    def value(self, args: Sequence[torch.Tensor]) -> list[torch.Tensor]:
        """Return the float results of the call itself."""
        return results_of(self.program, self.results, args)

    def gradient(self, args: Sequence[torch.Tensor]) -> list[torch.Tensor]:
        """Return the cotangents of the float operands."""
        return results_of(self.program, self.cotangents, args)


def buffer_leaves(op: Op, sample: Sample) -> set[int]:
    """Return which tensors of the sample are state of a model, which no derivative is taken by."""
    names = {h.name for h in op.hidden if h.holder is HiddenKind.BUFFER}
    found: set[int] = set()
    start = 0
    for param, arg in zip(op.operands, sample.operands, strict=False):
        count = len(list(leaves(arg)))
        found |= set(range(start, start + count)) if param.name in names else set()
        start += count
    return found


def results_of(
    program: Program, values: Sequence[Value], args: Sequence[Any]
) -> list[torch.Tensor]:
    """Return several values of a program, which stays as it was."""
    before = len(program.builder.bindings)
    found = program.run(program.builder.tuple(values), args)
    del program.builder.bindings[before:]
    return [torch.as_tensor(part, dtype=torch.float64) for part in found]


def random_like(values: Sequence[torch.Tensor], seed: int) -> list[torch.Tensor]:
    """Make a random tensor for each tensor, of its shape."""
    generator = torch.Generator().manual_seed(seed)
    return [torch.randn(v.shape, generator=generator, dtype=torch.float64) for v in values]


def dot(left: Sequence[torch.Tensor], right: Sequence[torch.Tensor]) -> float:
    """Return the inner product of two lists of tensors."""
    return sum(float((a * b).sum()) for a, b in zip(left, right, strict=True))


def moved(
    args: Sequence[torch.Tensor], at: Sequence[int], along: Sequence[torch.Tensor], step: float
) -> list[torch.Tensor]:
    """Return arguments with those `at` the positions moved along a direction."""
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


def torch_gradient(case: Derivative) -> list[torch.Tensor | None]:
    """Return torch's own gradient of its own function, or of our lowering where it has none; None
    for an operand by which torch refuses to differentiate."""
    constant: set[str] = set()
    while True:
        try:
            return _torch_gradient(case, constant)
        except RuntimeError as error:
            found = re.search(r"not differentiable with respect to argument '(\w+)'", str(error))
            if found is None or found[1] in constant:
                raise
            constant.add(found[1])


def _torch_gradient(case: Derivative, constant: Collection[str]) -> list[torch.Tensor | None]:
    held = {i for i, name in enumerate(_leaf_names(case)) if name in constant}
    places = [case.inputs.index(v) for v in case.by]
    values = [
        v.clone().requires_grad_(i in places and i not in held) for i, v in enumerate(case.values)
    ]
    with torch.enable_grad():
        found = _in_torch(case, values)
    flat = [found] if isinstance(found, torch.Tensor) else list(found)
    floats = [f for f in flat if isinstance(f, torch.Tensor) and f.is_floating_point()]
    pairs = [(f, s) for f, s in zip(floats, case.seeds, strict=False) if f.requires_grad]
    wanted = [v for v in values if v.requires_grad]
    grads = iter(_gradients(case, pairs, wanted))
    return [next(grads) if i not in held else None for i in places]


def _gradients(
    case: Derivative,
    pairs: Sequence[tuple[torch.Tensor, torch.Tensor]],
    wanted: Sequence[torch.Tensor],
) -> list[torch.Tensor]:
    zeros = [torch.zeros_like(v) for v in wanted]
    if not pairs:
        return zeros
    outputs, weights = zip(*pairs, strict=True)
    try:
        grads = torch.autograd.grad(outputs, wanted, weights, allow_unused=True)
    except RuntimeError as error:
        # Torch refuses some derivatives that are zero almost everywhere; others it gives as zero.
        if not isinstance(case.op.grad, NoGradient) or "not implemented" not in str(error):
            raise
        return zeros
    return [z if g is None else g for z, g in zip(zeros, grads, strict=True)]


def _leaf_names(case: Derivative) -> list[str]:
    pairs = zip(case.op.operands, case.sample.operands, strict=False)
    return [param.name for param, arg in pairs for _ in leaves(arg)]


def _in_torch(case: Derivative, values: Sequence[torch.Tensor]) -> Any:
    if reference(case.op) is not None:
        return call_reference(case.op, operands_of(case.sample, values), case.sample.attrs)
    program, result = call_program(case.op, case.sample, {})
    return program.run_in_torch(result, values)
