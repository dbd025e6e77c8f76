"""The form of a jacobian: that of the value, with the form of the arguments in place of each float
tensor, whose shapes follow that of the tensor."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Final, TypeAlias, TypeVar

from ..dims import Dim
from ..types import (
    AdtType,
    SizeType,
    StrType,
    TensorType,
    TupleType,
    Type,
    is_float,
    show,
    substitution,
)
from .own_tensors import with_type_parameters

if TYPE_CHECKING:
    from ..module import AdtDef

T = TypeVar("T")
OfTensor: TypeAlias = Callable[[TensorType], Type]


class NoJacobian(Exception):  # noqa: N818  becomes a diagnostic where the place is known
    """A type that no jacobian has the form of; `help` is what to write instead."""

    def __init__(self, message: str, help: str) -> None:  # noqa: A002  the diagnostic's own word
        super().__init__(message)
        self.help = help


def tensors_in(ty: Type) -> Iterator[TensorType]:
    """Yield the float tensors that a type consists of, through tuples. Raises ValueError for a
    part that is none, such as an integer or a value of a data type."""
    match ty:
        case TensorType(_, dtype) if is_float(dtype):
            yield ty
        case TupleType(fields):
            for field in fields:
                yield from tensors_in(field)
        case _:
            raise ValueError(show(ty))


def consists_of_floats(ty: Type) -> bool:
    """Return whether a type consists of float tensors, through tuples alone."""
    try:
        return all(True for _ in tensors_in(ty))
    except ValueError:
        return False


def jacobian_type(
    value: Type, arguments: Sequence[Type], adts: Mapping[str, AdtDef], *, single: bool
) -> Type:
    """Return the type of the derivatives of a value in some arguments. Raises NoJacobian."""

    def of_tensor(out: TensorType) -> Type:
        return entries_type(out, arguments, adts, single=single)

    return replaced(value, of_tensor, adts)


def entries_type(
    out: TensorType, arguments: Sequence[Type], adts: Mapping[str, AdtDef], *, single: bool
) -> Type:
    """Return the type of the derivatives of one tensor in some arguments. Raises NoJacobian."""

    def of_pair(given: TensorType) -> Type:
        return TensorType((*out.shape, *given.shape), out.dtype)

    parts = tuple(replaced(a, of_pair, adts) for a in arguments)
    return parts[0] if single else TupleType(parts)


def replaced(ty: Type, of_tensor: OfTensor, adts: Mapping[str, AdtDef]) -> Type:
    """Return the form of a type with something else in place of its float tensors.

    Data keep their type where its type parameters show the change. A record whose type does not is
    the tuple of its fields. Raises NoJacobian."""
    return _Replacement(of_tensor, adts).of(ty, ())


def mapped(
    ty: Type, of_tensor: Callable[[TensorType], T], of_tuple: Callable[[Sequence[T]], T]
) -> T:
    """Fold a type: the values of its tensors, put together as its tuples are. Raises ValueError for
    a part of another kind."""
    if isinstance(ty, TupleType):
        return of_tuple([mapped(f, of_tensor, of_tuple) for f in ty.fields])
    (tensor,) = tensors_in(ty)
    return of_tensor(tensor)


class _Replacement:
    """The replacement of float tensors in types."""

    def __init__(self, of_tensor: OfTensor, adts: Mapping[str, AdtDef]) -> None:
        self._of_tensor: Final = of_tensor
        self._adts: Final = adts

    def of(self, ty: Type, around: tuple[str, ...]) -> Type:
        """Return the form of a type, inside records of the names `around`."""
        match ty:
            case TensorType(_, dtype):
                return self._of_tensor(ty) if is_float(dtype) else ty
            case SizeType() | StrType():
                return ty
            case TupleType(fields):
                return TupleType(tuple(self.of(f, around) for f in fields))
            case AdtType(name, args):
                made = AdtType(
                    name, tuple(a if isinstance(a, Dim) else self.of(a, around) for a in args)
                )
                return made if self._shows(ty, made) else self._of_record(ty, around)
            case _:
                raise NoJacobian(
                    f"jacobians and Hessians are of tensors, tuples and data, not of {show(ty)}",
                    "name the parameters to differentiate in: `wrt`",
                )

    def _of_record(self, ty: AdtType, around: tuple[str, ...]) -> Type:
        definition = self._adts[ty.name]
        if len(definition.constructors) != 1 or ty.name in around:
            raise NoJacobian(
                f"the type of {show(ty)} cannot show the shapes of the derivatives",
                with_type_parameters(self._adts, ty.name),
            )
        fields = definition.field_types(ty, definition.constructors[0].name)
        return TupleType(tuple(self.of(f, (*around, ty.name)) for f in fields))

    def _shows(self, ty: AdtType, made: AdtType) -> bool:
        """Return whether a data type, applied to changed arguments, has the change of each field,
        in the data inside it too."""
        pending, seen = [(ty, made)], set[tuple[AdtType, AdtType]]()
        while pending:
            pair = pending.pop()
            if pair in seen or pair[0].name not in self._adts:
                continue
            if len(seen) > _MAX_TYPES:
                return False
            seen.add(pair)
            before, after = pair
            definition = self._adts[before.name]
            old = substitution(definition.type_params, before.args)
            new = substitution(definition.type_params, after.args)
            for field in definition.fields:
                inside = list(_side_by_side(old(field), new(field)))
                if any(a != b for a, b in inside if not isinstance(a, AdtType | TensorType)):
                    return False
                tensors = [(a, b) for a, b in inside if isinstance(a, TensorType)]
                if any(self.of(a, ()) != b for a, b in tensors):
                    return False
                for a, b in inside:
                    if isinstance(a, AdtType) and isinstance(b, AdtType) and a.name == b.name:
                        pending.append((a, b))
                    elif isinstance(a, AdtType):
                        return False
        return True


_MAX_TYPES: Final = 1000
"""How many data types inside one are compared before it is taken to grow for ever."""


def _side_by_side(first: Type, second: Type) -> Iterator[tuple[Type, Type]]:
    """Yield the parts of two types that lie at the same place, through tuples alone."""
    pending = [(first, second)]
    while pending:
        a, b = pending.pop()
        if isinstance(a, TupleType) and isinstance(b, TupleType) and len(a.fields) == len(b.fields):
            pending += zip(a.fields, b.fields, strict=True)
        else:
            yield a, b
