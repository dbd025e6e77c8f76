"""Sharing: the arguments of a function whose storage its result may share, or that it lets escape.

The variables that may share storage form a graph in each function. Facts about calls in it are
those of the callee, so functions are analysed callees first, and those that reach each other until
nothing changes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Final, final

from ..dataclass import dataclass
from ..ir.calls.storage import makes_storage
from ..ir.expr import (
    Call,
    Constructor,
    Expr,
    Function,
    GlobalVar,
    If,
    LetBlock,
    Match,
    RefRead,
    Tuple,
    TupleGet,
    Var,
)
from ..ir.module import Module
from ..ir.op import Effect, Op
from ..ir.traverse import children, free_vars, pattern_vars, spine
from .call_graph import call_graph


@final
@dataclass(frozen=True, slots=True)
class Sharing:
    """The arguments, by their places, whose storage the result of a function may share, and those
    that may be read after it has returned, from anywhere."""

    result: frozenset[int]
    escaping: frozenset[int]


_NONE: Final = Sharing(frozenset(), frozenset())


def sharing_of(module: Module, opaque: Callable[[Op], bool]) -> Mapping[str, Sharing]:
    """Return the sharing of each global function; an `opaque` operator may share anything."""
    found: dict[str, Sharing] = {}
    for group in call_graph(module).groups:
        graphs = {name: _Graph(module.functions[name], opaque) for name in group}
        changed = True
        while changed:
            changed = False
            for name, graph in graphs.items():
                sharing = graph.sharing(found)
                changed |= sharing != found.get(name, _NONE)
                found[name] = sharing
    return found


@final
class _Graph:
    """The variables of one function, each with those whose storage it may share; None stands for
    the result."""

    def __init__(self, function: Function, opaque: Callable[[Op], bool]) -> None:
        self._params: Final = function.params
        self._opaque: Final = opaque
        self._sources: Final[dict[Var | None, list[Expr]]] = {}
        self._calls: Final[dict[Var | None, list[Call]]] = {}
        self._escaping: Final[list[Expr]] = []
        self._pending: Final[list[tuple[Expr, Var | None]]] = [(function.body, None)]
        while self._pending:
            body, target = self._pending.pop()
            blocks, end = spine(body)
            for binding in (b for block in blocks for b in block.bindings):
                self._value(binding.value, binding.var)
            self._value(end, target)

    def _value(self, value: Expr, target: Var | None) -> None:
        match value:
            case Var():
                self._share(target, (value,))
            case Tuple() | TupleGet():
                self._share(target, children(value))
            case If(_, then, otherwise):
                self._pending.extend(((then, target), (otherwise, target)))
            case Match():
                self._match(value, target)
            case LetBlock():
                self._pending.append((value, target))
            case Call():
                self._call(value, target)
            case Function():
                self._escaping.extend(free_vars(value))
            case RefRead():
                pass  # who reads contents is found by the type of the reference
            case _:
                self._escaping.extend(children(value))

    def _match(self, node: Match, target: Var | None) -> None:
        for clause in node.clauses:
            for var in pattern_vars(clause.pattern):
                self._share(var, (node.value,))
            self._pending.extend((scope, target) for scope in clause.scopes)

    def _call(self, call: Call, target: Var | None) -> None:
        match call.callee:
            case Constructor():
                self._share(target, call.args)
            case GlobalVar():
                self._calls.setdefault(target, []).append(call)
            case Op() as op:
                if self._opaque(op) or not makes_storage(op):
                    self._share(target, call.args)
                if op.effect & (Effect.STATE | Effect.IO):
                    self._escaping.extend(call.args)  # it may keep what it is given
            case _:
                self._escaping.extend(children(call))

    def _share(self, target: Var | None, sources: Iterable[Expr]) -> None:
        self._sources.setdefault(target, []).extend(sources)

    def sharing(self, known: Mapping[str, Sharing]) -> Sharing:
        """Return the sharing of the function, as far as that of others is known."""
        calls = [call for found in self._calls.values() for call in found]
        passed = [a for c in calls for a in _picked(c, _sharing(c, known).escaping)]
        return Sharing(
            self._reached([None], known), self._reached([*self._escaping, *passed], known)
        )

    def _reached(
        self, start: Iterable[Expr | None], known: Mapping[str, Sharing]
    ) -> frozenset[int]:
        """Return the parameters whose storage some variables may share."""
        seen: set[Expr | None] = set()
        pending = list(start)
        while pending:
            var = pending.pop()
            if var in seen or not isinstance(var, Var | None):
                continue
            seen.add(var)
            pending += self._sources.get(var, ())
            for call in self._calls.get(var, ()):
                pending += _picked(call, _sharing(call, known).result)
        return frozenset(i for i, p in enumerate(self._params) if p in seen)


def _sharing(call: Call, known: Mapping[str, Sharing]) -> Sharing:
    assert isinstance(call.callee, GlobalVar)
    return known.get(call.callee.name, _NONE)


def _picked(call: Call, places: Iterable[int]) -> Iterator[Expr]:
    return (call.args[place] for place in places)
