"""Literals of the text form read as constants."""

from __future__ import annotations

import base64
import math
import sys
from typing import Any, Final

from lark import Token, Tree

from ...diagnostics.catalogue.text import BadLiteral
from ...diagnostics.diagnostic import CheckError
from ...ir.dims import Dim
from ...ir.expr import TensorData
from ...ir.types import DType, DTypeKind, SizeType, TensorType, Type, float16, float32, float64
from ..lexis import SIZE_SUFFIX, SUFFIXES, byte_count, pack, read_number
from .context import Syntax, TextContext
from .metadata import Metadata
from .types import TypeReader


def number(place: TextContext, token: Token, *, negative: bool) -> tuple[int | float, Type | None]:
    """Return the value and the type that a number's digits and suffix say."""
    value, suffix = read_number(token)
    value = -value if negative else value
    if not place.dialect.weak_numbers:
        return _strict(place, token, value, suffix)
    if not suffix:
        return value, None
    if suffix == SIZE_SUFFIX and isinstance(value, int):
        return value, SizeType(Dim.of(value))
    if suffix in SUFFIXES:
        return _at_dtype(place, token, value, SUFFIXES[suffix])
    known = ", ".join((*SUFFIXES, SIZE_SUFFIX))
    raise CheckError(BadLiteral(place.of(token), str(token), f"the suffixes are {known}"))


def _at_dtype(
    place: TextContext, token: Token, value: float, dtype: DType
) -> tuple[int | float, TensorType]:
    """Return a number of a dtype. A float may have more digits, or be larger, than fits."""
    try:
        found = float(value) if dtype.kind is DTypeKind.FLOAT else value
    except OverflowError:
        found = value
    is_float = isinstance(found, float)
    if is_float is not (dtype.kind is DTypeKind.FLOAT) or not (is_float or _fits(found, dtype)):
        raise CheckError(BadLiteral(place.of(token), str(token), f"it does not fit into {dtype}"))
    return found, TensorType((), dtype)


def weak(place: TextContext, token: Token, *, negative: bool) -> int | float:
    """Return the value of a number whose dtype does not count: no suffix in our own text."""
    value, ty = number(place, token, negative=negative)
    if ty is not None and place.dialect.weak_numbers:
        raise CheckError(BadLiteral(place.of(token), str(token), "no suffix can stand here"))
    return value


def _strict(
    place: TextContext, token: Token, value: float, suffix: str
) -> tuple[int | float, TensorType]:
    """Return a number of a language whose numbers have a dtype of their own, which they must
    fit."""
    if not suffix and isinstance(value, float):
        why = f"a fraction has a suffix: `{token}f` is a float32"
        raise CheckError(BadLiteral(place.of(token), str(token), why))
    dtype = place.dialect.suffixes.get(suffix or ("i32" if -(2**31) <= value < 2**31 else "i64"))
    if dtype is None:
        known = ", ".join(place.dialect.suffixes)
        raise CheckError(BadLiteral(place.of(token), str(token), f"the suffixes are {known}"))
    found = float(value) if dtype.kind is DTypeKind.FLOAT else value
    if not _fits(found, dtype) or (isinstance(found, float) and _overflows(found, token)):
        why = f"it does not fit into {dtype}"
        raise CheckError(BadLiteral(place.of(token), str(token), why))
    return found, TensorType((), dtype)


def _fits(value: float, dtype: DType) -> bool:
    """Return whether a number is of the dtype's kind and in its range."""
    if isinstance(value, float):
        largest = LARGEST.get(dtype)
        return largest is not None and (math.isinf(value) or not abs(value) > largest)
    unsigned = dtype.name.startswith("u")
    low = 0 if unsigned else -(2 ** (dtype.bits - 1))
    return low <= value < low + 2**dtype.bits


def _overflows(value: float, token: Token) -> bool:
    return math.isinf(value) and not token.startswith("inf")


LARGEST: Final = {
    float16: 65504.0,
    float32: float.fromhex("0x1.fffffep+127"),
    float64: sys.float_info.max,
}
"""The largest finite number of each dtype that a literal may have."""


def metadata(place: TextContext, tree: Syntax) -> TensorData:
    """Return the constant that `meta[relay.Constant][0]` stands for."""
    return place.from_metadata(tree, Metadata.constant)


def tensor(place: TextContext, types: TypeReader, tree: Syntax) -> tuple[TensorData, Type]:
    """Return the data and the type of a constant tensor."""
    shape_term, dtype_term, content, _ = tree.children
    assert isinstance(shape_term, Tree)
    assert isinstance(dtype_term, Tree)
    dtype = types.dtype(dtype_term)
    if not isinstance(dtype, DType):
        types.fail(dtype_term, "a dtype")
    sizes = [d.constant for d in types.shape(shape_term)]
    shape = tuple(s for s in sizes if s is not None and s >= 0)
    if len(shape) < len(sizes):
        types.fail(shape_term, "a shape of integers")
    try:
        data = _bytes(place, content, dtype)
    except ValueError as error:
        raise CheckError(BadLiteral(place.of(tree), "tensor", str(error))) from error
    if len(data) != byte_count(dtype, shape):
        why = f"{len(data) * 8 // dtype.bits} elements do not fill the shape {shape}"
        raise CheckError(BadLiteral(place.of(tree), "tensor", why))
    ty = TensorType(tuple(Dim.of(s) for s in shape), dtype)
    return TensorData(dtype, shape, data), ty


def _bytes(place: TextContext, content: Any, dtype: DType) -> bytes:
    if isinstance(content, Token):
        return base64.b64decode(place.string(content), validate=True)
    values: list[bool | int | float] = []
    for element in content.children:
        *minus, word = element.children
        if word.type == "NUMBER":
            values.append(weak(place, word, negative=minus[0] is not None))
        else:
            values.append(word == "True")
    return pack(values, dtype)
