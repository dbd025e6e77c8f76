"""Models that a program takes out of lists: they get names, by which all else refers to models."""

from __future__ import annotations

import ast
from dataclasses import replace

from ...ir.block_builder import BlockBuilder
from ...ir.expr import Expr
from ...ir.traverse import Steps
from ..blocks.subscripts import item, read_place
from ..calls.passed_models import known_of
from ..names.atoms import atom
from ..names.hidden import hidden_name
from ..program.context import Context, in_turn
from ..program.environment import Bound


def model_value(cx: Context, node: ast.expr) -> Steps[Expr]:
    """Translate an expression as the model, or the list of models, that it is."""
    entry = cx.named(node)
    if isinstance(entry, Bound) and entry.atom is not None:
        return entry.atom
    if isinstance(node, ast.Subscript):
        base = yield cx.expression(node.value)
        place = yield read_place(cx, node.slice)
        return item(base, place, cx.span(node), cx.span(node.slice))
    return (yield cx.expression(node))


def with_names(cx: Context, node: ast.Call, code: BlockBuilder) -> Steps[ast.Call]:
    """Return a call with names in place of the models that it takes out of lists."""
    named: dict[str, ast.expr] = {}

    def name(part: ast.expr) -> Steps[ast.expr]:
        if isinstance(part, ast.Tuple):
            found = yield in_turn(name(e) for e in part.elts)
            return part if found == part.elts else ast.copy_location(ast.Tuple(found), part)
        known = known_of(cx, part) if isinstance(part, ast.Subscript) else None
        if known is None or known.model is None:
            return part
        text = ast.dump(part)
        if text not in named:
            value = atom((yield model_value(cx, part)), "model", code.bind)
            named[text] = hidden_name(cx, part, replace(known, atom=value))
        return named[text]

    function = node.func
    if isinstance(function, ast.Attribute):
        owner = yield name(function.value)
        if owner is not function.value:
            function = ast.copy_location(ast.Attribute(owner, function.attr), node.func)
    else:
        function = yield name(function)
    args = yield in_turn(name(a) for a in node.args)
    values = yield in_turn(name(k.value) for k in node.keywords)
    if not named:
        return node
    keywords = [ast.keyword(k.arg, v) for k, v in zip(node.keywords, values, strict=True)]
    return ast.copy_location(ast.Call(function, args, keywords), node)
