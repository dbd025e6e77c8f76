"""The C types of values: numbers, and structs of them for tuples."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, final

from ...ir.types import (
    DType,
    SizeType,
    TensorType,
    TupleType,
    Type,
    bool_,
    float32,
    float64,
    int8,
    int16,
    int32,
    int64,
    is_float,
    show,
    uint8,
)

_NUMBERS: Final = {
    bool_: "bool",
    uint8: "uint8_t",
    int8: "int8_t",
    int16: "int16_t",
    int32: "int32_t",
    int64: "int64_t",
    float32: "float",
    float64: "double",
}


class NotInC(Exception):  # noqa: N818  the caller decides what it means
    """Raised for a function that contains something without a form in C."""


def number_dtype(ty: Type) -> DType | None:
    """Return the dtype of a type of one number; None for any other type."""
    match ty:
        case SizeType():
            return int64
        case TensorType((), DType() as dtype):
            return dtype
        case _:
            return None


def number_name(dtype: DType) -> str:
    """Return the C type of a number. Raises NotInC for a half type."""
    if dtype not in _NUMBERS:
        raise NotInC(f"it computes with numbers of {dtype}")
    return _NUMBERS[dtype]


@final
class CTypes:
    """The C types of one text, and the declarations of its structs."""

    def __init__(self) -> None:
        self._names: Final[dict[Type, str]] = {}
        self.declarations: Final[list[str]] = []

    def name(self, ty: Type) -> str:
        """Return the name of a C type; `void` for the empty tuple. Raises NotInC."""
        dtype = number_dtype(ty)
        if dtype is not None:
            return number_name(dtype)
        match ty:
            case TensorType(_, DType() as element):
                return f"{_element_name(element)} *"
            case TupleType(()):
                return "void"
            case TupleType(fields):
                return self._struct(ty, fields)
            case _:
                raise NotInC(f"it has a value of type {show(ty)}")

    def _struct(self, ty: Type, fields: tuple[Type, ...]) -> str:
        if ty not in self._names:
            members = [(self.name(t), f"f{i}") for i, t in enumerate(fields)]
            inside = " ".join(f"{c} {name};" for c, name in members if c != "void")
            name = self._names[ty] = f"tuple_{len(self._names) + 1}"
            self.declarations.append(f"typedef struct {{ {inside or 'char none;'} }} {name};")
        return self._names[ty]


def leaves_of(ty: Type, path: str = "") -> Iterator[tuple[str, Type]]:
    """Return the numbers and tensors in a value: how C reaches each from the value, and its
    type."""
    if isinstance(ty, TensorType) or number_dtype(ty) is not None:
        yield path, ty
    elif isinstance(ty, TupleType):
        for index, field in enumerate(ty.fields):
            yield from leaves_of(field, f"{path}.f{index}")


def cell_of(dtype: DType | None) -> str:
    """Return the member of `relay_cell` that a number is passed in; None for an address."""
    return "f" if dtype is not None and is_float(dtype) else "i"


def _element_name(dtype: DType) -> str:
    return "uint8_t" if dtype == bool_ else number_name(dtype)
