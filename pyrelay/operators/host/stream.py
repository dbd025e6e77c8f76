"""Iterating over a Python iterable of the caller's: a stream of elements, read one by one.

The program holds the iterable and its iterators as opaque values, `Iterable` and `Iterator`; all
that can be done with them is an effect. An element's type is an attribute, its *description*:

    element ::= ("tensor", dtype, (dim, ...)) | ("size", dim) | ("tuple", (element, ...)) | ("str",)
              | ("data", name, (element or dim, ...))

A dim that is a string is a size that each element brings itself; a `Dim` is one that the program
knows. The runtime checks every element against its description.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any, Final, TypeGuard

from ...diagnostics.source import NOWHERE
from ...ir.dims import Dim
from ...ir.module import AdtDef
from ...ir.op import (
    Effect,
    Host,
    Library,
    NoGradient,
    Op,
    RuleCall,
    Sample,
    ShapeBehaviour,
    attribute,
    operand,
)
from ...ir.types import (
    BOOL,
    DTYPES,
    ITERABLE,
    ITERATOR,
    STR,
    AdtType,
    DType,
    SizeType,
    StrType,
    TensorType,
    TupleType,
    Type,
    show,
)

STREAM_DATA: Final = {t.name: AdtDef(t.name, (), (), NOWHERE) for t in (ITERABLE, ITERATOR)}
"""The definitions of the opaque types: data without constructors."""

_OUTSIDE: Final = NoGradient("elements come from outside of the program")


class ElementError(Exception):
    """An element is not what the annotation says: its place, and in words what it is."""

    def __init__(self, position: int, wanted: str, actual: str, way: str | None) -> None:
        super().__init__(f"element {position} is {actual}, not {wanted}")
        self.position = position
        self.wanted = wanted
        self.actual = actual
        self.way = way


def describe_element(ty: Type, known: Collection[str]) -> tuple[Any, ...]:
    """Return the description of elements of a type; sizes named in `known` are the program's.

    Raises ValueError, with the reason, for a type that elements cannot have.
    """
    match ty:
        case TensorType(shape, DType() as dtype):
            return ("tensor", dtype, tuple(_described(d, known) for d in shape))
        case SizeType(dim):
            return ("size", _described(dim, known))
        case TupleType(fields):
            return ("tuple", tuple(describe_element(f, known) for f in fields))
        case StrType():
            return ("str",)
        case AdtType(name, args) if name not in STREAM_DATA:
            return ("data", name, tuple(_described_argument(a, known) for a in args))
        case _:
            raise ValueError(f"{show(ty)} cannot be read from an iterable")


def _described_argument(arg: Type | Dim, known: Collection[str]) -> Any:
    return _described(arg, known) if isinstance(arg, Dim) else describe_element(arg, known)


def _described(dim: Dim, known: Collection[str]) -> Dim | str:
    if dim.names() <= set(known):
        return dim
    if dim.name is None:
        new = ", ".join(f"`{n}`" for n in sorted(dim.names() - set(known)))
        raise ValueError(f"the size {dim} is computed from {new}, which no other parameter shows")
    return dim.name


def element_type(description: tuple[Any, ...], own: Callable[[str], Dim]) -> Type:
    """Return the type that a description stands for; `own` gives the sizes an element brings."""
    match description:
        case ("tensor", dtype, shape):
            dtype = DTYPES[str(dtype).removeprefix("torch.")]
            return TensorType(tuple(_dim(d, own) for d in shape), dtype)
        case ("size", dim):
            return SizeType(_dim(dim, own))
        case ("tuple", fields):
            return TupleType(tuple(element_type(f, own) for f in fields))
        case ("data", name, args):
            return AdtType(name, tuple(_argument(a, own) for a in args))
        case _:
            return STR


def _argument(arg: Any, own: Callable[[str], Dim]) -> Type | Dim:
    return element_type(arg, own) if _is_element(arg) else _dim(arg, own)


def _dim(dim: Dim | str | int, own: Callable[[str], Dim]) -> Dim:
    return own(dim) if isinstance(dim, str) else Dim.of(dim)


def _normal(description: Any) -> Any:
    """Return a description with its sizes as dims, as text that was read may not have them."""
    match description:
        case ("tensor", dtype, shape):
            return ("tensor", dtype, tuple(_size(d) for d in shape))
        case ("size", dim):
            return ("size", _size(dim))
        case ("tuple", fields):
            return ("tuple", tuple(_normal(f) for f in fields))
        case ("data", name, args):
            return ("data", name, tuple(_normal(a) if _is_element(a) else _size(a) for a in args))
        case _:
            return description


def _is_element(arg: Any) -> TypeGuard[tuple[Any, ...]]:
    """Return whether an argument of a data type is a type, not a size."""
    return isinstance(arg, tuple)


def _size(dim: Any) -> Dim | str:
    return dim if isinstance(dim, str) else Dim.of(dim)


def _opaque(call: RuleCall, wanted: AdtType) -> None:
    ty = call.type(0)
    if ty != wanted:
        call.clash(f"`{call.op.name}` takes an {wanted.name}, not {show(ty)}", 0)


def _start_type(call: RuleCall) -> Type:
    _opaque(call, ITERABLE)
    return ITERATOR


def _has_next_type(call: RuleCall) -> Type:
    _opaque(call, ITERATOR)
    return BOOL


def _element_type(call: RuleCall) -> Type:
    _opaque(call, ITERATOR)
    sizes: dict[str, Dim] = {}

    def own(name: str) -> Dim:
        if name not in sizes:
            sizes[name] = call.solver.fresh_dim(name)
        return sizes[name]

    return element_type(call.attrs["element"], own)


start_iteration: Final = Op(
    name="start_iteration",
    doc="Begins to iterate over what a caller passed, as Python's iter.",
    params=(operand("iterable"),),
    type_rule=_start_type,
    effect=Effect.IO,
    lowering=Host(lambda iterable: iterable.start()),
    grad=_OUTSIDE,
    samples=lambda: (Sample(()),),
)


has_next: Final = Op(
    name="has_next",
    doc="Takes the next element from an iterator, if there is one; returns whether there was.",
    params=(operand("iterator"),),
    type_rule=_has_next_type,
    effect=Effect.IO,
    lowering=Host(lambda iterator: iterator.advance()),
    grad=_OUTSIDE,
    samples=lambda: (Sample(()),),
)


next_element: Final = Op(
    name="next_element",
    doc="The element that an iterator took last, checked against its description.",
    params=(operand("iterator"), attribute("element", convert=_normal)),
    type_rule=_element_type,
    effect=Effect.IO,
    shape=ShapeBehaviour.FACTORY,
    lowering=Library(lambda torch, device, iterator, element: iterator.element(device, element)),
    grad=_OUTSIDE,
    samples=lambda: (Sample((), {"element": ("tuple", ())}),),
)
