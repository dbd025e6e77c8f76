"""Records of a model's parameters in compiled code: parameters as values, and gradients.

A record is a tuple in the program. Which model it belongs to follows from the text; so does the
arithmetic on all its tensors at once, which is that of the mappings a script has.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from typing import Final

from ...diagnostics.catalogue.language import Unsupported
from ...ir.constant import placeholder
from ...ir.expr import Binding, Call, Constant, Expr, Tuple
from ...ir.intrinsics import Intrinsic
from ...ir.traverse import Steps, let, run
from ...operators.composite import measure
from ...operators.composite.optim import descend
from ...operators.host.loop import map_leaves
from ...operators.primitive.join import stack
from ..calls.arguments import Callee, Slot, bind_arguments, require
from ..calls.passed_models import annotated_definition, known_of, record_named
from ..names.atoms import again, atom, into
from ..names.static import static_meaning
from ..program.context import Context
from ..program.environment import Bound
from ..program.models import ModelInstance
from ..source.definition import Definition
from ..source.syntax import arguments_of
from ..subset.tables import BINARY, UNARY
from ..types.number_places import Numbers, Recorded, parts_of
from .gradients import only_differentiated
from .updates import map_params, sgd_tree

_SGD: Final = Callee(
    "sgd",
    (Slot("params", required=True), Slot("grads", required=True), Slot("lr", required=True)),
    "sgd(params, grads, lr)",
)

_ARITHMETIC: Final = (ast.Add, ast.Sub, ast.Mult, ast.Div)


def record_of(cx: Context, node: ast.expr) -> ModelInstance | None:
    """Return the model of whose parameters an expression is a record, if the source determines
    it."""
    return _record_of_call(cx, node) if isinstance(node, ast.Call) else record_named(cx, node)


def record_at(cx: Context, node: ast.expr, value: Expr) -> ModelInstance | None:
    """Return the model of whose parameters a translated expression is a record."""
    return cx.computed.get(value) or record_of(cx, node)


def _record_of_call(cx: Context, node: ast.Call) -> ModelInstance | None:
    if isinstance(node.func, ast.Call):
        return _gradient_at(cx, node.func, Intrinsic.GRAD, node.args)
    match static_meaning(cx, node.func):
        case Definition() as callee:
            return _record_given(cx, node, cx.program.signature(callee).numbers)
        case Intrinsic.SGD:
            return record_of(cx, node.args[0]) if node.args else None
        case Intrinsic.TREE_MAP:
            found = (record_of(cx, a) for a in node.args[1:])
            return next((o for o in found if o is not None), None)
        case Intrinsic.GRAD | Intrinsic.HVP:
            found = _gradient(cx, node)
            return None if found is None else found.record
        case _:
            return None


def _gradient_at(
    cx: Context, transform: ast.Call, intrinsic: Intrinsic, given: Sequence[ast.expr]
) -> ModelInstance | None:
    """Return the model of the record that `relay.grad(f)` gives where it is called with a record,
    or `relay.value_and_grad(f)` beside the value."""
    if static_meaning(cx, transform.func) is not intrinsic:
        return None
    place = only_differentiated(cx, transform)
    return record_of(cx, given[place]) if place is not None and place < len(given) else None


def _record_given(cx: Context, node: ast.Call, numbers: Numbers) -> ModelInstance | None:
    """Return the model of whose parameters the result of a call, annotated as a record, is one:
    the one that an argument has."""
    if not isinstance(numbers, Recorded):
        return None
    wanted = annotated_definition(numbers.of)
    found = (record_named(cx, a) for a in arguments_of(node))
    return next((o for o in found if o is not None and o.definition is wanted), None)


def records_of(cx: Context, node: ast.expr, count: int) -> list[Bound | None]:
    """Return, for each field of a tuple that an expression gives, the record that it is, or list of
    records."""
    found: list[Bound | None] = [None] * count
    if isinstance(node, ast.Tuple):
        return [_bound(record_of(cx, e)) for e in node.elts]
    if not isinstance(node, ast.Call):
        return found
    if isinstance(node.func, ast.Call) and count == 2:
        found[1] = _bound(_gradient_at(cx, node.func, Intrinsic.VALUE_AND_GRAD, node.args))
        return found
    match static_meaning(cx, node.func):
        case Intrinsic.VALUE_AND_GRAD if count == 2:
            found[1] = _gradient(cx, node)
        case Definition() as callee:
            parts = parts_of(cx.program.signature(callee).numbers, count)
            found = [_bound(_record_given(cx, node, part)) for part in parts]
        case _:
            pass
    return found


def _bound(record: ModelInstance | None) -> Bound | None:
    return None if record is None else Bound(record=record)


def gradient_at(cx: Context, node: ast.Call) -> Bound | None:
    """Return the record, or the list of records, that `relay.grad(models, f, args)` or `relay.hvp`
    gives."""
    is_gradient = static_meaning(cx, node.func) in (Intrinsic.GRAD, Intrinsic.HVP)
    return _gradient(cx, node) if is_gradient else None


def _gradient(cx: Context, node: ast.Call) -> Bound | None:
    """Return the gradient in the model, or in the list of models, of a transform."""
    known = known_of(cx, node.args[0]) if node.args else None
    if known is not None and known.items is not None:
        return Bound(items=_bound(known.items.model))
    return None if known is None else _bound(known.model)


def sgd(cx: Context, node: ast.Call) -> Steps[Expr]:
    """Translate `relay.sgd(params, grads, lr)`: new parameters, nothing written."""
    bound = bind_arguments(cx, node, _SGD)
    if bound is None:
        return placeholder(cx.span(node))
    params = yield cx.expression(bound["params"])
    grads = yield cx.expression(bound["grads"])
    owner = record_at(cx, bound["params"], params) or record_at(cx, bound["grads"], grads)
    rate = yield cx.expression(bound["lr"])
    span = cx.span(node)
    if owner is None:
        return Call(descend, (params, grads, rate), {}, span=span)
    spec = cx.program.spec(owner)
    return sgd_tree(spec, params, grads, rate, span)


def tree_map(cx: Context, node: ast.Call) -> Steps[Expr]:
    """Translate `relay.tree_map(f, a, ...)` over records of parameters, or over tuples written
    out."""
    span = cx.span(node)
    if len(node.args) < 2 or node.keywords:
        slots = (Slot("f", required=True), Slot("tree", required=True))
        callee = Callee("tree_map", slots, "tree_map(f, tree, ...)")
        require(cx, node, callee, dict(zip(("f", "tree"), node.args, strict=False)))
        return placeholder(span)
    function = yield cx.expression(node.args[0])
    trees = yield cx.expressions(node.args[1:])
    owners = [record_at(cx, a, t) for a, t in zip(node.args[1:], trees, strict=True)]
    owner = next((o for o in owners if o is not None), None)
    if owner is None:
        return Call(map_leaves, (function, Tuple(trees, span=span)), {}, span=span)
    bindings: list[Binding] = []
    callee = atom(function, "f", into(bindings))

    def leaf(*values: Expr) -> Expr:
        return Call(callee, values, span=span)

    return _mapped(cx, node, owner, trees, leaf, bindings)


def _mapped(
    cx: Context,
    node: ast.expr,
    owner: ModelInstance,
    trees: Sequence[Expr],
    leaf: Callable[..., Expr],
    bindings: list[Binding],
) -> Expr:
    """Return the record of what `leaf` gives for the tensors of records at one place, behind the
    bindings."""
    span = cx.span(node)
    spec = cx.program.spec(owner)
    records = tuple(atom(t, "tree", into(bindings)) for t in trees)
    mapped = run(map_params(spec, records, leaf, span))
    found = let(bindings, mapped)
    cx.computed[found] = owner
    return found


def arithmetic(cx: Context, node: ast.BinOp, left: Expr, right: Expr) -> Expr | None:
    """Return `a + b`, `0.5 * grads` and the like, of the tensors at one place each; None where
    neither side is a record."""
    sides = (node.left, left), (node.right, right)
    model = next((side for side, _ in sides if _is_model(cx, side)), None)
    if model is not None:
        name = ast.unparse(model)
        instead = (
            f"write `relay.update_model_params({name}, grads, lr=0.1)`; as a value, the parameters "
            f"are `{name}.params`"
        )
        return cx.refuse(Unsupported(cx.span(node), f"arithmetic on the model `{name}`", instead))
    owners = [record_at(cx, side, value) for side, value in sides]
    owner = owners[0] or owners[1]
    if owner is None or not isinstance(node.op, _ARITHMETIC):
        return None
    op, span = BINARY[type(node.op)], cx.span(node)
    bindings: list[Binding] = []
    values = [atom(value, "operand", into(bindings)) for _, value in sides]
    trees = [v for v, u in zip(values, owners, strict=True) if u is not None]

    def leaf(*given: Expr) -> Expr:
        rest = iter(given)
        both = (again(v) if u is None else next(rest) for v, u in zip(values, owners, strict=True))
        return Call(op, tuple(both), {}, span=span)

    return _mapped(cx, node, owner, trees, leaf, bindings)


def _is_model(cx: Context, node: ast.expr) -> bool:
    entry = cx.named(node)
    return isinstance(entry, Bound) and entry.model is not None


def negation(cx: Context, node: ast.UnaryOp, operand: Expr) -> Expr | None:
    """Return `-grads`, of each tensor; None where the operand is no record."""
    owner = record_at(cx, node.operand, operand)
    if owner is None or not isinstance(node.op, ast.USub):
        return None
    op, span = UNARY[type(node.op)], cx.span(node)
    return _mapped(cx, node, owner, [operand], lambda v: Call(op, (v,), {}, span=span), [])


def norm(cx: Context, node: ast.Call, tree: Expr, owner: ModelInstance) -> Expr:
    """Return `grads.norm()`: the Euclidean norm of all tensors together."""
    span = cx.span(node)
    spec = cx.program.spec(owner)
    bindings: list[Binding] = []
    norms: list[Expr] = []

    def leaf(value: Expr) -> Expr:
        norms.append(Call(measure.norm, (value,), {}, span=span))
        return norms[-1]

    run(map_params(spec, (atom(tree, "tree", into(bindings)),), leaf, span))
    if not norms:
        return let(bindings, Constant(0.0, span=span))
    together = Call(stack, (Tuple(tuple(norms), span=span),), {}, span=span)
    return let(bindings, Call(measure.norm, (together,), {}, span=span))
