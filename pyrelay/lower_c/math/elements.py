"""Element types of C vectors: their names, and the C types of one element."""

from __future__ import annotations

from enum import Enum
from typing import Final, final

from ...dataclass import dataclass
from ...ir.types import (
    DType,
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


class Family(Enum):
    """How elements are computed with."""

    FLOAT = "float"
    SIGNED = "signed"
    UNSIGNED = "unsigned"
    BOOL = "bool"
    HALF = "half"


@final
@dataclass(frozen=True, slots=True)
class Element:
    """An element type. `c` is the C type that it has in memory, of `bytes` bytes."""

    name: str
    c: str
    bytes: int
    family: Family


ELEMENTS: Final = {
    e.name: e
    for e in (
        Element("f32", "float", 4, Family.FLOAT),
        Element("f64", "double", 8, Family.FLOAT),
        Element("f16", "uint16_t", 2, Family.HALF),
        Element("bf16", "uint16_t", 2, Family.HALF),
        Element("bool", "uint8_t", 1, Family.BOOL),
        *(Element(f"i{8 * n}", f"int{8 * n}_t", n, Family.SIGNED) for n in (1, 2, 4, 8)),
        *(Element(f"u{8 * n}", f"uint{8 * n}_t", n, Family.UNSIGNED) for n in (1, 2, 4, 8)),
    )
}

_NAMES: Final = {
    bool_: "bool",
    uint8: "u8",
    int8: "i8",
    int16: "i16",
    int32: "i32",
    int64: "i64",
    float16: "f16",
    bfloat16: "bf16",
    float32: "f32",
    float64: "f64",
}


def element_name(dtype: DType) -> str:
    """Return the name that a dtype has in the names of C functions and vectors."""
    return _NAMES[dtype]


def element_of(dtype: DType) -> Element:
    """Return the element type of a dtype."""
    return ELEMENTS[_NAMES[dtype]]


def of_family(*families: Family) -> tuple[str, ...]:
    """Return the names of the element types of some families."""
    return tuple(e.name for e in ELEMENTS.values() if e.family in families)
