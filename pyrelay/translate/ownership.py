"""Which names may hold one tensor, for assignments to items.

`x[i] = e` rebinds `x` to a new value, which is what Python does as long as nothing else holds the
tensor. Where another name, a tuple or a view may, the two differ, and the assignment is refused.
The rule looks at the text only: what operators compute is fresh; names, views, and the results of
functions that got the tensor are not.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from ..ir.op import Op, View
from ..ir.ops.index import index
from .context import Context
from .definition import meaning
from .environment import Holder
from .flow import all_statements, bound_by, changed_list, statements_in
from .static import static_value
from .tables import COPIES, METHODS


def writes_items(body: Sequence[ast.stmt]) -> bool:
    """Tell whether a body assigns to an item anywhere, nested functions included."""
    for stmt in all_statements(body):
        targets = getattr(stmt, "targets", None) or [getattr(stmt, "target", None)]
        if any(isinstance(n, ast.Subscript) for t in targets if t for n in ast.walk(t)):
            return True
    return False


def shared_by(cx: Context, node: ast.expr) -> Iterator[ast.Name]:
    """Give the local names whose tensors the value of an expression may hold."""
    pending = [node]
    while pending:
        current = pending.pop()
        if isinstance(current, ast.Name) and cx.env.find(current.id) is not None:
            yield current
        else:
            pending += reversed(_holding(cx, current))


def _holding(cx: Context, node: ast.expr) -> list[ast.expr]:
    """Give the parts of an expression of which its value may hold the tensors."""
    match node:
        case ast.Tuple(elts=elts) | ast.List(elts=elts):
            return list(elts)
        case ast.IfExp(body=then, orelse=otherwise):
            return [then, otherwise]
        case ast.Subscript(value=value) | ast.Attribute(value=value):
            return [value]
        case ast.Call():
            return _held_by_call(cx, node)
        case _:
            return []


def _held_by_call(cx: Context, node: ast.Call) -> list[ast.expr]:
    arguments = [*node.args, *(k.value for k in node.keywords)]
    known = static_value(cx, node.func)
    found = None if known is None else meaning(known.value)
    if known is None and isinstance(node.func, ast.Attribute):
        if node.func.attr in COPIES:
            return []
        found = METHODS.get(node.func.attr)
        arguments = [node.func.value, *arguments]
    if isinstance(found, Op):
        return arguments if isinstance(found.lowering, View) or found is index else []
    return [] if known is not None and found is None else arguments


def held_in_loop(cx: Context, body: Sequence[ast.stmt]) -> dict[str, Holder]:
    """Return the names whose tensors another name or a list may hold when the next round of a loop
    finds them. A list itself is not its elements: `lists_held` looks at lists."""
    found: dict[str, Holder] = {}
    for stmt in statements_in(body):
        value = stored_by(cx, stmt)
        shared = [] if value is None else list(shared_by(cx, value))
        for name in shared:
            found.setdefault(name.id, Holder(cx.span(name), "its tensor goes elsewhere here"))
        for target in bound_by(stmt, items=False) if shared else ():
            found.setdefault(target, Holder(cx.span(shared[0]), "it comes from here"))
    return {name: holder for name, holder in found.items() if name not in cx.grown}


def stored_by(cx: Context, stmt: ast.stmt) -> ast.expr | None:
    """Return the value that a name, a list or an item holds after a simple statement, if any."""
    match stmt:
        case ast.Assign(value=value) | ast.AnnAssign(value=value):
            return value
        case ast.Expr(ast.Call(func=ast.Attribute(attr="extend"), args=[value])) if copied(
            cx, value
        ):
            return None
        case ast.Expr(ast.Call(args=[*_, value])) if changed_list(stmt) is not None:
            return value
        case ast.AugAssign(target=ast.Name(), value=ast.List() as value):
            return value
        case _:
            return None


def copied(cx: Context, value: ast.expr) -> bool:
    """Tell whether what extends a list is a list whose elements alone go there."""
    return isinstance(value, ast.Name) and value.id in cx.grown
