"""Words of the text form: names, numbers, strings, spans. Printer and parser both read this file.

A name that is no plain identifier, or that would read as something else, stands in backquotes. A
number carries a suffix for its dtype (`1i64`, `1.5f32`, `3size`); without one it is weak.
"""

from __future__ import annotations

import base64
import json
import math
import re
import struct
from typing import Final

from ..ir.expr import Rule, TensorData
from ..ir.types import (
    TEXT_DTYPES,
    DType,
    DTypeKind,
    bfloat16,
    bool_,
    float16,
    float32,
    float64,
    int8,
    int16,
    int32,
    int64,
    uint8,
)

VERSION: Final = "1"
"""The version in the header line `#[pyrelay = "1"]`."""

SUFFIXES: Final = {
    "u8": uint8,
    "i8": int8,
    "i16": int16,
    "i32": int32,
    "i64": int64,
    "f16": float16,
    "bf16": bfloat16,
    "f32": float32,
    "f64": float64,
}
SIZE_SUFFIX: Final = "size"
_SUFFIX_OF: Final = {dtype: suffix for suffix, dtype in SUFFIXES.items()}
_NUMBER: Final = re.compile(r"(inf|nan|\d+(?:\.\d+)?(?:[eE][+-]?\d+)?)([a-z]*\d*)")
_SPECIAL: Final = re.compile(r"(inf|nan)(f16|bf16|f32|f64)?")
_IDENTIFIER: Final = re.compile(r"[^\W\d]\w*(?:\.[^\W\d]\w*)*")
_VARIABLE: Final = re.compile(r"\w+")

KEYWORDS: Final = frozenset(
    {"fn", "free_var", "if", "let", "match", "ref", "ref_read", "ref_write", "tensor"}
    | {"True", "False", "None", "_"}
)
"""Names that the grammar takes for itself where a name may stand."""

TYPE_WORDS: Final = frozenset({*TEXT_DTYPES, "Tensor", "Size", "str", "Dim", "Type", "max", "min"})
"""Names that mean something else in a type than a data type of that name would."""
TYPE_RESERVED: Final = KEYWORDS | TYPE_WORDS

TRANSFORMS: Final = {rule.value: rule for rule in Rule}
"""The transforms, by the name that stands before `{...}(f)`."""


def name_text(name: str, reserved: frozenset[str] = KEYWORDS) -> str:
    """Return a name of an operator, constructor, data type, dim or type variable."""
    plain = _IDENTIFIER.fullmatch(name) and name not in reserved and not _SPECIAL.fullmatch(name)
    return name if plain else _quoted(name)


def variable_text(name: str) -> str:
    """Return the mention of a local variable."""
    return f"%{name if _VARIABLE.fullmatch(name) else _quoted(name)}"


def global_text(name: str) -> str:
    """Return the mention of a global function."""
    return f"@{name if _IDENTIFIER.fullmatch(name) else _quoted(name)}"


def _quoted(name: str) -> str:
    escaped = string_text(name)[1:-1].replace("`", "\\u0060")
    return f"`{escaped}`"


def read_name(text: str) -> str:
    """Return the name that a word stands for, with its `%` or `@` taken off already."""
    if not text.startswith("`"):
        return text
    return read_string(f'"{text[1:-1]}"')


def string_text(value: str) -> str:
    """Return a string literal."""
    return json.dumps(value, ensure_ascii=not value.isprintable())


def read_string(text: str) -> str:
    """Return the string of a literal. Raises ValueError for an escape that does not exist."""
    value = json.loads(text)
    assert isinstance(value, str)
    return value


def number_text(value: float, dtype: DType | None) -> str:
    """Return a number that is no bool; `dtype` None means weak."""
    suffix = "" if dtype is None else _SUFFIX_OF[dtype]
    return f"{value!r}{suffix}"


def has_suffix(dtype: DType) -> bool:
    """Return whether numbers of the dtype can be written with a suffix."""
    return dtype in _SUFFIX_OF


def read_number(text: str) -> tuple[int | float, str]:
    """Return the number and the suffix of a literal without sign. The suffix may be unknown."""
    match = _NUMBER.fullmatch(text)
    assert match is not None, text
    digits, suffix = match[1], match[2]
    return (int(digits) if digits.isdigit() else float(digits)), suffix


_SHORT: Final = 16
_PACKING: Final = {
    bool_: "?",
    uint8: "B",
    int8: "b",
    int16: "h",
    int32: "i",
    int64: "q",
    float16: "e",
    float32: "f",
    float64: "d",
}


def tensor_text(data: TensorData) -> str:
    """Return the elements of a constant tensor: a list if short and exact, else base64."""
    values = elements(data)
    if values is not None:
        return f"[{', '.join(map(repr, values))}]"
    return f'"{base64.b64encode(data.data).decode()}"'


def elements(data: TensorData) -> list[bool | int | float] | None:
    """Return the elements of a constant tensor if they are few and Python numbers are exact."""
    code = _PACKING.get(data.dtype)
    if code is None or math.prod(data.shape) > _SHORT:
        return None
    values = [v for (v,) in struct.iter_unpack("<" + code, data.data)]
    # `nan` is one NaN of many.
    written = [math.nan if v != v else v for v in values]
    return written if struct.pack(f"<{len(values)}{code}", *written) == data.data else None


def pack(values: list[bool | int | float], dtype: DType) -> bytes:
    """Return the bytes of listed elements. Raises ValueError where one does not fit the dtype."""
    code = _PACKING.get(dtype)
    if code is None:
        raise ValueError(f"elements of dtype {dtype} are written in base64")
    if dtype.kind is not DTypeKind.FLOAT and any(isinstance(v, float) for v in values):
        raise ValueError(f"a fraction is no {dtype}")
    try:
        return struct.pack(f"<{len(values)}{code}", *values)
    except (struct.error, OverflowError) as error:
        raise ValueError(f"an element does not fit {dtype}") from error


def byte_count(dtype: DType, shape: tuple[int, ...]) -> int:
    """Return how many bytes the elements of a tensor take."""
    return math.prod(shape) * dtype.bits // 8
