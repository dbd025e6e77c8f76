"""Sizes that a local function finds while it runs, and that types would have outlive one run.

The name of such a size stands for another number each time the function runs. So nothing that one
run leaves to the next may have it in its type: no parameter, no captured name. A result may, where
the function is called in one place only; there a name stands for one run.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Final, TypeAlias, final

from ..diagnostics.catalogue.sizes import SizeOfEachRun
from ..diagnostics.diagnostic import Problem
from ..ir.expr import Call, Expr, Function, GlobalVar, If, LetBlock, Match, Transform, Var
from ..ir.traverse import children, free_vars, post_order
from ..ir.types import FnType, TupleType, Type, dim_names

if TYPE_CHECKING:
    from .generate import Generator


def escaping_sizes(generator: Generator, functions: Iterable[Function]) -> list[Problem]:
    """Return a mistake for each size of one run that a type has beyond it."""
    if not generator.solver.running:
        return []
    search = _Search(generator, tuple(functions))
    return list(dict.fromkeys((*search.locals(), *search.mentions())))


@final
class _Search:
    """The search in one group of functions."""

    def __init__(self, generator: Generator, functions: tuple[Function, ...]) -> None:
        self._found: Final = generator
        self._functions: Final = functions
        self._owned: Final[dict[Function, set[str]]] = {}
        for name, size in generator.solver.running.items():
            function = size.owner
            while function is not None:
                self._owned.setdefault(function, set()).add(name)
                function = generator.around[function]

    def locals(self) -> Iterator[Problem]:
        """Return the mistakes of local functions."""
        called_once = self._called_once() if self._owned else frozenset[Function]()
        for function, names in self._owned.items():
            ty = self._found.types[function]
            assert isinstance(ty, FnType)
            captured = (self._found.vars[v] for v in free_vars(function))
            kept = TupleType((*ty.params, *captured))
            found = list(self._problem(kept, names, "what one run makes is kept for the next"))
            yield from found
            if not found and function not in called_once:
                subject = f"`{function.name}`" if function.name else "this function"
                yield from self._problem(ty.result, names, f"{subject} may run more than once")

    def mentions(self) -> Iterator[Problem]:
        """Return the mistakes of global functions that are passed on, for calls that nobody
        sees."""
        for function in self._functions:
            nodes = list(post_order(function))
            used = {n.callee for n in nodes if isinstance(n, Call)}
            used |= {f for n in nodes if isinstance(n, Transform) for f in (n.function, *n.rules)}
            for node in nodes:
                if not isinstance(node, GlobalVar) or node in used:
                    continue
                ty = self._found.solver.resolve(self._found.types[node])
                if isinstance(ty, FnType):
                    names = dim_names(ty.result).difference(*map(dim_names, ty.params))
                    why = f"`{node.name}` may run more than once"
                    yield from self._problem(ty.result, names, why)

    def _problem(self, ty: Type, names: Iterable[str], why: str) -> Iterator[Problem]:
        """Return the mistake of a type that has one of these sizes."""
        solver = self._found.solver
        for name in sorted(dim_names(solver.resolve(ty)).intersection(names)):
            size = solver.running.get(name)
            if size is not None and size.span is not None:
                yield SizeOfEachRun(size.span, why)
                return

    def _called_once(self) -> frozenset[Function]:
        """Return the local functions that have one place outside that calls them, and run again
        only as the last thing that they do."""
        names: dict[Var, Function] = {}
        places: dict[Function, int] = {}
        pending: list[_Work] = [(f.body, f, True) for f in self._functions]
        while pending:
            node, around, is_last = pending.pop()
            if isinstance(node, LetBlock):
                names |= {b.var: b.value for b in node.bindings if isinstance(b.value, Function)}
            callee = node.callee if isinstance(node, Call) else None
            for part, part_around, part_is_last in _parts(node, around, is_last=is_last):
                if not isinstance(part, Var):
                    pending.append((part, part_around, part_is_last))
                elif part in names:
                    runs_on = part is callee and is_last and names[part] is around
                    count = 0 if runs_on else 1 if part is callee else 2
                    places[names[part]] = places.get(names[part], 0) + count
        return frozenset(f for f, count in places.items() if count == 1)


_Work: TypeAlias = tuple[Expr, Function, bool]
"""An expression, the function around it, and whether its value is the function's result."""


def _parts(node: Expr, around: Function, *, is_last: bool) -> Iterator[_Work]:
    match node:
        case Function(body=body):
            yield body, node, True
        case LetBlock(bindings, body):
            yield body, around, is_last
            # The names are bound before their uses are looked at.
            yield from ((b.value, around, False) for b in reversed(bindings))
        case If(condition, then, otherwise):
            yield from ((otherwise, around, is_last), (then, around, is_last))
            yield condition, around, False
        case Match(value, clauses):
            yield from ((c.body, around, is_last) for c in clauses)
            yield from ((c.guard, around, False) for c in clauses if c.guard is not None)
            yield value, around, False
        case _:
            yield from ((child, around, False) for child in children(node))
