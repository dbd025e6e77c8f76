"""Functions that are differentiated in the parameters of models, which are supplied to them.

Mentions of a model's definition in such a function mean the model; so do its parameters that the
model is passed to, and names by which a nested function captures it.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from typing import TypeVar, final

from ...dataclass import dataclass
from ...diagnostics.catalogue.language import Unsupported
from ...diagnostics.catalogue.sites import ModelNotMentioned
from ...diagnostics.source import Span
from ...ir.constant import placeholder
from ...ir.expr import Binding, Call, Expr, Function, GlobalVar, RefCreate, RefRead, Tuple, Var
from ...ir.traverse import Steps, let, post_order, run
from ..blocks.closures import local_function
from ..calls.functions import model_field, model_operand
from ..calls.mentions import implicit_values, lift
from ..calls.passed_models import passed_operands
from ..names.static import static_meaning, static_value
from ..program.context import Context, ModelParts, field_of
from ..program.environment import Bound, LocalFunction
from ..source.definition import Definition, DefinitionKind
from ..source.flow import Nested, reads

T = TypeVar("T")


def by_name(
    cx: Context, definition: Definition, given: Sequence[ast.expr | None]
) -> dict[str, ast.expr]:
    """Return arguments by the names of a function's parameters, in whose order they are; None
    stands for one that is left out."""
    values = cx.program.signature(definition).values
    pairs = zip(values, given, strict=False)
    return {p.name: node for p, node in pairs if node is not None}


@final
@dataclass(frozen=True, slots=True)
class Whole:
    """A function of the parameters of models and of the arguments that are not among these; and
    which of the arguments written are the models."""

    function: Function
    passed: Collection[int]


def whole(
    cx: Context,
    node: ast.expr,
    names: Sequence[ast.expr],
    models: Sequence[ModelParts],
    given: Sequence[ast.expr],
) -> Whole | None:
    """Return a relay function as one of the parameters of the models that it is passed, which its
    other mentions of their definitions mean too; None where it is passed none of them."""
    function = static_meaning(cx, node)
    if not isinstance(function, Definition) or len(names) != len(models):
        return None
    atoms = [model_operand(cx, name) for name in names]
    values = cx.program.signature(function).values
    passed: dict[int, int] = {}
    for place, (argument, parameter) in enumerate(zip(given, values, strict=False)):
        atom = None if parameter.model is None else model_operand(cx, argument)
        if atom is not None and atom in atoms:
            passed[place] = atoms.index(atom)
    if not passed:
        return None
    span = cx.span(node)
    params = [Var(f"{m.instance.definition.name}_params", span=span) for m in models]
    inside = [replace(m, params=p) for m, p in zip(models, params, strict=True)]
    bound = by_name(cx, function, given)
    name, hidden = with_models(cx, inside, lambda: passed_operands(cx, function, span, bound))
    required = cx.program.requirements(function)
    for number, model in enumerate(models):
        if number not in passed.values() and model.instance.definition not in required:
            _not_mentioned(cx, function, model, span)
    args: list[Expr] = []
    own: list[Var] = []
    for place, argument in enumerate(given):
        if place in passed:
            args.append(_anew(cx, argument, inside[passed[place]], span))
        else:
            own.append(Var("argument", span=span))
            args.append(own[-1])
    rest = implicit_values(cx, cx.program.signature(function), span)
    call = Call(GlobalVar(name, span=span), (*hidden, *args, *rest), span=span)
    return Whole(Function((*params, *own), call, span=span), passed)


def _anew(cx: Context, node: ast.expr, model: ModelParts, span: Span) -> Expr:
    """Return an explicit model whose cell is a new one, with the parameters given."""
    assert isinstance(node, ast.Name)
    memory = field_of(RefRead(model_field(cx, node.id, 0, span), span=span), 1, span)
    content = Tuple((model.params, memory), span=span)
    return Tuple((RefCreate(content, span=span), model.state), span=span)


def _not_mentioned(cx: Context, function: Definition, model: ModelParts, span: Span) -> None:
    definition = model.instance.definition
    cx.program.report(ModelNotMentioned(span, function.name, definition.name))
    cx.program.guesses = True


def supplied(
    cx: Context,
    node: ast.expr,
    models: Sequence[ModelParts],
    given: Sequence[ast.expr] = (),
    names: Sequence[ast.expr] = (),
) -> Steps[tuple[Expr, tuple[Expr, ...], tuple[int, ...]]]:
    """Translate a function that models are supplied to: give it with the parts of all models it
    needs as leading parameters, these operands, and the indices of the models' parameters. It is
    called with the arguments `given`, where they are known."""
    found = static_meaning(cx, node)
    if isinstance(found, Definition):
        return _supplied_definition(cx, node, found, models, given)
    local = cx.nested(node)
    syntax = local.node if isinstance(local, LocalFunction) else node
    if not isinstance(syntax, ast.Lambda | ast.FunctionDef):
        known = static_value(cx, node)
        if known is not None:
            return lift(cx, known, ast.unparse(node), cx.span(node)), (), ()
        what = "a function that is not known by name"
        instead = "name a relay function, or write a `def` or lambda here"
        cx.program.report(Unsupported(cx.span(node), what, instead))
        return placeholder(cx.span(node)), (), ()
    return (yield _supplied_local(cx, syntax, models, names))


def with_models(cx: Context, models: Sequence[ModelParts], make: Callable[[], T]) -> T:
    """Return the result of `make` where mentions of the models mean these instances."""
    before, own = dict(cx.implicit), cx.own
    cx.implicit.update((m.instance.definition, m) for m in models)
    if own is not None and any(m.instance.definition is own.instance.definition for m in models):
        cx.own = None
    try:
        return make()
    finally:
        cx.own = own
        cx.implicit.clear()
        cx.implicit.update(before)


def _supplied_definition(
    cx: Context,
    node: ast.expr,
    function: Definition,
    models: Sequence[ModelParts],
    given: Sequence[ast.expr],
) -> tuple[Expr, tuple[Expr, ...], tuple[int, ...]]:
    span = cx.span(node)
    bound = by_name(cx, function, given)
    name, hidden = with_models(cx, models, lambda: passed_operands(cx, function, span, bound))
    is_model = function.kind is DefinitionKind.MODEL
    order = [function] if is_model else list(cx.program.requirements(function))
    wrt: list[int] = []
    for model in models:
        definition = model.instance.definition
        if definition in order:
            wrt.append(2 * order.index(definition))
        else:
            _not_mentioned(cx, function, model, span)
    callee = GlobalVar(name, span=span)
    signature = cx.program.signature(function)
    if not signature.implicit:
        return callee, hidden, tuple(wrt)
    leading = tuple(Var("part", span=span) for _ in hidden)
    params = (*leading, *(Var(p.name, span=span) for p in signature.explicit))
    call = Call(callee, (*params, *implicit_values(cx, signature, span)), span=span)
    return Function(params, call, span=span), hidden, tuple(wrt)


def _supplied_local(
    cx: Context, syntax: Nested, models: Sequence[ModelParts], names: Sequence[ast.expr]
) -> Steps[tuple[Expr, tuple[Expr, ...], tuple[int, ...]]]:
    """Translate a nested function once more, with the models as its leading parameters. Where it
    captures a model by one of the `names`, it means these parameters too."""
    span = cx.span(syntax.body) if isinstance(syntax, ast.Lambda) else cx.span(syntax)
    leading: list[Var] = []
    inside: list[ModelParts] = []
    for model in models:
        name = model.instance.definition.name
        params, state = Var(f"{name}_params", span=span), Var(f"{name}_state", span=span)
        leading += [params, state]
        inside.append(ModelParts(params, state, model.instance))
    mark = cx.env.mark()
    cells = _captured(cx, syntax, inside, names, span)
    # The walk runs to its end while the models are in place.
    function = with_models(cx, inside, lambda: run(local_function(cx, syntax)))
    cx.env.undo(mark)
    yield from ()
    body = let(cells, function.body)
    mentioned = {node for node in post_order(body) if isinstance(node, Var)}
    for model in inside:
        if model.params not in mentioned:
            cx.program.report(
                ModelNotMentioned(span, function.name or "lambda", model.instance.definition.name)
            )
            cx.program.guesses = True
    full = replace(function, params=(*leading, *function.params), body=body, span=span)
    hidden = tuple(e for m in models for e in (m.params, m.state))
    return full, hidden, tuple(range(0, 2 * len(models), 2))


def _captured(
    cx: Context, syntax: Nested, models: Sequence[ModelParts], names: Sequence[ast.expr], span: Span
) -> list[Binding]:
    """Let the names by which a nested function captures models mean new cells with their
    parameters; return the bindings that make the cells."""
    found: list[Binding] = []
    known = reads(syntax)
    for model, named in zip(models, names, strict=False):
        atom = model_operand(cx, named)
        for name in sorted(known):
            entry = cx.env.find(name)
            if atom is None or not isinstance(entry, Bound) or entry.atom is not atom:
                continue
            var = Var(name, span=span)
            found.append(Binding(var, _anew(cx, ast.Name(name), model, span)))
            cx.env.set(name, replace(entry, atom=var))
    return found
