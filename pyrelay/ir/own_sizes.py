"""Tensors that each have sizes of their own: the elements of `list[Tensor[Int, (Any,)]]`.

Such an element is of a data type with one constructor, which holds the tensor. The name of the type
says the dtype and which sizes are each value's own; the others are its arguments, so one definition
serves all shapes: `Own.int64.av` of `K` is `Tensor[Int, (Any, K)]`. At run time the value is the
tensor itself. Inference puts a tensor into one, and takes it out, where the other is wanted.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Final

from ..diagnostics.source import Span
from .dims import Dim, DimVar
from .expr import BindPattern, Call, Clause, Constructor, ConstructorPattern, Expr, Match, Var
from .module import AdtDef, ConstructorDef
from .types import DTYPES, OWN_SIZES, AdtType, FnType, TensorType, Type, map_type, names_own_sizes

CONSTRUCTOR: Final = "Own"


def has_own_sizes(ty: Type) -> bool:
    """Return whether a type is that of tensors with sizes of their own."""
    return isinstance(ty, AdtType) and names_own_sizes(ty.name)


def with_own_sizes(ty: Type, own: Collection[str]) -> Type:
    """Return a type in which tensors with any of the sizes `own` have sizes of their own.
    Parameters and results of functions stay as they are."""

    def changed(part: Type) -> Type | None:
        match part:
            case FnType():
                return part
            case TensorType(shape, dtype):
                marks = "".join("a" if d.name in own else "v" for d in shape)
                args = tuple(d for d in shape if d.name not in own)
                return AdtType(f"{OWN_SIZES}{dtype}.{marks}", args) if "a" in marks else part
            case _:
                return None

    return map_type(ty, changed, lambda d: d)


def tensor_in(ty: Type, size: Callable[[], Dim]) -> TensorType:
    """Return the type of the tensor in a value of a type, whose own sizes are those given."""
    assert isinstance(ty, AdtType)
    dtype, marks = ty.name.removeprefix(OWN_SIZES).split(".")
    args = iter(a for a in ty.args if isinstance(a, Dim))
    shape = tuple(size() if mark == "a" else next(args) for mark in marks)
    return TensorType(shape, DTYPES[dtype])


def definition(name: str, span: Span) -> AdtDef:
    """Return the definition of a type of tensors with sizes of their own."""
    marks = name.rpartition(".")[2]
    params = tuple(DimVar(f"n{i}") for i, mark in enumerate(marks) if mark == "v")
    own = iter([Dim.of(f"own{i}") for i, mark in enumerate(marks) if mark == "a"])
    inside = tensor_in(AdtType(name, tuple(map(Dim.atom, params))), lambda: next(own))
    return AdtDef(name, params, (ConstructorDef(CONSTRUCTOR, (inside,), ("tensor",)),), span)


def opened(value: Expr, tensor: Var, ty: Type, body: Expr) -> Match:
    """Return an expression in which the tensor in a value of a type has a name, not typed yet."""
    assert isinstance(ty, AdtType)
    bound = BindPattern(tensor, span=tensor.span)
    pattern = ConstructorPattern(ty.name, CONSTRUCTOR, (bound,), span=tensor.span)
    return Match(value, (Clause(pattern, body),), span=tensor.span)


def closed(tensor: Expr, ty: Type) -> Expr:
    """Return a typed tensor as a value of a type."""
    assert isinstance(ty, AdtType)
    assert tensor.ty is not None
    make = Constructor(ty.name, CONSTRUCTOR, FnType((tensor.ty,), ty), span=tensor.span)
    return Call(make, (tensor,), type_args=ty.args, ty=ty, span=tensor.span)
