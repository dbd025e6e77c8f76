"""The free names of functions: variables, sizes, and the values of sizes.

One walk over a global function, in order of evaluation, summarises it and every function inside.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import field
from typing import Final, TypeAlias, final

from ..dataclass import dataclass
from ..ir.dims import Dim, DimVar
from ..ir.expr import Expr, Flavour, Function, If, LetBlock, Match, Var
from ..ir.traverse import children, pattern_vars
from ..ir.types import Type, TypeVar, dims, subtypes
from .dim_availability import needed, shown, uncovered
from .retype import types_in


@final
@dataclass(frozen=True, slots=True)
class FreeNames:
    """The mentions of a function, each in order of first mention."""

    free: tuple[Var, ...]
    """The variables bound outside."""
    sizes: tuple[str, ...]
    """The names of sizes in types and attributes."""
    taken: tuple[Dim, ...]
    """The dims whose value it needs where nothing it has bound before, parameters apart, shows
    them."""
    wanted: tuple[Dim, ...]
    """Those of them that its parameters do not show either."""
    has_type_variables: bool


def names_in(parts: Iterable[Type | Dim]) -> Iterator[str]:
    """Return the names of sizes in types and dims, in order, repeats included."""
    for part in parts:
        for dim in (part,) if isinstance(part, Dim) else dims(part):
            yield from (a.name for a in dim.atoms() if isinstance(a, DimVar))


@final
@dataclass(slots=True)
class _Gathered:
    """The names seen of one function so far."""

    used: dict[Var, None] = field(default_factory=dict[Var, None])
    bound: set[Var] = field(default_factory=set[Var])
    sizes: dict[str, None] = field(default_factory=dict[str, None])
    taken: dict[Dim, None] = field(default_factory=dict[Dim, None])
    params: set[Dim] = field(default_factory=set[Dim])
    shown: dict[Dim, None] = field(default_factory=dict[Dim, None])
    """The dims shown at the walk's position, a scope's on top of those around it."""
    has_type_variables: bool = False

    def summary(self) -> FreeNames:
        """Return the free names of the function."""
        return FreeNames(
            tuple(v for v in self.used if v not in self.bound),
            tuple(self.sizes),
            tuple(self.taken),
            tuple(d for d in self.taken if any(uncovered(d, self.params))),
            self.has_type_variables,
        )

    def need(self, dim: Dim) -> None:
        """Note a dim whose value is needed where the walk is."""
        if dim not in self.taken and any(uncovered(dim, self.shown)):
            self.taken[dim] = None


@final
@dataclass(frozen=True, slots=True)
class _Bind:
    """The place after which variables are in scope."""

    bound: tuple[Var, ...]


@final
@dataclass(frozen=True, slots=True)
class _Leave:
    """The end of a scope in which so many dims were shown before."""

    count: int


_Work: TypeAlias = "Expr | _Bind | _Leave | tuple[Function]"
"""A node, or what happens between nodes; a function alone is one whose inside is done."""


def summarise(root: Function) -> dict[Function, FreeNames]:
    """Return the summaries of a function and of all functions inside it."""
    walk = _Walk()
    stack: list[_Work] = [root]
    while stack:
        step = stack.pop()
        if isinstance(step, tuple):
            walk.leave_function()
        elif isinstance(step, _Bind):
            walk.bind(step.bound)
        elif isinstance(step, _Leave):
            walk.leave_scope(step.count)
        else:
            stack += reversed(walk.enter(step))
    return walk.done


@final
class _Walk:
    """The functions that are open, innermost last, and those that are done."""

    def __init__(self) -> None:
        self.done: Final[dict[Function, FreeNames]] = {}
        self._open: Final[list[tuple[Function, _Gathered]]] = []
        self._types: Final[dict[Type | Dim, tuple[tuple[str, ...], bool]]] = {}

    def enter(self, node: Expr) -> list[_Work]:
        """Record the mentions of a node; return the nodes to visit next, in order."""
        if isinstance(node, Function):
            return self._enter_function(node)
        found = self._open[-1][1]
        if isinstance(node, Var):
            found.used.setdefault(node)
            return []
        self._mention(found, types_in(node))
        for dim in needed(node):
            found.need(dim)
        match node:
            case LetBlock(bindings, body, Flavour.REC):
                bound = tuple(b.var for b in bindings)
                return [_Bind(bound), *(b.value for b in bindings), body]
            case LetBlock(bindings, body):
                steps: list[_Work] = []
                for binding in bindings:
                    steps += (binding.value, _Bind((binding.var,)))
                return [*steps, body]
            case If(condition, then, otherwise):
                end = _Leave(len(found.shown))
                return [condition, then, end, otherwise, end]
            case Match():
                return self._arms(node, found)
            case _:
                return list(children(node))

    def _enter_function(self, function: Function) -> list[_Work]:
        found = _Gathered()
        self._open.append((function, found))
        self._mention(found, types_in(function))
        found.bound.update(function.params)
        found.params.update(d for p in function.params for d in shown(p.ty))
        return [function.body, (function,)]

    def _arms(self, node: Match, found: _Gathered) -> list[_Work]:
        end = _Leave(len(found.shown))
        steps: list[_Work] = [node.value]
        for clause in node.clauses:
            steps += (_Bind(pattern_vars(clause.pattern)), *clause.scopes, end)
        return steps

    def bind(self, bound: tuple[Var, ...]) -> None:
        """Bring variables into scope."""
        found = self._open[-1][1]
        found.bound.update(bound)
        for var in bound:
            for dim in shown(var.ty):
                found.shown.setdefault(dim)

    def leave_scope(self, count: int) -> None:
        """Forget what only the scope that ends showed."""
        shown_here = self._open[-1][1].shown
        while len(shown_here) > count:
            shown_here.popitem()

    def leave_function(self) -> None:
        """Close a function; what it takes from outside, the function around it needs."""
        function, found = self._open.pop()
        inside = self.done[function] = found.summary()
        if self._open:
            around = self._open[-1][1]
            around.used |= dict.fromkeys(inside.free)
            around.sizes |= dict.fromkeys(inside.sizes)
            around.has_type_variables |= inside.has_type_variables
            for dim in inside.wanted:
                around.need(dim)

    def _mention(self, found: _Gathered, types: Iterable[Type | Dim]) -> None:
        for ty in types:
            known = self._types.get(ty)
            if known is None:
                parts = () if isinstance(ty, Dim) else subtypes(ty)
                has = any(isinstance(p, TypeVar) for p in parts)
                known = self._types[ty] = (tuple(names_in((ty,))), has)
            found.sizes |= dict.fromkeys(known[0])
            found.has_type_variables |= known[1]
