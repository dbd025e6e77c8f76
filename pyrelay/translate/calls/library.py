"""Names of the prelude in a program, its functions and constructors, and what they take."""

from __future__ import annotations

from ...diagnostics.source import Span
from ...ir.expr import Call, Constructor, Expr, Function, GlobalVar, Var
from ...ir.types import PRELUDE
from ...prelude.library import fails, library
from ...prelude.names import LibraryConstructor, LibraryFunction, LibraryValue
from .arguments import Callee, Slot


def library_mention(value: LibraryValue, span: Span) -> Expr:
    """Return a function or constructor of the prelude as a value."""
    if isinstance(value, LibraryFunction) and fails(value.name):
        # Called where it is mentioned, so that this is the place of the error.
        names = [s.name for s in library_callee(value).slots]
        params = tuple(Var(n, span=span) for n in names)
        return Function(params, Call(library_reference(value, span), params, span=span), span=span)
    return library_reference(value, span)


def library_reference(value: LibraryValue, span: Span) -> Expr:
    """Return a function or constructor of the prelude, to be called."""
    match value:
        case LibraryFunction(name):
            return GlobalVar(name, span=span)
        case LibraryConstructor(adt, name):
            return Constructor(adt, name, span=span)


def library_callee(value: LibraryValue) -> Callee:
    """Return the parameters of a function or constructor of the prelude."""
    match value:
        case LibraryFunction(name):
            names = tuple(p.name for p in library().functions[name].params)
        case LibraryConstructor(name=name, fields=names):
            pass
    shown = name.removeprefix(PRELUDE)
    slots = tuple(Slot(n, required=True) for n in names)
    return Callee(shown, slots, f"{shown}({', '.join(names)})")
