"""Samples of operators made into torch tensors, the same ones every time."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import torch

from pyrelay.ir.dims import Dim
from pyrelay.ir.op import Sample, SampleArg, TensorSpec
from pyrelay.ir.types import DTYPES, DType, float64, is_float


def leaves(arg: SampleArg) -> Iterator[TensorSpec]:
    """Return the tensors of an operand, tuples opened."""
    if isinstance(arg, TensorSpec):
        yield arg
    elif isinstance(arg, tuple):
        for part in arg:
            yield from leaves(part)


def specs(sample: Sample) -> list[TensorSpec]:
    """Return the tensors of a sample, left to right."""
    return [spec for arg in sample.operands for spec in leaves(arg)]


def tensors(sample: Sample, seed: int = 0) -> list[torch.Tensor]:
    """Make the tensors of a sample, left to right."""
    generator = torch.Generator().manual_seed(seed)
    return [tensor(spec, generator) for spec in specs(sample)]


def tensor(spec: TensorSpec, generator: torch.Generator) -> torch.Tensor:
    """Make one tensor: floats uniform in [low, high], integers in [low, high), bools at random."""
    # A strided tensor is every other element along a last dim twice as long, in another order.
    rank = len(spec.shape)
    stored = spec.shape if spec.contiguous else (*spec.shape[::-1], 2)
    found = _elements(spec, stored, generator)
    if not spec.contiguous:
        found = found[..., 1].permute(tuple(reversed(range(rank))))
        assert not found.is_contiguous() or found.numel() <= 1
    if spec.diagonal:
        # The tensor's own version stays 0, by which a test sees that nothing writes to it.
        found.data.diagonal(dim1=-2, dim2=-1).add_(spec.diagonal)
    return found


def _elements(spec: TensorSpec, shape: tuple[int, ...], generator: torch.Generator) -> torch.Tensor:
    dtype = getattr(torch, spec.dtype)
    if spec.dtype == "bool":
        return torch.randint(0, 2, shape, generator=generator, dtype=torch.bool)
    if spec.low == spec.high or spec.low != spec.low:
        return torch.full(shape, spec.low, dtype=dtype)
    if not is_float(DTYPES[spec.dtype]):
        return torch.randint(int(spec.low), int(spec.high), shape, generator=generator, dtype=dtype)
    spread = torch.rand(shape, generator=generator, dtype=torch.float64)
    return (spread * (spec.high - spec.low) + spec.low).to(dtype)


def widened(sample: Sample) -> Sample:
    """Return the sample in double precision, where finite differences are exact enough."""
    return in_precision(sample, float64)


def in_precision(sample: Sample, dtype: DType) -> Sample:
    """Return the sample with all its floats, and those its attributes name, of one dtype."""
    operands = tuple(_converted(arg, dtype) for arg in sample.operands)
    attrs = {
        k: dtype if isinstance(v, DType) and is_float(v) else v for k, v in sample.attrs.items()
    }
    return replace(sample, operands=operands, attrs=attrs)


def _converted(arg: SampleArg, dtype: DType) -> SampleArg:
    match arg:
        case TensorSpec() if is_float(DTYPES[arg.dtype]):
            return replace(arg, dtype=dtype.name)
        case tuple():
            return tuple(_converted(part, dtype) for part in arg)
        case _:
            return arg


def shape_names(sample: Sample) -> dict[int, Dim]:
    """Return a named dim for each size of the sample but 0 and 1, which broadcasting tells
    apart."""
    sizes = {size for spec in specs(sample) for size in spec.shape if size > 1}
    return {size: Dim.of(f"n{size}") for size in sorted(sizes)}
