"""Sizes that values show only inside other dims, computed where they are needed.

Where `x` of shape `(2*N,)` is all that shows `N`, an attribute that mentions `N` needs a value that
shows it. This pass binds one, `solved_size`, at the head of a function if its parameters determine
the size, and otherwise before the binding that needs it. Later stages treat it like any other size.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import fields, replace
from typing import TYPE_CHECKING, Final, final

from ..dataclass import dataclass
from ..ir.dims import Dim
from ..ir.equations import Solution, solutions
from ..ir.expr import Binding, Call, Expr, Flavour, Function, LetBlock, Match, Var, is_atom
from ..ir.normal_form import normalise
from ..ir.traverse import Steps, children, let, pattern_vars, post_order, rebuild, run, spine
from ..ir.types import SizeType
from ..operators.host.sizes import solved_size
from .dim_availability import needed, shown, uncovered

if TYPE_CHECKING:
    from ..diagnostics.source import Span
    from ..ir.module import Module


@final
@dataclass(frozen=True, slots=True)
class Undetermined:
    """A size that a node needs and that nothing in scope determines."""

    name: str
    node: Expr


def with_solved_sizes(module: Module) -> Module:
    """Return a module in A-normal form in which every dim that an attribute needs is shown, or
    computed from dims that are; itself if that holds already."""
    return module.map_functions(lambda f: _Walk(f).function())


def undetermined_sizes_of(function: Function) -> list[Undetermined]:
    """Return the sizes that a typed function needs and that no value in scope determines."""
    if not _missing(function):
        return []
    walk = _Walk(normalise(function))
    walk.function()
    return walk.undetermined


def solvable(names: Iterable[str], known: Iterable[Dim]) -> bool:
    """Return whether dims that values show determine sizes."""
    wanted = list(names)
    return not wanted or {s.name for s in solutions(known, wanted)}.issuperset(wanted)


def _missing(function: Function) -> list[str]:
    """Return the names that attributes in a function need and its parameters do not show."""
    known = {d for p in function.params for d in shown(p.ty)}
    dims = {d for node in post_order(function) for d in needed(node)}
    return _names(u for d in dims for u in uncovered(d, known))


def _names(dims: Iterable[Dim]) -> list[str]:
    return sorted({d.name for d in dims if d.name is not None})


@final
class _Walk:
    """One walk over a global function, in order of evaluation."""

    def __init__(self, function: Function) -> None:
        self._function: Final = function
        self._known: Final[dict[Dim, None]] = {}
        self.undetermined: Final[list[Undetermined]] = []

    def function(self) -> Function:
        """Return the function with the sizes that it needs computed."""
        function = self._function
        missing = _missing(function)
        if not missing:
            return function
        self._learn(function.params)
        solved = self._solve(missing, function.span)
        body = function.body
        if {b.var.name for b in solved} != set(missing):
            body = run(self._body(body))
        body = let(solved, body)
        return function if body is function.body else replace(function, body=body)

    def _learn(self, variables: Iterable[Var]) -> list[Dim]:
        """Note what variables show; return the new ones."""
        new = [d for v in variables for d in shown(v.ty) if d not in self._known]
        self._known.update(dict.fromkeys(new))
        return new

    def _forget(self, dims: Iterable[Dim]) -> None:
        for dim in dims:
            self._known.pop(dim, None)

    def _solve(self, wanted: Sequence[str], span: Span) -> list[Binding]:
        """Return bindings that compute those of the wanted names that are determined here."""
        bindings = [_binding(s, span) for s in solutions(self._known, wanted)]
        self._learn(b.var for b in bindings)
        return bindings

    def _body(self, expr: Expr) -> Steps[Expr]:
        """Return the body of a scope of its own."""
        blocks, end = spine(expr)
        before = len(self._known)
        made: list[LetBlock] = []
        for block in blocks:
            made.append((yield self._block(block)))  # noqa: PERF401
        result = yield self._inside(end)
        for block, old in zip(reversed(made), reversed(blocks), strict=True):
            result = old if (block, result) == (old, old.body) else replace(block, body=result)
        self._forget(list(self._known)[before:])
        return result

    def _block(self, block: LetBlock) -> Steps[LetBlock]:
        if block.flavour is Flavour.REC:
            values: list[Expr] = []
            for binding in block.bindings:
                values.append((yield self._inside(binding.value)))  # noqa: PERF401
            found = rebuild(block, (*values, block.body))
            assert isinstance(found, LetBlock)
            return found
        bindings: list[Binding] = []
        for binding in block.bindings:
            bindings += self._needs(binding.value)
            value = yield self._inside(binding.value)
            bindings.append(binding if value is binding.value else replace(binding, value=value))
            self._learn((binding.var,))
        same = len(bindings) == len(block.bindings) and all(
            a is b for a, b in zip(bindings, block.bindings, strict=True)
        )
        return block if same else replace(block, bindings=tuple(bindings))

    def _needs(self, value: Expr) -> list[Binding]:
        """Return the bindings that a value needs before it."""
        names = _names(u for d in needed(value) for u in uncovered(d, self._known))
        if not names:
            return []
        solved = self._solve(names, value.span)
        for name in names:
            if Dim.of(name) not in self._known:
                self.undetermined.append(Undetermined(name, value))
        return solved

    def _inside(self, expr: Expr) -> Steps[Expr]:
        """Return an expression with the scopes inside it done."""
        if is_atom(expr) or isinstance(expr, Call):
            return expr
        if isinstance(expr, Function):
            return (yield self._function_inside(expr))
        if isinstance(expr, Match):
            return (yield self._match(expr))
        parts: list[Expr] = []
        for child in children(expr):
            part = child if is_atom(child) else (yield self._body(child))
            parts.append(part)
        return rebuild(expr, parts)

    def _function_inside(self, function: Function) -> Steps[Expr]:
        new = self._learn(function.params)
        body = yield self._body(function.body)
        self._forget(new)
        return rebuild(function, (body,))

    def _match(self, match: Match) -> Steps[Expr]:
        parts: list[Expr] = [match.value]
        for clause in match.clauses:
            new = self._learn(pattern_vars(clause.pattern))
            for part in clause.scopes:
                parts.append((yield self._body(part)))  # noqa: PERF401
            self._forget(new)
        return rebuild(match, parts)


def _binding(solution: Solution, span: Span) -> Binding:
    attrs = {field.name: getattr(solution, field.name) for field in fields(solution)}
    ty = SizeType(Dim.of(solution.name))
    return Binding(
        Var(solution.name, ty, span=span), Call(solved_size, (), attrs, ty=ty, span=span)
    )
