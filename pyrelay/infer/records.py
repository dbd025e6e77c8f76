"""Data types in inference: sizes of a value's own, fields by name, optionals."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from ..diagnostics.catalogue.data import NoSuchField, NoSuchMethod
from ..diagnostics.diagnostic import Problem
from ..ir.dims import Dim
from ..ir.expr import Call, Expr, Function, Match, RefRead, Tuple, Var
from ..ir.fields import all_have, reading
from ..ir.op import Clash, Stuck
from ..ir.types import AdtType, RefType, Substitution, Type, TypeHole, dim_names, show
from ..prelude.library import OPTION

if TYPE_CHECKING:
    from ..ir.module import AdtDef, ConstructorDef
    from .operators import OperatorCall
    from .solver import Solver


def with_own_sizes(
    solver: Solver, constructor: ConstructorDef, replace: Substitution, *, is_opened: bool
) -> Substitution:
    """Return the replacement with the sizes in it that the data type does not quantify: a value
    that is opened has its own, known only to the running program; one that is made may have any."""
    own = frozenset[str]().union(*map(dim_names, constructor.fields)) - replace.dims.keys()
    found: dict[str, Dim] = {}
    for name in sorted(own):
        found[name] = solver.fresh_dim(name) if is_opened else solver.fresh_dim_hole()
    return Substitution({**replace.dims, **found}, replace.types)


def read_field(call: OperatorCall, value: Expr, solver: Solver, adts: Mapping[str, AdtDef]) -> Expr:
    """Return the expression for an attribute of a value. Raises Stuck while its type is not known,
    Clash."""
    name, span = str(call.call.attrs["name"]), call.call.span
    ty = solver.shallow(call.types[0])
    match ty:
        case TypeHole() if not (solver.settling and solver.guessing and name == "value"):
            raise Stuck(ty)
        case TypeHole() | RefType() if name == "value":
            return RefRead(value, span=span)
        case AdtType() if all_have(adts[ty.name].constructors, name):
            found = (reading(ty.name, c, name, span) for c in adts[ty.name].constructors)
            return Match(value, tuple(found), span=span)
        case _:
            raise Clash("no such field")


def chosen(call: Call, ty: Type) -> Function:
    """Return the function that the type of a value chooses. Raises Stuck and Clash."""
    if isinstance(ty, TypeHole):
        raise Stuck(ty)
    choices, types = call.args[0], call.attrs["types"]
    # A text may write anything; translation writes a function for each type.
    if not isinstance(choices, Tuple) or not isinstance(types, tuple):
        raise Clash("`choices` are functions, one for each of `types`")
    if not types or len(choices.fields) < len(types):
        raise Clash("there is a function for each type")
    if not all(isinstance(f, Function) for f in choices.fields):
        raise Clash("`choices` are functions")
    is_known = isinstance(ty, AdtType) and ty.name in types
    place = types.index(ty.name) if isinstance(ty, AdtType) and is_known else len(types)
    if place == len(choices.fields):
        raise Clash("no such method")
    function = choices.fields[place]
    assert isinstance(function, Function)
    return function


def explain_method(call: Call, ty: Type) -> Problem:
    """Return the mistake of a method or property that a value does not have."""
    name, types = str(call.attrs["name"]), call.attrs["types"]
    holders = types if isinstance(types, tuple) else ()
    match ty:
        case AdtType(name=owner, args=(inner,)) if owner == OPTION and not isinstance(inner, Dim):
            instead = f"it may be None: test `is not None` first, which leaves {show(inner)}"
        case _:
            some = " and ".join(f"`{h}`" for h in holders)
            instead = f"{some} {'has' if len(holders) == 1 else 'have'} it"
    return NoSuchMethod(call.span, name, show(ty), show(ty), instead, kind="method or property")


def explain_field(call: Call, ty: Type, adts: Mapping[str, AdtDef]) -> Problem:
    """Return the mistake of an attribute that a value does not have."""
    name = str(call.attrs["name"])
    if not isinstance(ty, AdtType):
        return NoSuchField(call.span, name, show(ty), (), ())
    cases = adts[ty.name].constructors
    holders = tuple(c.name for c in cases if name in c.field_names)
    fields = tuple(dict.fromkeys(f for c in cases for f in c.field_names))
    return NoSuchField(call.span, name, show(ty), fields, holders)


def maker_of(adt: AdtDef, name: str) -> Function | None:
    """Return a function with the signature of a constructor, for errors about its arguments; None
    if its fields have no names."""
    found = adt.constructor(name)
    if not found.field_names:
        return None
    typed = zip(found.field_names, found.fields, strict=True)
    params = tuple(Var(n, ty, span=adt.span) for n, ty in typed)
    return Function(params, Tuple((), span=adt.span), name=name, span=adt.span)
