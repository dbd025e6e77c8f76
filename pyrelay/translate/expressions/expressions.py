"""Expressions: one translator per kind of syntax node, in one table.

Each gives a tree whose evaluation order is Python's, left to right; `and`, `or`, conditional
expressions and chained comparisons evaluate no more than Python does.
"""

from __future__ import annotations

import ast
from collections.abc import Callable
from dataclasses import replace
from typing import Any, Final

from ...diagnostics.catalogue.language import Unsupported
from ...diagnostics.source import Span
from ...ir.block_builder import BlockBuilder
from ...ir.constant import is_placeholder, placeholder
from ...ir.expr import Binding, Call, Composite, Constant, Expr, If, Tuple, TupleGet, Var
from ...ir.traverse import Steps, let
from ...ir.types import AdtType
from ...operators.captured import CAPTURED
from ...operators.host.field import field
from ...operators.host.sizes import rank, shape
from ...operators.primitive import extrema, sort
from ...operators.primitive.view import permute, transpose
from ..blocks.closures import local_function
from ..blocks.conditions import as_value, branch, condition, decided, field_left, narrows
from ..blocks.list_append import grown_value, turned
from ..blocks.subscripts import subscript
from ..calls.functions import model_function
from ..calls.mentions import lift, unit, value_of
from ..calls.passed_models import known_of
from ..calls.strings import text
from ..data.methods import SYMBOLS, reflected
from ..lists.lists import comprehension, display
from ..models import records
from ..models.listed_models import model_value
from ..models.model_calls import model_attribute
from ..names.atoms import again, atom, into
from ..names.hidden import hidden_name
from ..names.narrowing import value_at
from ..names.static import static_value
from ..program.context import Context, in_turn
from ..program.environment import Bound
from ..source.syntax import is_none
from ..source.unions import may_be_field
from ..subset.tables import BINARY, COMPARISON, UNARY
from .calls import call, missing_attribute, unknown_method
from .method_calls import Otherwise, method_use, special_use


def expression(cx: Context, node: ast.expr) -> Steps[Expr]:
    """Translate an expression, and note where the names are that it reads."""
    translate = _TABLE.get(type(node))
    if translate is None:
        what, instead = "this expression", "use numbers, tensors, tuples and calls"
        return cx.refuse(Unsupported(cx.span(node), what, instead))
    around, cx.uses = cx.uses, []
    found = yield translate(cx, node)
    uses, cx.uses = cx.uses, around
    if isinstance(found, Var):
        around.append((found.name, cx.span(node)))
        return found
    is_own = isinstance(found, Composite) and found not in cx.computed
    return replace(found, span=found.span.using(uses)) if uses and is_own else found


def _constant(cx: Context, node: ast.Constant) -> Steps[Expr]:
    yield from ()
    span = cx.span(node)
    match node.value:
        case bool() | int() | float() | str():
            return Constant(node.value, span=span)
        case None:
            return unit(span)
        case _:
            what, instead = (
                f"`{ast.unparse(node)}` here",
                "use it only between brackets: `x[..., 0]`",
            )
            return cx.refuse(Unsupported(span, what, instead))


def _name(cx: Context, node: ast.Name) -> Steps[Expr]:
    yield from ()
    span = cx.span(node)
    grown = grown_value(cx, node)
    if grown is not None:
        return turned(grown, span)
    entry = cx.local(node.id, span)
    if entry is not None and entry.model is not None:
        return model_function(cx, node.id, entry.model, span)
    if entry is not None:
        return value_of(cx, entry, node.id, span)
    found = cx.captured_value(node.id, span)
    return placeholder(span) if found is None else lift(cx, found, node.id, span)


def _attribute(cx: Context, node: ast.Attribute) -> Steps[Expr]:
    known = static_value(cx, node)
    if known is not None:
        return lift(cx, known, ast.unparse(node), cx.span(node))
    owner = static_value(cx, node.value)
    read = None if owner is None else cx.scope.attribute(owner.value, node.attr)
    if isinstance(read, CAPTURED):
        return Constant(read, span=cx.span(node))
    if owner is not None and not isinstance(owner.value, bool | int | float | str | tuple):
        return missing_attribute(cx, node, owner)
    part = value_at(cx, node)
    if part is not None:
        return value_of(cx, part, node.attr, cx.span(node))
    if isinstance(node.value, ast.Subscript) and (model := known_of(cx, node.value)) is not None:
        code = BlockBuilder()
        value = atom((yield model_value(cx, node.value)), "model", code.bind)
        named = hidden_name(cx, node.value, replace(model, atom=value))
        whole = ast.copy_location(ast.Attribute(named, node.attr), node)
        return code.close((yield _attribute(cx, whole)))
    entry = cx.named(node.value)
    if isinstance(entry, Bound) and entry.model is not None:
        assert isinstance(node.value, ast.Name)
        return model_attribute(cx, node, node.value.id, entry.model)
    found = yield method_use(cx, node, _other_meaning(cx, node))
    return (yield _value_attribute(cx, node)) if found is None else found


def _other_meaning(cx: Context, node: ast.Attribute) -> Otherwise | None:
    """Return the translator of an attribute as that of a tensor, or as a field; None where none is
    named so."""
    if node.attr not in _ATTRIBUTES and not may_be_field(node.attr, cx.annotations.namespace):
        return None

    def translate(owner: ast.expr) -> Steps[Expr]:
        found = ast.copy_location(ast.Attribute(owner, node.attr, ast.Load()), node)
        return _value_attribute(cx, found)

    return translate


def _value_attribute(cx: Context, node: ast.Attribute) -> Steps[Expr]:
    """Translate an attribute of a value: of a tensor, a field of a record, what a cell holds."""
    read = _ATTRIBUTES.get(node.attr)
    value = yield cx.expression(node.value)
    if is_placeholder(value):
        return value
    if isinstance(value, Call) and value.callee in _PAIRS and node.attr in _OF_PAIRS:
        return TupleGet(value, _OF_PAIRS[node.attr], span=cx.span(node))
    part = field_left(cx, node, value)
    if part is not None:
        return part
    is_data = isinstance(value, Var) and isinstance(value.ty, AdtType)
    if read is None and not is_data and not may_be_field(node.attr, cx.annotations.namespace):
        return cx.refuse(unknown_method(cx, node))
    if read is None:
        return Call(field, (value,), {"name": node.attr}, span=cx.span(node))
    return read(value, cx.span(node))


_ATTRIBUTES: Final[dict[str, Callable[[Expr, Any], Expr]]] = {
    "T": lambda value, span: Call(permute, (value,), {"dims": (-1, -2)}, span=span),
    "mT": lambda value, span: Call(transpose, (value,), {"dim0": -2, "dim1": -1}, span=span),
    "ndim": lambda value, span: Call(rank, (value,), {}, span=span),
    "shape": lambda value, span: Call(shape, (value,), {}, span=span),
}
"""The attributes of tensors."""

_PAIRS: Final = frozenset({extrema.max_, extrema.min_, sort.sort, sort.topk})
_OF_PAIRS: Final = {"values": 0, "indices": 1}
"""The attributes of the pairs that some operators give."""


def _binary(cx: Context, node: ast.BinOp) -> Steps[Expr]:
    def plain(left: ast.expr, right: ast.expr) -> Steps[Expr]:
        values = yield in_turn((cx.expression(left), cx.expression(right)))
        call = Call(BINARY[type(node.op)], tuple(values), {}, span=cx.span(node))
        return records.arithmetic(cx, node, *values) or call

    name = SYMBOLS.get(type(node.op), "")

    def of_right(left: ast.expr, right: ast.expr) -> Steps[Expr]:
        return special_use(cx, node, reflected(name), (left, right), plain, place=1)

    return (yield special_use(cx, node, name, (node.left, node.right), of_right))


def _unary(cx: Context, node: ast.UnaryOp) -> Steps[Expr]:
    def plain(operand: ast.expr) -> Steps[Expr]:
        return _of_one(cx, ast.copy_location(ast.UnaryOp(node.op, operand), node))

    name = SYMBOLS.get(type(node.op), "")
    return (yield special_use(cx, node, name, (node.operand,), plain))


def _of_one(cx: Context, node: ast.UnaryOp) -> Steps[Expr]:
    is_not = isinstance(node.op, ast.Not)
    operand = yield (condition(cx, node.operand) if is_not else cx.expression(node.operand))
    negated = records.negation(cx, node, operand)
    if negated is not None:
        return negated
    match node.op, operand:
        case ast.UAdd(), _:
            return operand
        case ast.USub(), Constant(value=value, ty=None) if (
            type(value) is int or type(value) is float
        ):
            return Constant(-value, span=cx.span(node))
        case _:
            return Call(UNARY[type(node.op)], (operand,), {}, span=cx.span(node))


def _logical(cx: Context, node: ast.BoolOp) -> Steps[Expr]:
    """Translate `and` and `or` of bools; an operand that need not be evaluated is not. Their value
    is that of an operand, so operands of other types are no conditions here."""
    if narrows(cx, node):
        return (yield as_value(cx, node))
    values = yield in_turn(cx.expression(value) for value in node.values)
    return decided(node, values, cx.span(node))


def _compare(cx: Context, node: ast.Compare) -> Steps[Expr]:
    """Translate a comparison; in a chain each operand is evaluated once, and only if needed."""
    if narrows(cx, node):
        return (yield as_value(cx, node))
    span = cx.span(node)
    if (instead := _test_of_none(node)) is not None:
        return cx.refuse(Unsupported(span, f"`{ast.unparse(node)}`", instead))
    if len(node.ops) == 1:

        def plain(left: ast.expr, right: ast.expr) -> Steps[Expr]:
            values = yield in_turn((cx.expression(left), cx.expression(right)))
            return _compared(node.ops[0], values[0], values[1], span)

        name, operands = SYMBOLS.get(type(node.ops[0]), ""), (node.left, node.comparators[0])
        return (yield special_use(cx, node, name, operands, plain))
    left = yield cx.expression(node.left)
    steps: list[tuple[list[Binding], Expr]] = []
    bindings: list[Binding] = []
    left = atom(left, "side", into(bindings))
    for place, (operator, comparator) in enumerate(zip(node.ops, node.comparators, strict=True)):
        right = yield cx.expression(comparator)
        if place < len(node.ops) - 1:
            right = atom(right, "side", into(bindings))
        steps.append((bindings, _compared(operator, left, right, span)))
        left, bindings = again(right), []
    inside, result = steps[-1]
    result = let(inside, result)
    for inside, test in reversed(steps[:-1]):
        result = let(inside, If(test, result, Constant(False, span=span), span=span))
    return result


def _test_of_none(node: ast.Compare) -> str | None:
    """Return a help for a comparison with None by `==` or `!=`; None for any other comparison."""
    if len(node.ops) != 1 or not isinstance(node.ops[0], ast.Eq | ast.NotEq):
        return None
    sides = (node.left, node.comparators[0])
    others = [s for s in sides if not is_none(s)]
    if len(others) != 1:
        return None
    test = "is" if isinstance(node.ops[0], ast.Eq) else "is not"
    return f"write `{ast.unparse(others[0])} {test} None`"


def _compared(operator: ast.cmpop, left: Expr, right: Expr, span: Span) -> Expr:
    if isinstance(operator, ast.NotIn):
        found = Call(COMPARISON[ast.In], (left, right), {}, span=span)
        return Call(UNARY[ast.Not], (found,), {}, span=span)
    return Call(COMPARISON[type(operator)], (left, right), {}, span=span)


def _conditional(cx: Context, node: ast.IfExp) -> Steps[Expr]:
    known = static_value(cx, node.test, local=False)
    if known is not None:
        return (yield cx.expression(node.body if known.value else node.orelse))
    then, otherwise = (lambda: cx.expression(node.body)), (lambda: cx.expression(node.orelse))
    return (yield branch(cx, node.test, then, otherwise, cx.span(node)))


def _item(cx: Context, node: ast.Subscript) -> Steps[Expr]:
    """Translate `x[...]` of a value that is no model: its class may define it."""

    def plain(value: ast.expr, place: ast.expr) -> Steps[Expr]:
        return subscript(cx, ast.copy_location(ast.Subscript(value, place, ast.Load()), node))

    if isinstance(node.slice, ast.Slice | ast.Tuple | ast.List):
        return (yield subscript(cx, node))
    operands = (node.value, node.slice)
    return (yield special_use(cx, node, SYMBOLS[ast.Subscript], operands, plain))


def _tuple(cx: Context, node: ast.Tuple) -> Steps[Expr]:
    """Translate `(a, b)`, and `(*xs, a)`, which is a list."""
    if any(isinstance(e, ast.Starred) for e in node.elts):
        return (yield display(cx, ast.copy_location(ast.List(node.elts, ast.Load()), node)))
    return Tuple((yield cx.expressions(node.elts)), span=cx.span(node))


def _starred(cx: Context, node: ast.Starred) -> Steps[Expr]:
    yield from ()
    instead = "in a list of its own it may stand: `xs = [x, *xs]`"
    return cx.refuse(Unsupported(cx.span(node), "`*` here", instead))


def _lambda(cx: Context, node: ast.Lambda) -> Steps[Expr]:
    if node.args.defaults or any(d is not None for d in node.args.kw_defaults):
        instead = "write a `def`, or capture the value"
        return cx.refuse(Unsupported(cx.span(node), "a default in a lambda", instead))
    return (yield local_function(cx, node))


def _subscript(cx: Context, node: ast.Subscript) -> Steps[Expr]:
    """Translate `x[...]`; a model out of a list is a function value, as one by name is."""
    model = known_of(cx, node)
    if model is None or model.model is None:
        return (yield _item(cx, node))
    code = BlockBuilder()
    value = atom((yield model_value(cx, node)), "model", code.bind)
    named = hidden_name(cx, node, replace(model, atom=value))
    return code.close(model_function(cx, named.id, model.model, cx.span(node)))


_TABLE: Final[dict[type[ast.expr], Callable[[Context, Any], Steps[Expr]]]] = {
    ast.Attribute: _attribute,
    ast.BinOp: _binary,
    ast.BoolOp: _logical,
    ast.Call: call,
    ast.Compare: _compare,
    ast.Constant: _constant,
    ast.IfExp: _conditional,
    ast.JoinedStr: text,
    ast.Lambda: _lambda,
    ast.List: display,
    ast.ListComp: comprehension,
    ast.Name: _name,
    ast.Starred: _starred,
    ast.Subscript: _subscript,
    ast.Tuple: _tuple,
    ast.UnaryOp: _unary,
}
