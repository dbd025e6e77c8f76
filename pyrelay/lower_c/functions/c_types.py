"""The C types of values: numbers, structs for tuples, and addresses of structs for data."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final, final

from ...dataclass import dataclass
from ...ir.dims import Dim
from ...ir.expr import Function
from ...ir.module import AdtDef
from ...ir.types import (
    AdtType,
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
    substitution,
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


def is_tensor(ty: Type) -> bool:
    """Return whether a type is that of a tensor that is no number."""
    return isinstance(ty, TensorType) and bool(ty.shape)


def number_name(dtype: DType) -> str:
    """Return the C type of a number. Raises NotInC for a half type."""
    if dtype not in _NUMBERS:
        raise NotInC(f"it computes with numbers of {dtype}")
    return _NUMBERS[dtype]


@final
@dataclass(frozen=True, slots=True)
class Shape:
    """How C has the values of one constructor: the tag, the type of the struct with all fields, the
    number of bytes in use, and the member and type of each field."""

    struct: str
    tag: int
    bytes: str
    fields: tuple[tuple[str, Type], ...]


@final
class CTypes:
    """The C types of one text, and the declarations of its structs.

    Types that differ in sizes alone are one C type. A value of a data type is the address of a
    struct with a tag, and with the fields of each constructor in a union.
    """

    def __init__(self, adts: Mapping[str, AdtDef]) -> None:
        self._adts: Final = adts
        self._tuples: Final[dict[str, str]] = {}
        self._data: Final[dict[tuple[str, ...], str]] = {}
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
                return self._struct(fields)
            case AdtType(name) if name in self._adts:
                return f"{self._data_struct(ty, self._adts[name])} *"
            case _:
                raise NotInC(f"it has a value of type {show(ty)}")

    def shape(self, ty: AdtType, constructor: str) -> Shape:
        """Return how C has the values of a constructor. Raises NotInC."""
        definition = self._adts[ty.name]
        struct, tag = self._data_struct(ty, definition), definition.tag(constructor)
        types = definition.field_types(ty, constructor)
        fields = tuple((f"as.c{tag}.f{i}", t) for i, t in enumerate(types))
        has_members = any(self.name(t) != "void" for _, t in fields)
        size = f"offsetof({struct}, as) + sizeof((({struct} *)0)->as.c{tag})"
        return Shape(struct, tag, size if has_members else "0", fields)

    def _struct(self, fields: tuple[Type, ...]) -> str:
        inside = self._members(fields) or "char none;"
        if inside not in self._tuples:
            name = self._tuples[inside] = f"tuple_{len(self._tuples) + 1}"
            self.declarations.append(f"typedef struct {{ {inside} }} {name};")
        return self._tuples[inside]

    def _members(self, fields: Sequence[Type]) -> str:
        members = [(self.name(t), f"f{i}") for i, t in enumerate(fields)]
        return " ".join(f"{declared(c, name)};" for c, name in members if c != "void")

    def _data_struct(self, ty: AdtType, definition: AdtDef) -> str:
        args = (self.name(a) for a in ty.args if not isinstance(a, Dim))
        key = (ty.name, *args)
        if key in self._data:
            return self._data[key]
        name = self._data[key] = f"data_{len(self._data) + 1}"
        self.declarations.append(f"typedef struct {name} {name};")
        change = substitution(definition.type_params, ty.args)
        made = [self._members([change(t) for t in c.fields]) for c in definition.constructors]
        inside = " ".join(f"struct {{ {m} }} c{tag};" for tag, m in enumerate(made) if m)
        union = f" union {{ {inside} }} as;" if inside else ""
        self.declarations.append(f"struct {name} {{ int64_t tag;{union} }};")
        return name


def declared(c_type: str, name: str) -> str:
    """Return the declaration of a name of a C type."""
    return f"{c_type}{name}" if c_type.endswith("*") else f"{c_type} {name}"


def leaves_of(ty: Type, path: str = "") -> Iterator[tuple[str, Type]]:
    """Return the numbers and tensors in a value: how C reaches each from the value, and its
    type."""
    if isinstance(ty, TensorType) or number_dtype(ty) is not None:
        yield path, ty
    elif isinstance(ty, TupleType):
        for index, field in enumerate(ty.fields):
            yield from leaves_of(field, f"{path}.f{index}")


def result_of(function: Function) -> Type:
    """Return the type of the result of a function."""
    assert function.result is not None
    return function.result


def cell_of(dtype: DType | None) -> str:
    """Return the member of `relay_cell` that a number is passed in; None for an address."""
    return "f" if dtype is not None and is_float(dtype) else "i"


def _element_name(dtype: DType) -> str:
    return "uint8_t" if dtype == bool_ else number_name(dtype)
