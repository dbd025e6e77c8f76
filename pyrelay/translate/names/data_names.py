"""Which local names hold values of users' data types, as far as the text shows.

A class may have methods named like those that change lists, `push`'s usual names `append` and `pop`
among them. A name that is seen to hold an instance is not a name of a list.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence

from ...ir.types import AdtType, Type
from ..data.methods import kind_of
from ..program.context import Context
from ..source.definition import Definition, meaning
from ..source.flow import CHANGES, statements_in
from ..source.unions import is_data_class
from .static import static_value


def data_names(
    cx: Context, body: Sequence[ast.stmt], around: Mapping[str, Type]
) -> Mapping[str, Type]:
    """Return the names in a body that hold data, with its type; those `around` that do included.
    None is looked for where no class in sight has a method named like one that changes a list."""
    classes = [v for v in cx.annotations.namespace.values() if is_data_class(v)]
    if not any(kind_of(c, name) for c in classes for name in CHANGES):
        return {}
    types = {name: ty for name, ty in around.items() if _is_data(cx, ty)}
    assigned = [s for s in statements_in(body) if isinstance(s, ast.Assign | ast.AnnAssign)]
    for stmt in (*assigned, *assigned):  # once more for what a loop carries
        ty = None if stmt.value is None else _type_of(cx, stmt.value, types)
        targets = stmt.targets if isinstance(stmt, ast.Assign) else [stmt.target]
        if ty is not None:
            types |= {t.id: ty for t in targets if isinstance(t, ast.Name)}
    return types


def _is_data(cx: Context, ty: Type | None) -> bool:
    return isinstance(ty, AdtType) and ty.name in cx.program.data.types


def _type_of(cx: Context, node: ast.expr, types: dict[str, Type]) -> Type | None:
    """Return the data type of an expression: of a name, of an instance that is made, of what a
    function or a method is annotated to return."""
    calls: list[ast.Call] = []
    while isinstance(node, ast.Call):
        calls.append(node)
        known = static_value(cx, node.func)
        if known is not None or not isinstance(node.func, ast.Attribute):
            break
        node = node.func.value
    ty = types.get(node.id) if isinstance(node, ast.Name) else None
    for call in reversed(calls):
        known = static_value(cx, call.func)
        ty = _method_result(cx, ty, call) if known is None else _result(cx, known.value, call)
    return ty if _is_data(cx, ty) else None


def _result(cx: Context, function: object, call: ast.Call) -> Type | None:
    if is_data_class(function):
        return cx.program.data.instance(function, cx.annotations.namespace, cx.span(call))
    found = meaning(function)
    return cx.program.signature(found).result if isinstance(found, Definition) else None


def _method_result(cx: Context, ty: Type | None, call: ast.Call) -> Type | None:
    if not isinstance(ty, AdtType) or not isinstance(call.func, ast.Attribute):
        return None
    seen = cx.annotations.namespace
    for constructor in cx.program.data.types[ty.name].constructors:
        method = cx.program.method(constructor.cls, call.func.attr, seen)
        if method is not None:
            return cx.program.signature(method.definition).result
    return None
