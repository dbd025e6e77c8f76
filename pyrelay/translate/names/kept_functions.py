"""Functions that outlive the round of a loop in which they are made.

Python's closures see the values that names have when they are called, compiled ones those that the
names had when they were made. A function that is kept in a list while a name that it captures gets
another value in the next round would so give something else than in Python; it is refused.
"""

from __future__ import annotations

import ast

from ...diagnostics.catalogue.names import CaptureInLoop
from ..context import Context
from .environment import Bound
from .flow import Nested, reads


def check_kept(cx: Context, node: ast.expr) -> None:
    """Report a function that is put into a list and has captured what each round changes."""
    function = _function(cx, node)
    if function is None or not cx.rounds:
        return
    for name in sorted(reads(function)):
        if name in cx.rounds:
            cx.program.report(CaptureInLoop(cx.span(node), name, cx.rounds[name]))
            return


def _function(cx: Context, node: ast.expr) -> Nested | None:
    if isinstance(node, ast.Lambda):
        return node
    entry = cx.env.find(node.id) if isinstance(node, ast.Name) else None
    return entry.function.node if isinstance(entry, Bound) and entry.function is not None else None
