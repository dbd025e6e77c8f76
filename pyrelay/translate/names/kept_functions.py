"""Functions that outlive the round of a loop in which they are made.

Python's closures see the values that names have when they are called, compiled ones those that the
names had when they were made. A function that is kept, in a list or under a name that the loop
carries, while a name that it captures gets another value in the next round would differ from
Python; it is refused.
"""

from __future__ import annotations

import ast

from ...diagnostics.catalogue.names import CaptureInLoop
from ..program.context import Context
from ..program.environment import Bound
from ..source.flow import Nested, reads


def check_kept(cx: Context, node: ast.expr) -> None:
    """Report a function that outlives its round, in a list or under a name that the loop carries,
    and has captured a name that each round assigns."""
    if not cx.rounds:
        return
    pending = [node]
    while pending:
        value = pending.pop()
        if isinstance(value, ast.IfExp):
            pending += (value.orelse, value.body)
            continue
        function = _function(cx, value)
        changed = [] if function is None else sorted(reads(function) & cx.rounds.keys())
        if changed:
            cx.program.report(CaptureInLoop(cx.span(value), changed[0], cx.rounds[changed[0]]))
            return


def _function(cx: Context, node: ast.expr) -> Nested | None:
    if isinstance(node, ast.Lambda):
        return node
    entry = cx.named(node)
    return entry.function.node if isinstance(entry, Bound) and entry.function is not None else None
