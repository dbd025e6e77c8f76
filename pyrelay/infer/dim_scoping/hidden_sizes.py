"""Sizes that a function computes with and that no value shows to the running program.

`Vec[N]` may be an empty vector, so a function that takes one cannot determine `N` from it alone;
nor does a tensor of shape `(N*K,)` determine either of two factors.
"""

from __future__ import annotations

from ...analysis.solved_sizes import Undetermined, undetermined_sizes_of
from ...diagnostics.catalogue.data import SizeNotShown
from ...diagnostics.diagnostic import Problem
from ...ir.expr import Function
from ...ir.types import dim_names, dims


def hidden_sizes(function: Function) -> list[Problem]:
    """Return the first place in a typed function that needs a size which nothing determines."""
    return [_problem(function, found) for found in undetermined_sizes_of(function)[:1]]


def _problem(function: Function, found: Undetermined) -> Problem:
    holder = next((p for p in function.params if p.ty and found.name in dim_names(p.ty)), None)
    if holder is None or holder.ty is None:
        return SizeNotShown(found.node.span, found.name, "", "", function.span)
    parts = [str(d) for d in dims(holder.ty) if found.name in d.names() and d.name is None]
    inside = parts[0] if parts else ""
    return SizeNotShown(found.node.span, found.name, holder.name, inside, holder.span)
