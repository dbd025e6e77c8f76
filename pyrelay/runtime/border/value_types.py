"""Types read off values, and type parameters of functions solved from them.

Values are walked with the types that were declared for them, each shared part once, on a stack of
the walk's own. What a value leaves open, such as the elements of an empty list, is a hole.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from typing import Any, Final, TypeAlias, TypeVar, cast, final

import numpy as np
import torch

from ...annotations import Ref
from ...diagnostics.catalogue.call import TwoTypes
from ...diagnostics.diagnostic import RunError
from ...ir import types
from ...ir.dims import Dim, DimVar
from ...ir.module import AdtDef
from ...ir.types import (
    BOOL,
    DTYPES,
    FLOAT,
    INT,
    STR,
    UNIT,
    UNKNOWN,
    UNKNOWN_DIM,
    AdtType,
    DType,
    FnType,
    RefType,
    TensorType,
    TupleType,
    Type,
    TypeHole,
    dims,
    show,
    subtypes,
)
from ...prelude.library import LIST, OPTION, library
from ...prelude.names import CONSTRUCTORS
from ...prelude.values import List, Present, some_value
from ..values.representation import Instances, UserData
from ..values.structure import parts
from ..values.values import Cell
from .places import Place

Typed: TypeAlias = Sequence[tuple[Type, Any]]
"""Values with their types."""

Definitions: TypeAlias = Callable[[type], tuple[AdtDef, int] | None]
"""From a class to its data type and the place of its constructor; None for other classes."""

Found = TypeVar("Found")
Part = TypeVar("Part")

SOME_FUNCTION: Final = FnType((), UNKNOWN)
"""The type of any value that is a function."""

_PLAIN: Final = {bool: BOOL, int: INT, float: FLOAT, str: STR, type(None): UNIT}
_DEEPEST: Final = 64
"""How deep in tuples a type is still read off."""


def type_vars_of(declared: Iterable[Type]) -> tuple[str, ...]:
    """Return the names of the type parameters that types mention."""
    found = (p.name for ty in declared for p in subtypes(ty) if isinstance(p, types.TypeVar))
    return tuple(dict.fromkeys(found))


def solve(
    given: Typed,
    wanted: Iterable[str],
    fields: Callable[[AdtType, Any], Typed],
    read: Callable[[Any], Found | None],
    is_whole: Callable[[Found], bool],
) -> dict[str, Found]:
    """Solve type parameters: return the findings of `read` in values whose types are the `wanted`
    ones.

    A parameter without a value is left out. Later values are read until what is found is whole.
    `fields` returns the fields of a value of a data type.
    """
    found: dict[str, Found] = {}
    pending = list(reversed(given))
    left = set(wanted)
    seen: set[tuple[int, Type]] = set()
    while pending and left:
        ty, value = pending.pop()
        if isinstance(ty, types.TypeVar) and ty.name in left:
            known = read(value)
            if known is not None:
                found[ty.name] = known
                left -= {ty.name} if is_whole(known) else set()
        elif (id(value), ty) not in seen and type_vars_of([ty]):
            seen.add((id(value), ty))
            pending += reversed(_inside(ty, value, fields))
    return found


def _inside(ty: Type, value: Any, fields: Callable[[AdtType, Any], Typed]) -> Typed:
    """Return the parts of a value with their types; none where it is not of the type."""
    match ty:
        case TupleType(parts) if isinstance(value, tuple | list):
            return list(zip(parts, cast("Sequence[Any]", value), strict=False))
        case RefType(content) if isinstance(value, Ref | Cell):
            return [(content, value.value)]
        case AdtType(name, (inner,)) if name == OPTION and not isinstance(inner, Dim):
            return [] if value is None else [(inner, some_value(value))]
        case AdtType(name, (inner,)) if name == LIST and not isinstance(inner, Dim):
            return [(inner, v) for v in value] if isinstance(value, list | List) else []
        case AdtType():
            return fields(ty, value)
        case _:
            return []


def is_array(value: Any) -> bool:
    """Return whether a value is a tensor, or an array that becomes one."""
    return isinstance(value, torch.Tensor | np.ndarray | np.generic)


def shape_and_dtype(value: Any) -> tuple[tuple[int, ...], DType | None]:
    """Return the shape and dtype of a tensor or an array; None for a dtype that no program has."""
    tensor = value if isinstance(value, torch.Tensor) else torch.from_numpy(np.array(value))
    return tuple(tensor.shape), DTYPES.get(str(tensor.dtype).removeprefix("torch."))


@final
class TypesOfValues:
    """Reads types off values; `size` returns the dim of a size of a tensor."""

    def __init__(self, definitions: Definitions, size: Callable[[int], Dim]) -> None:
        self._definitions: Final = definitions
        self._size: Final = size

    def solve(self, given: Typed, wanted: Sequence[str]) -> dict[str, Type]:
        """Return the types of type parameters, without those that no value determines."""
        return solve(given, wanted, self.fields, self._whole, lambda _: True)

    def _whole(self, value: Any) -> Type | None:
        found = self.type(value)
        return found if is_whole(found) else None

    def type(self, value: Any, depth: int = 0) -> Type:
        """Return the type of a value, with a hole where the value leaves it open."""
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
        """Return the type of the elements, as soon as it is whole."""
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
        return typed_fields(self._definitions, ty, value)


def typed_fields(definitions: Definitions, ty: AdtType, value: Any) -> Typed:
    """Return the fields of a value of a data type with their types; none of another value."""
    known = definitions(type(value))
    if known is None or known[0].name != ty.name:
        return []
    definition, place = known
    types = definition.field_types(ty, definition.constructors[place].name)
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
    has_hole = any(isinstance(part, TypeHole) for part in subtypes(ty))
    return not has_hole and UNKNOWN_DIM not in dims(ty)


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
    """Return the join of each pair of parts, None if one pair has none."""
    found = [join(a, b) for a, b in zip(left, right, strict=True)]
    known = tuple(f for f in found if f is not None)
    return known if len(known) == len(found) else None


@final
class Agreement:
    """The types that type parameters stand for in one call: one each, whatever it is.

    Programs do not look into values of a type parameter, so nothing would fail while they run; but
    the types of their results would be wrong."""

    def __init__(self, function: str, types: TypesOfValues) -> None:
        self._function: Final = function
        self._types: Final = types
        self._known: Final[dict[str, tuple[Type, Place]]] = {}
        self._met: Final[dict[str, Hashable]] = {}

    def add(self, name: str, place: Place, value: Any) -> None:
        """Take a value for a type parameter. Raises RunError if it has another type than those
        before."""
        look = _look(value)
        if look is not None and self._met.get(name) == look:
            return
        found = self._types.type(value)
        if name in self._known:
            before, where = self._known[name]
            both = joined(before, found)
            if both is None:
                raise RunError(self._mistake(name, (where, before), (place, found)))
            found, place = both, where
        self._known[name] = found, place
        self._met[name] = look

    def _mistake(
        self, name: str, first: tuple[Place, Type], second: tuple[Place, Type]
    ) -> TwoTypes:
        places = [(p.name, p.span, _words(ty)) for p, ty in (first, second)]
        return TwoTypes(self._function, name, places[0], places[1])


def _look(value: Any) -> Hashable:
    """Return the facts that determine the type of a value without parts; None for another value."""
    if type(value) in _PLAIN:
        return type(value)
    return (value.dtype, value.shape) if isinstance(value, torch.Tensor) else None


def _words(ty: Type) -> str:
    return "a function" if isinstance(ty, FnType) else show(ty)
