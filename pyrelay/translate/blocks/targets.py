"""Targets of assignments: names, tuples of names, items, and the content of references."""

from __future__ import annotations

import ast
from collections.abc import Sequence

from ...diagnostics.catalogue.language import Unsupported
from ...diagnostics.catalogue.lists import SharedList
from ...diagnostics.catalogue.names import OuterAssignment, SharedItem
from ...diagnostics.source import Span
from ...ir.block_builder import BlockBuilder
from ...ir.expr import Call, Expr, RefWrite, Tuple, TupleGet, Var
from ...ir.traverse import Steps
from ...ir.types import UNKNOWN, TupleType
from ...operators.host.loop import unpacked
from ..names.alias_check import is_grown
from ..names.atoms import atom
from ..names.declared_types import declared_type
from ..names.static import static_meaning
from ..program.context import Context
from ..program.environment import Bound
from ..source.definition import Definition, DefinitionKind
from .list_append import refuse_grown, turned
from .nested_items import is_nested, nested_item
from .subscripts import Subscript, first_place, is_last, item, read_place, replaced


def bind_target(
    cx: Context, target: ast.expr, value: Expr, code: BlockBuilder, written: ast.expr | None = None
) -> Steps[None]:
    """Bind the names of a target to a value, which is `written` where the program writes it
    alone."""
    span = cx.span(target)
    match target:
        case ast.Name(id=name) if name in cx.grown:
            refuse_grown(cx, name, span)
        case ast.Name(id=name):
            if isinstance(value, Var) and value.name == name:
                var = value
            else:
                var = Var(name, span=span)
                code.bind(var, value)
            cx.bind(name, Bound(atom=var), span)
        case ast.Tuple(elts=elts) | ast.List(elts=elts):
            yield _bind_each(cx, elts, value, code, span)
        case ast.Subscript() if is_nested(target):
            nested = yield nested_item(cx, target, code)
            if nested is not None:
                nested.bind(cx, value, code)
        case ast.Subscript():
            place = yield read_place(cx, target.slice)
            set_item(cx, target, place, value, code, written)
        case ast.Attribute():
            yield _write_cell(cx, target, value, code)
        case _:
            instead = "assign to a name, a tuple of names, or an item of a name"
            cx.program.report(Unsupported(span, "this assignment", instead))


def _bind_each(
    cx: Context, targets: Sequence[ast.expr], value: Expr, code: BlockBuilder, span: Span
) -> Steps[None]:
    """Bind targets to the elements of a value."""
    if isinstance(value, Tuple) and len(value.fields) == len(targets):
        # The values are computed already: no name bound here changes what they mean.
        for element, part in zip(targets, value.fields, strict=True):
            yield bind_target(cx, element, part, code)
        return
    count = len(targets)
    whole = Var("fields", TupleType((UNKNOWN,) * count), span=span)
    code.bind(whole, Call(unpacked, (value,), {"count": count}, span=span))
    for place, element in enumerate(targets):
        yield bind_target(cx, element, TupleGet(whole, place, span=span), code)


def set_item(
    cx: Context,
    target: ast.Subscript,
    place: Subscript,
    value: Expr,
    code: BlockBuilder,
    written: ast.expr | None,
) -> None:
    """Bind a name to its value with another item; `written` is the item as the program has it."""
    assert isinstance(target.value, ast.Name), "the subset excludes other targets"
    name, span = target.value.id, cx.span(target)
    base = owned_value(cx, target.value, target, written)
    if base is None:
        return
    var = Var(name, span=span)
    code.bind(var, _with_item(cx, target, base, place, value))
    cx.bind(name, Bound(atom=var), span)


def _with_item(
    cx: Context, target: ast.Subscript, base: Expr, place: Subscript, value: Expr
) -> Expr:
    """Return the new value of a name of which an item is assigned."""
    span, inside = cx.span(target), cx.span(target.slice)
    if not is_grown(cx, target.value):
        return replaced(base, place, value, span, inside)
    if is_last(target.slice):
        return replaced(base, first_place(inside), value, span, inside)
    return turned(replaced(turned(base, span), place, value, span, inside), span)


def item_of(cx: Context, target: ast.Subscript, base: Expr, place: Subscript) -> Expr:
    """Return the item of a name that an augmented assignment reads."""
    span, inside = cx.span(target), cx.span(target.slice)
    if not is_grown(cx, target.value):
        return item(base, place, span, inside)
    if is_last(target.slice):
        return item(base, first_place(inside), span, inside)
    return item(turned(base, span), place, span, inside)


def owned_value(
    cx: Context, name: ast.Name, target: ast.Subscript, written: ast.expr | None
) -> Expr | None:
    """Return the value of a name whose items may be assigned; None when it may be aliased,
    which is reported."""
    span = cx.span(target)
    entry = cx.local(name.id, span)
    if entry is None or entry.atom is None:
        cx.program.report(OuterAssignment(span, name.id))
        return None
    if isinstance(declared_type(cx, name), TupleType):
        instead = "a tuple never changes: make a new one, with the other items as they are"
        cx.program.report(Unsupported(span, "an assignment to an item of a tuple", instead))
        return None
    if entry.holder is not None and name.id in cx.lists:
        place, change = (entry.holder.span, entry.holder.why), "an element is assigned here"
        instead = f"assign a copy first: `{name.id} = list({name.id})`"
        cx.program.report(SharedList(span, name.id, *place, change, instead))
        return None
    if entry.holder is not None:
        index = ast.unparse(_without_colons(target.slice))
        value = "value" if written is None else ast.unparse(written)
        holder = entry.holder
        cx.program.report(SharedItem(span, name.id, index, value, holder.span, holder.why))
        return None
    return entry.atom


def _without_colons(index: ast.expr) -> ast.expr:
    """Return an index as an expression of its own: `1:2` is `slice(1, 2)`."""
    match index:
        case ast.Tuple(elts=elts):
            return ast.Tuple([_without_colons(e) for e in elts], ast.Load())
        case ast.Slice(lower=lower, upper=upper, step=step):
            bounds = [lower or ast.Constant(None), upper or ast.Constant(None)]
            bounds += [] if step is None else [step]
            return ast.Call(ast.Name("slice", ast.Load()), bounds, [])
        case _:
            return index


def refuse_field(cx: Context, target: ast.Attribute) -> None:
    """Report an assignment to a field: of a model, of data, or of an object from outside."""
    span, owner = cx.span(target), target.value
    while isinstance(owner, ast.Attribute):
        owner = owner.value
    entry = cx.env.find(owner.id) if isinstance(owner, ast.Name) else None
    meaning = static_meaning(cx, owner)
    is_definition = isinstance(meaning, Definition) and meaning.kind is DefinitionKind.MODEL
    if is_definition or (isinstance(entry, Bound) and entry.model is not None):
        instead = (
            f"the parameters change by `relay.update_model_params({ast.unparse(owner)}, grads, "
            "lr=...)`, and `relay.with_params(f)(params, ...)` is `f` with others"
        )
        cx.program.report(Unsupported(span, "an assignment to a part of a model", instead))
    elif entry is not None:
        instead = "data never changes: make a new value, with the other fields as they are"
        what = f"an assignment to the field `{target.attr}`"
        cx.program.report(Unsupported(span, what, instead))
    else:
        cx.program.report(OuterAssignment(span, ast.unparse(target)))


def _write_cell(cx: Context, target: ast.Attribute, value: Expr, code: BlockBuilder) -> Steps[None]:
    span = cx.span(target)
    if target.attr != "value":
        refuse_field(cx, target)
        return
    value = atom(value, "content", code.bind)
    cell = yield cx.expression(target.value)
    code.bind(Var("_", span=span), RefWrite(cell, value, span=span))
