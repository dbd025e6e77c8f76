"""`relay.grad(models, f, args)` where `models` is a list: the list of the gradients in each."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from dataclasses import replace

from ...diagnostics.catalogue.language import Unsupported
from ...diagnostics.catalogue.sites import ModelNotMentioned
from ...diagnostics.source import Span
from ...ir.constant import placeholder
from ...ir.expr import (
    Binding,
    Call,
    Differentiation,
    Expr,
    Function,
    GlobalVar,
    RefCreate,
    RefRead,
    Rule,
    Transform,
    Tuple,
    Var,
)
from ...ir.traverse import Steps, free_vars, let, run
from ...prelude.library import qualified
from ..blocks.closures import local_function
from ..calls.functions import model_operand
from ..calls.mentions import implicit_values
from ..calls.passed_models import passed_operands
from ..names.static import static_meaning
from ..program.context import Context, field_of, in_turn
from ..program.environment import Bound
from ..source.definition import Definition
from ..source.flow import reads


def gradient_in_list(
    cx: Context, span: Span, bound: Mapping[str, ast.expr], rule: Rule, *, has_aux: bool
) -> Steps[Expr]:
    """Translate a transform in the parameters of the models in a list: the function is one of the
    list of their parameters, which makes a list of models with these."""
    named, given = bound["model"], bound["args"]
    entry = cx.named(named)
    if not isinstance(entry, Bound) or entry.atom is None or not isinstance(given, ast.Tuple):
        what, instead = "a list of models that has no name", "name it, and pass it to the function"
        return cx.refuse(Unsupported(span, what, instead))
    models = Var("models", span=span)
    params = Var("params", span=span)
    rest = [n for n in given.elts if not (isinstance(n, ast.Name) and cx.env.find(n.id) is entry)]
    own = {n: Var("argument", span=span) for n in rest}
    args = [own.get(n, models) for n in given.elts]
    pairs = Call(GlobalVar(qualified("zip"), span=span), (params, entry.atom), span=span)
    anew = Call(GlobalVar(qualified("map"), span=span), (_made(span), pairs), span=span)
    body = yield _called(cx, bound["f"], given.elts, args, (entry, models), span)
    if models not in set(free_vars(body)):
        assert entry.items is not None
        assert entry.items.model is not None
        definition = entry.items.model.definition
        cx.program.report(ModelNotMentioned(span, ast.unparse(bound["f"]), definition.name))
        return placeholder(span)
    inside = let([Binding(models, anew)], body)
    function = Function((params, *own.values()), inside, span=span)
    values = yield in_turn(_argument(cx, node) for node in rest)
    read = Call(GlobalVar(qualified("map"), span=span), (_read(span), entry.atom), span=span)
    transform = Transform(rule, function, Differentiation((0,), has_aux=has_aux), span=span)
    return Call(transform, (read, *values), span=span)


def _argument(cx: Context, node: ast.expr) -> Steps[Expr]:
    return model_operand(cx, node) or (yield cx.expression(node))


def _called(
    cx: Context,
    node: ast.expr,
    given: list[ast.expr],
    args: list[Var],
    models: tuple[Bound, Var],
    span: Span,
) -> Steps[Expr]:
    """Return the call of the function that is differentiated; where a nested function captures the
    list by its name, it means the new one."""
    yield from ()
    function = static_meaning(cx, node)
    if isinstance(function, Definition):
        signature = cx.program.signature(function)
        bound = {p.name: n for p, n in zip(signature.values, given, strict=False)}
        name, hidden = passed_operands(cx, function, span, bound)
        rest = implicit_values(cx, signature, span)
        return Call(GlobalVar(name, span=span), (*hidden, *args, *rest), span=span)
    local = cx.nested(node)
    syntax = node if local is None else local.node
    if not isinstance(syntax, ast.Lambda | ast.FunctionDef):
        what = "a function that is not known by name"
        instead = "name a relay function, or write a `def` or lambda here"
        return cx.refuse(Unsupported(cx.span(node), what, instead))
    mark, (before, anew) = cx.env.mark(), models
    for name in sorted(reads(syntax)):
        found = cx.env.find(name)
        if isinstance(found, Bound) and found.atom is before.atom:
            cx.env.set(name, replace(found, atom=anew))
    made = run(local_function(cx, syntax))
    cx.env.undo(mark)
    return Call(made, tuple(args), span=span)


def _read(span: Span) -> Function:
    """Return the function from a model to its parameters."""
    model = Var("model", span=span)
    return Function(
        (model,), field_of(RefRead(field_of(model, 0, span), span=span), 0, span), span=span
    )


def _made(span: Span) -> Function:
    """Return the function from new parameters and a model to the model with these."""
    pair = Var("pair", span=span)
    memory = field_of(RefRead(field_of(field_of(pair, 1, span), 0, span), span=span), 1, span)
    content = Tuple((field_of(pair, 0, span), memory), span=span)
    state = field_of(field_of(pair, 1, span), 1, span)
    return Function((pair,), Tuple((RefCreate(content, span=span), state), span=span), span=span)
