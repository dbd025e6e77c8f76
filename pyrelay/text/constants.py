"""Constants as text, and the type that the literal of one has in the text."""

from __future__ import annotations

from ..ir.dims import Dim
from ..ir.expr import Constant, TensorData
from ..ir.types import BOOL, STR, DType, SizeType, TensorType, Type
from .lexis import SIZE_SUFFIX, has_suffix, number_text, string_text, tensor_text
from .types import shape_text


def constant_text(constant: Constant) -> str:
    """Return the literal of a constant."""
    value = constant.value
    if isinstance(value, TensorData):
        shape = shape_text(tuple(map(Dim.of, value.shape)))
        return f"tensor[{shape}, {value.dtype.name}]{tensor_text(value)}"
    if isinstance(value, bool | str):
        return literal_text(value)
    match constant_type(constant, typed=True):
        case SizeType():
            return f"{value}{SIZE_SUFFIX}"
        case TensorType(_, DType() as dtype):
            return number_text(value, dtype)
        case _:
            return number_text(value, None)


def constant_type(constant: Constant, *, typed: bool) -> Type | None:
    """Return the type that the literal of a constant has, in a typed or an untyped text."""
    value, ty = constant.value, constant.ty
    match value:
        case TensorData(dtype, shape):
            return TensorType(tuple(map(Dim.of, shape)), dtype)
        case bool():
            return BOOL if typed else None
        case str():
            return STR if typed else None
        case _:
            return ty if _has_suffix(value, ty) else None


def _has_suffix(value: float, ty: Type | None) -> bool:
    match ty:
        case SizeType(dim):
            return isinstance(value, int) and value >= 0 and dim == Dim.of(value)
        case TensorType((), DType() as dtype):
            return has_suffix(dtype)
        case _:
            return False


def literal_text(value: bool | float | str) -> str:
    """Return a bool, a weak number or a string."""
    if isinstance(value, bool):
        return repr(value)
    return string_text(value) if isinstance(value, str) else number_text(value, None)
