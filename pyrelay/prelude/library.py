"""The prelude as IR: `prelude.relay`, read once a process and only when a program needs it.

In a program its names begin with `prelude.`, which no name of a user's does, so they clash with
nothing: `prelude.map`, `prelude.List`. What a program mentions is linked into its module, together
with what that reaches.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cache
from typing import Final

from ..ir.dims import Dim
from ..ir.expr import (
    BindPattern,
    Call,
    Constructor,
    ConstructorPattern,
    Function,
    Match,
    Pattern,
    TuplePattern,
)
from ..ir.module import AdtDef, Module
from ..ir.op import Effect, Op
from ..ir.traverse import bound_vars, free_globals, post_order
from ..ir.types import PRELUDE, AdtType, Type, subtypes

FILE: Final = "prelude.relay"


def qualified(name: str) -> str:
    """Give the name that something of the prelude has in programs."""
    return PRELUDE + name


LIST: Final = qualified("List")
OPTION: Final = qualified("Option")
TREE: Final = qualified("Tree")
NAT: Final = qualified("Nat")


@cache
def library() -> Module:
    """Give the whole prelude, not yet typed, under the names it has in programs."""
    from importlib import resources  # this and the parser are slow to import

    from ..ir.parser import parse_module
    from ..ir.rename import rename

    place = resources.files(__spec__.parent).joinpath(FILE)
    return rename(parse_module(place.read_text("utf-8"), FILE), qualified)


@cache
def fails(name: str) -> bool:
    """Tell whether a function of the prelude, by its name in programs, may itself stop it."""
    return stops(library().functions[name])


def stops(function: Function) -> bool:
    """Tell whether the body of a function may stop the program, what it calls aside."""
    callees = (n.callee for n in post_order(function) if isinstance(n, Call))
    return any(isinstance(c, Op) and c.effect is Effect.FAIL for c in callees)


def link(module: Module) -> Module:
    """Give the module with what it mentions of the prelude, and what that reaches; itself if it
    mentions nothing, or has everything already."""
    missing = [n for f in module.functions.values() for n in free_globals(f)]
    functions = {n: library().functions[n] for n in _reached(missing) if n not in module.functions}
    with_functions = module.with_functions(functions) if functions else module
    mentioned = (n for f in with_functions.functions.values() for n in _data_types(f))
    own = (n for a in module.adts.values() for n in _data_types_of(a))
    adts = {n: library().adts[n] for n in _enclosed((*own, *mentioned)) if n not in module.adts}
    return with_functions.with_adts(adts) if adts else with_functions


def _reached(names: Iterable[str]) -> list[str]:
    """Give the functions of the prelude among names and all that they call, in the file's order."""
    found: set[str] = set()
    pending = [n for n in names if n.startswith(PRELUDE)]
    while pending:
        name = pending.pop()
        if name in library().functions and name not in found:
            found.add(name)
            pending += _calls(name)
    return [n for n in library().functions if n in found] if found else []


@cache
def _calls(name: str) -> tuple[str, ...]:
    return free_globals(library().functions[name])


def _enclosed(names: Iterable[str]) -> list[str]:
    """Give the data types of the prelude among names and in their fields, in the file's order."""
    found: set[str] = set()
    pending = [n for n in dict.fromkeys(names) if n.startswith(PRELUDE)]
    while pending:
        name = pending.pop()
        if name in library().adts and name not in found:
            found.add(name)
            pending += _data_types_of(library().adts[name])
    return [n for n in library().adts if n in found] if found else []


def _data_types_of(adt: AdtDef) -> Iterator[str]:
    return (n for c in adt.constructors for f in c.fields for n in _named(f))


def _data_types(function: Function) -> Iterator[str]:
    """Give the names of the data types that a function mentions, each perhaps several times."""
    for node in post_order(function):
        for var in bound_vars(node):
            yield from _named(var.ty)
        match node:
            case Constructor(adt):
                yield adt
            case Function(result=result):
                yield from _named(result)
            case Call(type_args=args):
                for arg in args:
                    yield from () if isinstance(arg, Dim) else _named(arg)
            case Match(clauses=clauses):
                for clause in clauses:
                    yield from _matched(clause.pattern)
            case _:
                pass


def _named(ty: Type | None) -> Iterator[str]:
    return (p.name for p in subtypes(ty) if isinstance(p, AdtType)) if ty is not None else iter(())


def _matched(pattern: Pattern) -> Iterator[str]:
    pending = [pattern]
    while pending:
        match pending.pop():
            case ConstructorPattern(adt=adt, fields=fields):
                yield adt
                pending += fields
            case TuplePattern(fields):
                pending += fields
            case BindPattern(inner=inner) if inner is not None:
                pending.append(inner)
            case _:
                pass
