"""Determinants of matrices and their logarithms.

Their derivatives contain the inverse, so that of a singular matrix stops the program.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Final

from ...ir.op import Library, Op, RuleCall, Sample, ShapeBehaviour, TensorSpec, operand
from ...ir.types import TensorType, TupleType, Type
from ..declare import composite
from ..primitive.compare import less, where
from .inverse import inv
from .rules import regular_samples, scaling, square_matrices, swapped

if TYPE_CHECKING:
    from ..builder import Value


def _number_type(call: RuleCall) -> Type:
    ty = square_matrices(call)
    return TensorType(ty.shape[:-2], ty.dtype)


def _pair_type(call: RuleCall) -> Type:
    return TupleType((_number_type(call),) * 2)


def _slope_of_log(g: Value, matrix: Value) -> tuple[Value]:
    """Return the cotangent through the logarithm of the size of a determinant."""
    return (scaling(g) * swapped(inv(matrix)),)


def _of_both_signs() -> Iterable[Sample]:
    yield from regular_samples()
    yield Sample((TensorSpec((3, 3), low=0.25, high=1.0, diagonal=-2.0),))


det: Final = Op(
    name="det",
    doc="Determinant of each matrix.",
    params=(operand("input"),),
    type_rule=_number_type,
    shape=ShapeBehaviour.BATCHED,
    lowering=Library(lambda torch, x: torch.linalg.det(x), is_fresh=True),
    grad=lambda p: _slope_of_log(p.g * p.out, p.args[0]),
    torch_name="linalg.det",
    samples=_of_both_signs,
)


def _slogdet(torch: Any, x: Any) -> Any:
    return tuple(torch.linalg.slogdet(x))


slogdet: Final = Op(
    name="slogdet",
    doc="Sign of the determinant of each matrix, and the logarithm of its absolute value.",
    params=(operand("input"),),
    type_rule=_pair_type,
    shape=ShapeBehaviour.BATCHED,
    lowering=Library(_slogdet, is_fresh=True),
    grad=lambda p: _slope_of_log(p.g[1], p.args[0]),
    torch_name="linalg.slogdet",
    samples=_of_both_signs,
)


def _logdet(x: Value) -> Value:
    found = slogdet(x)
    return where(less(found[0], 0.0), float("nan"), found[1])


logdet: Final = composite(
    name="logdet",
    doc="Logarithm of the determinant of each matrix; not-a-number where that is negative.",
    params=(operand("input"),),
    type_rule=_number_type,
    shape=ShapeBehaviour.BATCHED,
    body=_logdet,
    grad=lambda p: _slope_of_log(p.g, p.args[0]),
    torch=lambda torch, x: torch.logdet(x),
    torch_name="logdet",
    is_fresh=True,
    fuses=False,
    samples=regular_samples,
)
