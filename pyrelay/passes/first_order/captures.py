"""What functions take from around them: variables, sizes, and the values of sizes.

One walk over a global function summarises it and every function inside it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, TypeAlias, final

from ...ir.dims import Dim
from ...ir.expr import Expr, Function, Var
from ...ir.traverse import bound_vars, children
from ...ir.types import Type, TypeVar, subtypes
from ..retype import types_in
from ..sizes import needed, shown, uncovered
from .types import names_in

if TYPE_CHECKING:
    from collections.abc import Iterable


@final
@dataclass(frozen=True, slots=True)
class Summary:
    """What a function mentions; the keys are in order of first mention."""

    free: tuple[Var, ...]
    """The variables bound outside."""
    sizes: tuple[str, ...]
    """The names of sizes in types and attributes."""
    wanted: tuple[Dim, ...]
    """The dims whose value it needs and does not find in its own variables."""
    has_type_variables: bool


@final
@dataclass(slots=True)
class _Gathered:
    """What has been seen of one function so far."""

    used: dict[Var, None] = field(default_factory=dict[Var, None])
    bound: set[Var] = field(default_factory=set[Var])
    sizes: dict[str, None] = field(default_factory=dict[str, None])
    wanted: dict[Dim, None] = field(default_factory=dict[Dim, None])
    shown: set[Dim] = field(default_factory=set[Dim])
    has_type_variables: bool = False

    def summary(self) -> Summary:
        """Give what the function takes from outside."""
        return Summary(
            tuple(v for v in self.used if v not in self.bound),
            tuple(self.sizes),
            tuple(d for d in self.wanted if any(uncovered(d, self.shown))),
            self.has_type_variables,
        )


_Step: TypeAlias = "tuple[Expr, Function] | Function"
"""A node with the function it stands in, or a function whose inside has been walked."""


def summarise(root: Function) -> dict[Function, Summary]:
    """Give the summaries of a function and of all functions inside it."""
    walk = _Walk()
    stack: list[_Step] = [root, *walk.enter(root, None)]
    while stack:
        step = stack.pop()
        if isinstance(step, Function):
            walk.leave(step)
            continue
        node, owner = step
        if isinstance(node, Function):
            stack.append(node)
            stack += walk.enter(node, owner)
        else:
            walk.look(node, owner)
            stack += ((child, owner) for child in reversed(children(node)))
    return walk.done


@final
class _Walk:
    """The functions that are open, and those that are done."""

    def __init__(self) -> None:
        self.done: Final[dict[Function, Summary]] = {}
        self._open: Final[dict[Function, _Gathered]] = {}
        self._outer: Final[dict[Function, Function | None]] = {}
        self._types: Final[dict[Type | Dim, tuple[tuple[str, ...], bool]]] = {}

    def enter(self, function: Function, outer: Function | None) -> list[_Step]:
        """Open a function; give what there is to walk in it."""
        self._open[function] = _Gathered()
        self._outer[function] = outer
        self.look(function, function)
        return [(function.body, function)]

    def leave(self, function: Function) -> None:
        """Close a function; what it takes from outside, the function around it needs."""
        inside = self.done[function] = self._open.pop(function).summary()
        outer = self._outer[function]
        if outer is not None:
            around = self._open[outer]
            around.used |= dict.fromkeys(inside.free)
            around.sizes |= dict.fromkeys(inside.sizes)
            around.wanted |= dict.fromkeys(inside.wanted)
            around.has_type_variables |= inside.has_type_variables

    def look(self, node: Expr, owner: Function) -> None:
        """Note what a node itself mentions."""
        found = self._open[owner]
        if isinstance(node, Var):
            found.used.setdefault(node)
            return
        for var in bound_vars(node):
            found.bound.add(var)
            found.shown.update(shown(var.ty))
        found.wanted |= dict.fromkeys(needed(node))
        self._mention(found, types_in(node))

    def _mention(self, found: _Gathered, types: Iterable[Type | Dim]) -> None:
        for ty in types:
            known = self._types.get(ty)
            if known is None:
                parts = () if isinstance(ty, Dim) else subtypes(ty)
                has = any(isinstance(p, TypeVar) for p in parts)
                known = self._types[ty] = (tuple(names_in((ty,))), has)
            found.sizes |= dict.fromkeys(known[0])
            found.has_type_variables |= known[1]
