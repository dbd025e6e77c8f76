"""Constants: the value of an operator whose operands are known, as a constant of the program."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

from ...diagnostics.diagnostic import RunError
from ...ir.expr import (
    Binding,
    Call,
    Constant,
    Expr,
    Flavour,
    Function,
    LetBlock,
    TensorData,
    Tuple,
    Var,
)
from ...ir.module import Module
from ...ir.op import Op, ShapeBehaviour
from ...ir.types import STR, DType, DTypeKind, FnType, TensorType, Type

if TYPE_CHECKING:
    from ..base import Evaluate
    from .rules import Definitions

MAX_BYTES: Final = 1024
"""How large a constant that folding makes may be."""
_ENTRY: Final = "folded"


def evaluated(call: Call, evaluate: Evaluate | None, known: Definitions) -> Constant | None:
    """Return the value of a call of an operator on constants and tuples of constants; None if an
    operand is not known, the value is large, or the call fails: then it fails where it stands, if
    it is reached."""
    op, ty = call.callee, call.ty
    if evaluate is None or not isinstance(op, Op) or not (ty == STR or _is_small(ty)):
        return None
    if op.shape is ShapeBehaviour.FACTORY or not call.args:
        return None
    tuples = {a: known.get(a) for a in call.args if isinstance(a, Var)}
    if not all(isinstance(a, Constant | Var) for a in call.args):
        return None
    if not all(map(_is_constant_tuple, tuples.values())):
        return None
    var = Var("value", ty, span=call.span)
    bindings = (*(Binding(v, t) for v, t in tuples.items() if t is not None), Binding(var, call))
    body = LetBlock(bindings, var, flavour=Flavour.PURE, ty=ty, span=call.span)
    assert ty is not None
    function = Function((), body, ty, ty=FnType((), ty), span=call.span)
    try:
        value = evaluate(Module({_ENTRY: function}, {}), _ENTRY)
    except RunError:
        return None
    return _constant(value, ty, call)


def _is_constant_tuple(definition: Expr | None) -> bool:
    is_tuple = isinstance(definition, Tuple)
    return is_tuple and all(isinstance(f, Constant) for f in definition.fields)


def _is_small(ty: Type | None) -> bool:
    if not isinstance(ty, TensorType) or not isinstance(ty.dtype, DType):
        return False
    size = ty.dtype.bits // 8
    for dim in ty.shape:
        if dim.constant is None:
            return False
        size *= dim.constant
    return size <= MAX_BYTES


_FORMATS: Final = {
    "bool": "?",
    "uint8": "B",
    "int8": "b",
    "int16": "h",
    "int32": "i",
    "int64": "q",
    "float16": "e",
    "float32": "f",
    "float64": "d",
}
"""How `struct` writes the elements of a dtype."""


def _constant(value: Any, ty: Type, call: Call) -> Constant | None:
    """Return an evaluated value as a constant; None at a dtype that cannot be written."""
    if not isinstance(ty, TensorType):
        return Constant(value, ty, span=call.span)
    elements = value.tolist() if hasattr(value, "tolist") else value
    assert isinstance(ty.dtype, DType)
    if not ty.shape:
        kind = {DTypeKind.BOOL: bool, DTypeKind.INT: int, DTypeKind.FLOAT: float}[ty.dtype.kind]
        return Constant(kind(elements), ty, span=call.span)
    letter = _FORMATS.get(ty.dtype.name)
    if letter is None:
        return None
    flat = _flat(elements, len(ty.shape))
    sizes = tuple(d.constant for d in ty.shape if d.constant is not None)
    data = TensorData(ty.dtype, sizes, struct.pack(f"<{len(flat)}{letter}", *flat))
    return Constant(data, ty, span=call.span)


def _flat(elements: Sequence[Any], rank: int) -> Sequence[Any]:
    for _ in range(rank - 1):
        elements = [inner for outer in elements for inner in outer]
    return elements
