"""The vocabulary of operators on matrices, the last two dims of a tensor."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Final

from ...ir.op import Clash, RuleCall, Sample, TensorSpec
from ...ir.rules import floating
from ...ir.types import DType, TensorType, float32, show

if TYPE_CHECKING:
    from ..builder import Value

_NARROW: Final = ("float16", "bfloat16")


def matrices(call: RuleCall, index: int = 0) -> TensorType:
    """Return the type of an operand that must be a matrix of floats, or a batch of them, in single
    precision or better. Raises Stuck or Clash."""
    ty = floating(call, index)
    if ty.rank < 2:
        call.clash(f"`{call.name}` takes a matrix or a batch of matrices, not {show(ty)}", index)
    if isinstance(ty.dtype, DType) and ty.dtype.name in _NARROW:
        message = f"`{call.name}` computes in float32 or float64, not in {ty.dtype}"
        call.clash(message, index, cast=(index, float32))
    return ty


def square_matrices(call: RuleCall, index: int = 0) -> TensorType:
    """Return the type of an operand that must be a square matrix, or a batch of them. Raises Stuck
    or Clash."""
    ty = matrices(call, index)
    rows, columns = ty.shape[-2:]
    try:
        call.solver.unify_dims(rows, columns)
    except Clash:
        found = f"{rows} rows and {columns} columns"
        call.clash(f"`{call.name}` takes square matrices: {show(ty)} has {found}", index)
    return ty


def swapped(x: Value) -> Value:
    """Return matrices transposed."""
    return x.transpose(-2, -1)


def scaling(x: Value) -> Value:
    """Return one number for each matrix, in the shape that scales matrices."""
    return x.unsqueeze(-1).unsqueeze(-1)


def regular(*shape: int, dtype: str = "float32", contiguous: bool = True) -> TensorSpec:
    """Return square matrices for a sample that are far from singular; their lower triangles are
    those of positive definite ones."""
    low, high, diagonal = -0.5, 0.5, 1.0 + shape[-1] / 2
    return TensorSpec(shape, dtype, low, high, contiguous=contiguous, diagonal=diagonal)


def regular_samples() -> Iterable[Sample]:
    """Return square matrices for samples: one, batches, of size 1, empty, strided, double."""
    yield Sample((regular(3, 3),))
    yield Sample((regular(1, 1),))
    yield Sample((regular(2, 4, 4),))
    yield Sample((regular(2, 1, 2, 2),))
    yield Sample((TensorSpec((0, 0)),))
    yield Sample((TensorSpec((0, 3, 3)),))
    yield Sample((regular(3, 3, contiguous=False),))
    yield Sample((regular(4, 4, dtype="float64"),))
