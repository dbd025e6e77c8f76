"""Types of names and of their parts as annotations declare them; inference finds the others."""

from __future__ import annotations

import ast

from ...ir.expr import Var
from ...ir.module import AdtDef
from ...ir.types import AdtType, TupleType, Type, TypeVar, dims, subtypes
from ...prelude.library import inner_of
from ..data.data import DataConstructor
from ..program.context import Context
from ..program.environment import Bound
from .known_parts import entry_of


def may_be_none(cx: Context, node: ast.expr) -> bool:
    """Return whether a name, or a part of one, is declared as an optional, and no test has shown
    that it is there."""
    return is_optional(declared_type(cx, node))


def is_optional(ty: Type | None) -> bool:
    """Return whether a type is that of optionals."""
    return inner_of(ty) is not None


def declared_type(cx: Context, node: ast.expr) -> Type | None:
    """Return the declared type of a name or of a part of one, the type parameters of data types
    left as they are; None where no annotation shows it."""
    match node:
        case ast.Name(id=name):
            found = cx.env.find(name)
            return _of_entry(found) if isinstance(found, Bound) else None
        case ast.Attribute(value=owner, attr=name):
            return _of_part(cx, owner, name, name)
        case ast.Subscript(value=owner, slice=ast.Constant(value=int(place))):
            return _of_part(cx, owner, f"[{place}]", place)
        case _:
            return None


def field_type(cx: Context, found: DataConstructor, name: str) -> Type | None:
    """Return the declared type of a field of a class."""
    adt = cx.program.data.adts.get(found.adt)
    return None if adt is None else _field(adt, (found.name,), name)


def closed_type(ty: Type | None) -> Type | None:
    """Return a declared type that mentions no type parameter and no size; None for others."""
    if ty is None or any(True for _ in dims(ty)):
        return None
    return None if any(isinstance(part, TypeVar) for part in subtypes(ty)) else ty


def _of_entry(entry: Bound) -> Type | None:
    if isinstance(entry.atom, Var) and entry.atom.ty is not None:
        return entry.atom.ty
    return entry.declared


def _of_part(cx: Context, owner: ast.expr, key: str, part: str | int) -> Type | None:
    around = entry_of(cx, owner)
    known = None
    if around is not None:
        known = (around.parts or {}).get(key) or (around.narrowed or {}).get(key)
    if known is not None and known.atom is not None:
        return _of_entry(known)
    whole = declared_type(cx, owner)
    match whole:
        case TupleType(fields) if isinstance(part, int) and -len(fields) <= part < len(fields):
            return fields[part]
        case AdtType(name) if isinstance(part, str) and name in cx.program.data.adts:
            adt = cx.program.data.adts[name]
            return _field(adt, tuple(c.name for c in adt.constructors), part)
        case _:
            return None


def _field(adt: AdtDef, names: tuple[str, ...], field: str) -> Type | None:
    """Return the type of a field of some constructors, if it is one."""
    found = {
        dict(zip(c.field_names, c.fields, strict=False)).get(field)
        for c in adt.constructors
        if c.name in names
    }
    return found.pop() if len(found) == 1 else None
