"""Code that ends, of plain and recursive functions and of branches."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...ir.expr import Expr, Var
from ...ir.traverse import Steps
from ...ir.types import TupleType, Type
from ...operators.builder import Builder, Value
from .saved_values import prune, register

if TYPE_CHECKING:
    from collections.abc import Sequence

    from .code import Code, Scope, Work


def settle(code: Code, work: Work) -> Steps[None]:
    """Drop dead code, and inform the forward function of the branches that remain."""
    yield prune(code, {r for r in code.results if isinstance(r, Var)})
    yield register(work, code)


def kept_residuals(work: Work, scopes: list[Scope]) -> set[Var]:
    """Return the residuals of calls that some body saves."""
    every = [*scopes, *(s for b in work.branchings.values() for s in b.scopes.values())]
    return {v for scope in every for v in scope.saved if v in work.residuals}


def one_or_tuple(types: list[Type]) -> Type:
    """Return the type of one result, or the tuple of several."""
    return types[0] if len(types) == 1 else TupleType(tuple(types))


def close(builder: Builder, results: Sequence[Expr]) -> Expr:
    """Return a builder's code, ending in one result or in the tuple of several."""
    values = [builder.value(r) for r in results]
    return builder.block(values[0] if len(values) == 1 else builder.tuple(values))


def split(whole: Value, count: int) -> list[Expr]:
    """Return the results that `close` put together."""
    return [whole.atom] if count == 1 else [whole[i].atom for i in range(count)]
