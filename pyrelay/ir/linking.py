"""Linking: what a module mentions of a library, brought into it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import cached_property
from typing import Final, final

from .dims import Dim
from .expr import (
    BindPattern,
    Call,
    Constructor,
    ConstructorPattern,
    Function,
    Match,
    Pattern,
    TuplePattern,
)
from .module import AdtDef, Module
from .traverse import bound_vars, free_globals, post_order
from .types import AdtType, Type, subtypes


@final
class Library:
    """Functions and data types that programs may mention without defining them.

    A definition of the program hides the library's of the same name. The library is loaded when a
    program mentions a name with its prefix.
    """

    def __init__(self, load: Callable[[], Module], prefix: str = "") -> None:
        self._load: Final = load
        self._prefix: Final = prefix
        self._calls: Final[dict[str, tuple[str, ...]]] = {}

    @cached_property
    def module(self) -> Module:
        """All that the library defines."""
        return self._load()

    def link(self, module: Module) -> Module:
        """Return the module with the parts of the library that it mentions, and all that they
        reach; itself if it mentions nothing, or has everything already."""
        missing = [n for f in module.functions.values() for n in free_globals(f)]
        wanted = [n for n in self._reached(missing) if n not in module.functions]
        functions = {n: self.module.functions[n] for n in wanted}
        with_functions = module.with_functions(functions) if functions else module
        mentioned = (n for f in with_functions.functions.values() for n in _data_types(f))
        own = (n for a in module.adts.values() for n in _data_types_of(a))
        enclosed = self._enclosed((*own, *mentioned))
        adts = {n: self.module.adts[n] for n in enclosed if n not in module.adts}
        return with_functions.with_adts(adts) if adts else with_functions

    def _reached(self, names: Iterable[str]) -> list[str]:
        """Return the library's functions among names and all that they call, in its order."""
        found: set[str] = set()
        pending = [n for n in names if n.startswith(self._prefix)]
        while pending:
            name = pending.pop()
            if name in self.module.functions and name not in found:
                found.add(name)
                pending += self._called(name)
        return [n for n in self.module.functions if n in found] if found else []

    def _called(self, name: str) -> tuple[str, ...]:
        if name not in self._calls:
            self._calls[name] = free_globals(self.module.functions[name])
        return self._calls[name]

    def _enclosed(self, names: Iterable[str]) -> list[str]:
        """Return the library's data types among names and in their fields, in its order."""
        found: set[str] = set()
        pending = [n for n in dict.fromkeys(names) if n.startswith(self._prefix)]
        while pending:
            name = pending.pop()
            if name in self.module.adts and name not in found:
                found.add(name)
                pending += _data_types_of(self.module.adts[name])
        return [n for n in self.module.adts if n in found] if found else []


def _data_types_of(adt: AdtDef) -> Iterator[str]:
    return (n for f in adt.fields for n in _named(f))


def _data_types(function: Function) -> Iterator[str]:
    """Return the names of the data types that a function mentions, each perhaps several times."""
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
