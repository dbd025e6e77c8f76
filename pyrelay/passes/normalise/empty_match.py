"""Matches without clauses get one that stops the program.

So no pass behind this one has a branch without arms to look at. Only a value of a type without
constructors, which never is, has a complete match without clauses; a partial one may fail.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, ClassVar, Final, final

from ...dataclass import dataclass
from ...ir.expr import Call, Clause, Constant, Expr, Function, Match, Wildcard
from ...ir.normal_form import to_anf
from ...ir.traverse import nodes_of, rewrite
from ...ir.types import BOOL
from ...ir.verify import Stage
from ...operators.host.failing import fail
from ..base import Context, Pass

if TYPE_CHECKING:
    from ...ir.module import Module

_MESSAGE: Final = "a value of a type without constructors was matched"


def fill_empty_matches(module: Module) -> Module:
    """Return a module in A-normal form in which every match has a clause; itself where it is so."""
    if not any(isinstance(n, Match) and not n.clauses for n in nodes_of(module)):
        return module
    functions = {n: rewrite(f, _stopped) for n, f in module.functions.items()}
    assert all(isinstance(f, Function) for f in functions.values())
    return to_anf(replace(module, functions=functions))


@final
@dataclass(frozen=True, slots=True)
class FillEmptyMatches(Pass):
    """Add a clause that stops the program to matches without clauses."""

    name: ClassVar = "empty-match"
    needs: ClassVar = Stage.ANF

    def run(self, module: Module, _: Context) -> Module:
        """Return the module after the pass."""
        return fill_empty_matches(module)


def _stopped(node: Expr) -> Expr:
    if not isinstance(node, Match) or node.clauses:
        return node
    span = node.span
    stop = Call(fail, (), {"message": _MESSAGE}, ty=node.ty, span=span)
    if not node.partial:
        return stop
    never = Constant(False, BOOL, span=span)
    return replace(node, clauses=(Clause(Wildcard(span=span), stop, never),))
