"""Types read off values, as far as values tell them.

What a value leaves open, such as the elements of an empty list, is a hole.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, TypeAlias, TypeVar, cast, final

from ...ir.dims import Dim, DimVar
from ...ir.module import AdtDef
from ...ir.types import (
    BOOL,
    FLOAT,
    INT,
    STR,
    UNIT,
    UNKNOWN,
    UNKNOWN_DIM,
    AdtType,
    FnType,
    TensorType,
    TupleType,
    Type,
    TypeHole,
    dims,
    substitution,
    subtypes,
)
from ...prelude.library import LIST, OPTION, library
from ...prelude.names import CONSTRUCTORS
from ...prelude.values import List, Present
from ..calls.type_parameters import Typed, is_array, shape_and_dtype, solve
from .representation import Instances, UserData
from .structure import parts

Definitions: TypeAlias = Callable[[type], tuple[AdtDef, int] | None]
"""From a class to its data type and the place of its constructor; None for other classes."""

Part = TypeVar("Part")

SOME_FUNCTION: Final = FnType((), UNKNOWN)
"""What is told of a value that is a function."""

_PLAIN: Final = {bool: BOOL, int: INT, float: FLOAT, str: STR, type(None): UNIT}
_DEEPEST: Final = 64
"""How deep in tuples a type is still read off."""


@final
class TypesOfValues:
    """Reads types off values; `size` gives the dims of a tensor's sizes."""

    def __init__(self, definitions: Definitions, size: Callable[[int], Dim]) -> None:
        self._definitions: Final = definitions
        self._size: Final = size

    def solve(self, given: Typed, wanted: Sequence[str]) -> dict[str, Type]:
        """Return what type parameters stand for; those are left out that no value tells whole."""
        return solve(given, wanted, self.fields, self._whole, lambda _: True)

    def _whole(self, value: Any) -> Type | None:
        found = self.type(value)
        return found if is_whole(found) else None

    def type(self, value: Any, depth: int = 0) -> Type:
        """Return the type of a value, a hole for what has none or does not tell it."""
        if is_array(value):
            shape, dtype = shape_and_dtype(value)
            return TensorType(tuple(map(self._size, shape)), dtype) if dtype else UNKNOWN
        if type(value) in _PLAIN:
            return _PLAIN[type(value)]
        if depth > _DEEPEST:
            return UNKNOWN
        if isinstance(value, tuple):
            items = cast("tuple[Any, ...]", value)
            return TupleType(tuple(self.type(v, depth + 1) for v in items))
        if isinstance(value, list | List):
            return AdtType(LIST, (self._element(cast("Sequence[Any]", value), depth + 1),))
        if isinstance(value, Present):
            return AdtType(OPTION, (self.type(value.value, depth + 1),))
        known = self._definitions(type(value))
        if known is not None:
            return self._data(*known, value)
        return SOME_FUNCTION if callable(value) else UNKNOWN

    def _element(self, items: Sequence[Any], depth: int) -> Type:
        """Return the type of the first element that tells it."""
        found: Type = UNKNOWN
        for item in items:
            found = joined(found, self.type(item, depth)) or found
            if is_whole(found):
                break
        return found

    def _data(self, definition: AdtDef, place: int, value: Any) -> Type:
        names = [p.name for p in definition.type_params]
        given = list(zip(definition.constructors[place].fields, parts(value), strict=False))
        found = self.solve(given, names) if names else {}
        return AdtType(
            definition.name,
            tuple(
                UNKNOWN_DIM if isinstance(p, DimVar) else found.get(p.name, UNKNOWN)
                for p in definition.type_params
            ),
        )

    def fields(self, ty: AdtType, value: Any) -> Typed:
        """Return the fields of a value of a data type with their types; none of another value."""
        known = self._definitions(type(value))
        if known is None or known[0].name != ty.name:
            return []
        definition, place = known
        types = map(
            substitution(definition.type_params, ty.args), definition.constructors[place].fields
        )
        return list(zip(types, parts(value), strict=False))


def definitions_in(adts: Mapping[str, AdtDef], data: UserData) -> Definitions:
    """Return the data types of a program, and the prelude's, by the classes of their values."""
    owners = {
        cls: (adts[name], place)
        for name, form in data.representations.items()
        if isinstance(form, Instances)
        for cls, place in form.tags.items()
    }
    return lambda cls: owners.get(cls) or of_prelude(cls)


def of_prelude(cls: type) -> tuple[AdtDef, int] | None:
    """Return the prelude's data type that a class belongs to, and the place of its constructor."""
    known = CONSTRUCTORS.get(cls)
    if known is None:
        return None
    definition = library().adts[known.adt]
    return definition, [c.name for c in definition.constructors].index(known.name)


def is_whole(ty: Type) -> bool:
    """Return whether nothing in a type is a hole."""
    is_told = not any(isinstance(part, TypeHole) for part in subtypes(ty))
    return is_told and UNKNOWN_DIM not in dims(ty)


def joined(left: Type, right: Type) -> Type | None:
    """Return the type that values of two types have together, None if there is none. Nothing and a
    value are an optional."""
    match left, right:
        case (TypeHole(), other) | (other, TypeHole()):
            return other
        case (FnType(), FnType()):
            return left
        case (TensorType(a, dtype), TensorType(b, other)) if dtype == other and len(a) == len(b):
            shape = _all_joined(a, b, _joined_dim)
            return None if shape is None else TensorType(shape, dtype)
        case (TupleType(a), TupleType(b)) if len(a) == len(b):
            fields = _all_joined(a, b, joined)
            return None if fields is None else TupleType(fields)
        case (AdtType(name, a), AdtType(other, b)) if name == other:
            args = _all_joined(a, b, _joined_argument)
            return None if args is None else AdtType(name, args)
        case (AdtType(name, (content,)), other) | (other, AdtType(name, (content,))) if (
            name == OPTION and not isinstance(content, Dim)
        ):
            content = content if other == UNIT else joined(content, other)
            return None if content is None else AdtType(OPTION, (content,))
        case (TupleType(()), other) | (other, TupleType(())):
            return AdtType(OPTION, (other,))
        case _:
            return left if left == right else None


def _joined_dim(left: Dim, right: Dim) -> Dim | None:
    if UNKNOWN_DIM in (left, right):
        return right if left == UNKNOWN_DIM else left
    return left if left == right else None


def _joined_argument(left: Type | Dim, right: Type | Dim) -> Type | Dim | None:
    if isinstance(left, Dim):
        return _joined_dim(left, right) if isinstance(right, Dim) else None
    return None if isinstance(right, Dim) else joined(left, right)


def _all_joined(
    left: Sequence[Part], right: Sequence[Part], join: Callable[[Part, Part], Part | None]
) -> tuple[Part, ...] | None:
    """Return what parts are together in pairs, None if one pair is nothing."""
    found = [join(a, b) for a, b in zip(left, right, strict=True)]
    known = tuple(f for f in found if f is not None)
    return known if len(known) == len(found) else None
