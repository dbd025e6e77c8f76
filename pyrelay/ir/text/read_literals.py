"""Literals of the text form read as constants."""

from __future__ import annotations

import base64
from typing import Any

from lark import Token, Tree

from ...diagnostics.catalogue.text import BadLiteral
from ...diagnostics.diagnostic import CheckError
from ..dims import Dim
from ..expr import TensorData
from ..types import DType, SizeType, TensorType, Type
from .lexis import SIZE_SUFFIX, SUFFIXES, byte_count, pack, read_number
from .place import Place, Syntax
from .read_types import TypeReader


def number(place: Place, token: Token, *, negative: bool) -> tuple[int | float, Type | None]:
    """Give the value and the type that a number's digits and suffix say."""
    value, suffix = read_number(token)
    value = -value if negative else value
    if not suffix:
        return value, None
    if suffix == SIZE_SUFFIX and isinstance(value, int):
        return value, SizeType(Dim.of(value))
    if suffix in SUFFIXES:
        return value, TensorType((), SUFFIXES[suffix])
    known = ", ".join((*SUFFIXES, SIZE_SUFFIX))
    raise CheckError(BadLiteral(place.of(token), str(token), f"the suffixes are {known}"))


def weak(place: Place, token: Token, *, negative: bool) -> int | float:
    """Give the value of a number that has no suffix."""
    value, ty = number(place, token, negative=negative)
    if ty is not None:
        raise CheckError(BadLiteral(place.of(token), str(token), "no suffix can stand here"))
    return value


def tensor(place: Place, types: TypeReader, tree: Syntax) -> tuple[TensorData, Type]:
    """Give the data and the type of a constant tensor."""
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


def _bytes(place: Place, content: Any, dtype: DType) -> bytes:
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
