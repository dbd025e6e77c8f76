"""Global functions whose types only their uses determine: `def @double(%x) { %x + %x }`.

Generalising such a function would need types qualified by operator constraints. Instead every place
that mentions it gets a copy, bound at the head of the function around it, and typed with that
function. What the copies come out as are global functions again, one for each type, where the types
hold no names of the function around.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Final, final

from ...analysis.retype import Retyping, types_in
from ...dataclass import dataclass
from ...diagnostics.diagnostic import Diagnostic, Label, Problem
from ...ir.dims import Dim, DimVar
from ...ir.equality import alpha_equal
from ...ir.expr import Binding, Expr, Flavour, Function, GlobalVar, LetBlock, Var
from ...ir.traverse import free_vars, post_order, rewrite, spine, substitute
from ...ir.types import Substitution, Type, TypeVar, dim_names, subtypes

if TYPE_CHECKING:
    from ...diagnostics.source import Span
    from ..solver import Solver

LIMIT: Final = 256
"""How many copies a function gets; further places share one copy, and so one type."""


@final
class OpenFunctions:
    """The functions whose types are open, in groups that are mutually recursive, callees first."""

    def __init__(self) -> None:
        self._groups: Final[list[Mapping[str, Function]]] = []
        self._places: Final[dict[str, int]] = {}

    def add(self, group: Mapping[str, Function]) -> None:
        """Leave a group to its uses."""
        self._places.update(dict.fromkeys(group, len(self._groups)))
        self._groups.append(group)

    def __contains__(self, name: str) -> bool:
        return name in self._places

    def place(self, name: str) -> int:
        """Return the place of a function's group: after those that it mentions."""
        return self._places[name]

    def group(self, name: str) -> Mapping[str, Function]:
        """Return the functions that are mutually recursive with one, itself among them."""
        return self._groups[self._places[name]]

    def unused(self, mentions: Mapping[str, Iterable[str]]) -> list[Mapping[str, Function]]:
        """Return the groups that no other function mentions, of a module with these mentions."""
        used = {
            name
            for by, names in mentions.items()
            for name in names
            if name in self and by not in self.group(name)
        }
        return [group for group in self._groups if used.isdisjoint(group)]


@final
class Copies:
    """The copies that one function gets of the open functions that it reaches."""

    def __init__(self, opened: OpenFunctions, solver: Solver) -> None:
        self._opened: Final = opened
        self._solver: Final = solver
        self._own: Final[list[dict[str, Var]]] = []
        self._shared: Final[dict[int, dict[str, Var]]] = {}
        self._pending: Final[deque[tuple[dict[str, Var], bool]]] = deque()

    def put_into(self, function: Function) -> tuple[Function, list[tuple[str, ...]]]:
        """Return the function with a copy in the place of each mention of an open function, the
        copies bound at its head, one block for each group of them, and the names in each block."""
        body = self._own_mentions(function.body, {}, is_shared=False)
        made: dict[Var, Function] = {}
        while self._pending:
            copies, is_shared = self._pending.popleft()
            for name, var in copies.items():
                made[var] = self._made(name, copies, is_shared=is_shared)
        # From the inside out: who mentions a copy comes before it.
        shared = [self._shared[place] for place in sorted(self._shared, reverse=True)]
        groups = [*self._own, *shared]
        for copies in groups:
            body = _block({var: made[var] for var in copies.values()}, body)
        return replace(function, body=body), [tuple(copies) for copies in reversed(groups)]

    def blamed(self, problem: Problem) -> Problem:
        """Return a mistake in a copy with the place that mentions it, if there is one such
        place."""
        primary = problem.diagnostic().primary
        if primary is None:
            return problem
        groups = (*self._own, *self._shared.values())
        places = [
            (name, var.span)
            for copies in groups
            for name, var in copies.items()
            if any(n.span == primary.span for n in post_order(self._opened.group(name)[name]))
        ]
        return MistakeOfUse(problem, *places[0]) if len(places) == 1 else problem

    def _own_mentions(self, expr: Expr, inside: Mapping[str, Var], *, is_shared: bool) -> Expr:
        """Return the expression with a copy of its own for each mention; `inside` are the copies in
        which it stands."""

        def change(node: Expr) -> Expr:
            if not isinstance(node, GlobalVar) or node.name not in self._opened:
                return node
            return inside.get(node.name) or self._copy(node, is_shared=is_shared)

        return rewrite(expr, change)

    def _copy(self, mention: GlobalVar, *, is_shared: bool) -> Var:
        is_shared = is_shared or len(self._own) >= LIMIT
        place = self._opened.place(mention.name)
        if is_shared and place in self._shared:
            return self._shared[place][mention.name]
        group = self._opened.group(mention.name)
        copies = {name: Var(name, span=mention.span) for name in group}
        if is_shared:
            self._shared[place] = copies
        else:
            self._own.append(copies)
        self._pending.append((copies, is_shared))
        return copies[mention.name]

    def _made(self, name: str, copies: Mapping[str, Var], *, is_shared: bool) -> Function:
        """Return a copy of an open function, with holes for its type parameters."""
        function = self._opened.group(name)[name]
        holes = Substitution({}, {})
        for param in function.type_params:
            if isinstance(param, DimVar):
                holes.dims[param.name] = self._solver.fresh_dim_hole()
            else:
                holes.types[param.name] = self._solver.fresh_wide()
        copy = self._own_mentions(Retyping(holes).copy(function), copies, is_shared=is_shared)
        assert isinstance(copy, Function)
        return replace(copy, type_params=())


@final
@dataclass(frozen=True, slots=True)
class MistakeOfUse:
    """A mistake in a function that is right at other types than those of its use."""

    problem: Problem
    function: str
    place: Span

    def diagnostic(self) -> Diagnostic:
        """Return the mistake as data."""
        found = self.problem.diagnostic()
        use = Label(self.place, f"`{self.function}` is used here")
        return replace(found, secondary=(*found.secondary, use))


def _block(functions: Mapping[Var, Function], body: Expr) -> LetBlock:
    bindings = tuple(map(Binding, functions, functions.values()))
    is_recursive = any(var in functions for f in functions.values() for var in free_vars(f))
    flavour = Flavour.REC if is_recursive else Flavour.PURE
    return LetBlock(bindings, body, flavour, span=body.span)


@final
class OpenInstances:
    """The open functions of a module at the types at which they are used, as global functions."""

    def __init__(self, taken: Mapping[str, Function]) -> None:
        """`taken` are the functions of the module."""
        self._taken: Final = set(taken)
        self._known: Final[dict[tuple[str, ...], list[tuple[str, ...]]]] = {}
        self._others: Final[dict[str, list[str]]] = {}
        self.functions: Final[dict[str, Function]] = {}

    def others(self, name: str) -> list[str]:
        """Return the names of the functions that stand for one beside that of its own name."""
        return self._others.get(name, [])

    def lift(self, function: Function, groups: Sequence[tuple[str, ...]]) -> Function:
        """Return a typed function without the copies at its head that need nothing of it."""
        body = function.body
        kept: list[LetBlock] = []
        blocks = spine(body)[0][: len(groups)]
        lifted: dict[Var, Expr] = {}
        for block, names in zip(blocks, groups, strict=True):
            values = [substitute(b.value, lifted) for b in block.bindings]
            bound = [b.var for b in block.bindings]
            functions = [v for v in values if isinstance(v, Function)]
            if _is_closed(functions, bound):
                lifted |= self._globals(names, bound, functions)
            else:
                bindings = tuple(map(Binding, bound, values))
                kept.append(replace(block, bindings=bindings))
            body = block.body
        body = substitute(body, lifted)
        for block in reversed(kept):
            body = replace(block, body=body)
        return replace(function, body=body)

    def _globals(
        self, names: tuple[str, ...], bound: list[Var], functions: list[Function]
    ) -> dict[Var, Expr]:
        """Return global functions for a group of copies: those that are there, or new ones."""
        found = self._known.setdefault(names, [])
        for known in found:
            mentions = _mentions(bound, known)
            pairs = zip(functions, known, strict=True)
            if all(alpha_equal(substitute(f, mentions), self.functions[k]) for f, k in pairs):
                return mentions
        chosen = names if not found else tuple(map(self._fresh, names))
        found.append(chosen)
        mentions = _mentions(bound, chosen)
        for name, function in zip(chosen, functions, strict=True):
            made = substitute(function, mentions)
            assert isinstance(made, Function)
            self.functions[name] = made
        return mentions

    def _fresh(self, name: str) -> str:
        count = 2
        while f"{name}_{count}" in self._taken:
            count += 1
        self._taken.add(f"{name}_{count}")
        self._others.setdefault(name, []).append(f"{name}_{count}")
        return f"{name}_{count}"


def _mentions(bound: list[Var], names: tuple[str, ...]) -> dict[Var, Expr]:
    return {
        var: GlobalVar(name, ty=var.ty, span=var.span)
        for var, name in zip(bound, names, strict=True)
    }


def _is_closed(functions: list[Function], bound: list[Var]) -> bool:
    """Return whether functions mention nothing but each other and global functions."""
    if any(var not in bound for f in functions for var in free_vars(f)):
        return False
    return not any(
        _has_names(part) for f in functions for node in post_order(f) for part in types_in(node)
    )


def _has_names(part: Type | Dim) -> bool:
    if isinstance(part, Dim):
        return bool(part.names())
    return bool(dim_names(part)) or any(isinstance(t, TypeVar) for t in subtypes(part))
