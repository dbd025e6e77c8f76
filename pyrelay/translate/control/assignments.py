"""Assignments: the values of names and items, and the facts about them afterwards."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import replace

from ...diagnostics.catalogue.names import OuterAssignment
from ...ir.block_builder import BlockBuilder
from ...ir.constant import is_placeholder
from ...ir.dims import Dim
from ...ir.expr import Call, Expr, GlobalVar, RefRead, RefWrite, Var
from ...ir.intrinsics import Intrinsic
from ...ir.traverse import Steps
from ..blocks.assumptions import open_constructed
from ..blocks.closures import note_lambdas
from ..blocks.list_append import (
    assign_grown,
    bind_grown,
    extend_grown,
    grown_list,
    hold_elements,
    hold_lists,
)
from ..blocks.nested_items import changes_own, is_nested, nested_item
from ..blocks.optional_parts import inner_displays
from ..blocks.subscripts import copied, fixed, read_place
from ..blocks.targets import bind_target, item_of, owned_value, refuse_field, set_item
from ..calls.mentions import unit
from ..calls.passed_models import known_of, list_of, note_known
from ..models.creation import created, created_place
from ..models.gradients import transformed_function
from ..models.listed_models import model_value
from ..models.model_calls import pure_function
from ..models.records import arithmetic, gradient_at, record_at, records_of
from ..models.updates import makes_optimizer, renew
from ..names.alias_check import ELSEWHERE, Origin, items_assigned, origin, shared_by
from ..names.atoms import again, atom
from ..names.declared_types import declared_type
from ..names.kept_functions import check_kept
from ..names.static import static_meaning, static_value
from ..program.context import Context
from ..program.environment import Alias, Bound, Static
from ..program.instances import makes_site
from ..source.flow import root_of
from ..source.optimizers import STAND_IN, OptimizerUse
from ..source.syntax import elements_of, is_none
from ..subset.tables import BINARY


def assign(cx: Context, stmt: ast.Assign, code: BlockBuilder) -> Steps[None]:
    """Translate `a = b = value`."""
    if any(not isinstance(t, ast.Name) or t.id not in cx.grown for t in stmt.targets):
        hold_lists(cx, stmt.value)
    if len(stmt.targets) == 1:
        yield _assign_one(cx, stmt.targets[0], stmt.value, code)
        note_lambdas(cx, stmt.value)
        return
    if is_none(stmt.value):
        for target in stmt.targets:
            yield _assign_one(cx, target, stmt.value, code)
        return
    value = yield cx.expression(stmt.value)
    for target in stmt.targets:
        value = atom(value, "value", code.bind)
        yield bind_target(cx, target, again(value), code)
        if isinstance(stmt.value, ast.Constant):  # no target shares anything with another
            continue
        found = [*shared_by(cx, stmt.value), *shared_by(cx, stmt.targets[0])]
        _note_holders(cx, target, Origin(found, next(iter(found), None)))
    note_lambdas(cx, stmt.value)


def annotated(cx: Context, stmt: ast.AnnAssign, code: BlockBuilder) -> Steps[None]:
    """Translate `x: T = value`; the annotation is what the value must be."""
    assert stmt.value is not None
    found = cx.annotations.read(stmt.annotation, cx.span(stmt.annotation))
    if not isinstance(stmt.target, ast.Name) or found is None or found.model is not None:
        yield _assign_one(cx, stmt.target, stmt.value, code)
        return
    if stmt.target.id in cx.grown:
        yield assign_grown(cx, stmt.target, stmt.value, code, found.ty)
        return
    cx.displays.update(inner_displays([stmt.value], found.ty))
    value = yield cx.expression(stmt.value)
    var = Var(stmt.target.id, found.ty, span=cx.span(stmt.target))
    code.bind(var, value)
    cx.bind(stmt.target.id, Bound(atom=var), cx.span(stmt.target))
    note_lambdas(cx, stmt.value)
    _note_holders(cx, stmt.target, origin(cx, stmt.value, stmt.target))


def _assign_one(cx: Context, target: ast.expr, value: ast.expr, code: BlockBuilder) -> Steps[None]:
    match target, value:
        case ast.Name(), _:
            yield _assign_name(cx, target, value, code)
        case ast.Tuple(elts=targets) | ast.List(elts=targets), ast.Tuple(elts=values) if len(
            targets
        ) == len(values):
            yield _assign_each(cx, targets, values, code)
        case _:
            records = records_of(cx, value, len(getattr(target, "elts", ())))
            found = origin(cx, value, target)
            yield bind_target(cx, target, (yield cx.expression(value)), code, value)
            _note_records(cx, target, records)
            if isinstance(target, ast.Tuple | ast.List):
                _note_holders(cx, target, found)
            elif _is_element(cx, target):
                hold_elements(cx, value, items_assigned(cx, [target]))


def _assign_name(cx: Context, target: ast.Name, value: ast.expr, code: BlockBuilder) -> Steps[None]:
    span = cx.span(target)
    if target.id in cx.grown:
        yield assign_grown(cx, target, value, code)
        return
    known = static_value(cx, value)
    if known is not None and makes_site(cx, known.value):
        known = None
    if known is not None and not _is_value(known):
        if isinstance(known.value, OptimizerUse) and isinstance(value, ast.Call):
            renew(cx, known.value, code, cx.span(value))
        cx.bind(target.id, _carry_over(cx, value, Bound(static=known)), span)
        return
    if target.id in cx.carried:
        check_kept(cx, value)
    found, given = origin(cx, value, target), _model_of(cx, value)
    cx.wanted = target.id if target.id in cx.once else None
    is_known = known_of(cx, value) is not None
    expr = yield (model_value(cx, value) if is_known else cx.walk(cx, value))
    cx.wanted = None
    record = record_at(cx, value, expr)
    given = given or Bound(record=record)
    if makes_optimizer(cx, value):  # one with a mistake, which has been reported
        cx.bind(target.id, Bound(static=Static(STAND_IN)), span)
        return
    if is_placeholder(expr):  # what is done with it is no mistake of its own
        cx.bind(target.id, Bound(atom=expr), span)
        return
    made = pure_function(cx, target.id, value) or transformed_function(cx, target.id, value)
    if made is not None and isinstance(expr, GlobalVar):
        cx.bind(target.id, Bound(atom=expr, function=made), span)
        return
    var = Var(target.id, span=span)
    code.bind(var, expr)
    entry = replace(given, atom=var, static=known, function=made)
    cx.bind(target.id, _carry_over(cx, value, entry), span)
    _note_holders(cx, target, found)
    open_constructed(cx, target, value, var, code)


def _is_value(known: Static) -> bool:
    """Return whether a known value is also a value of the program, so that it gets a variable."""
    pending: list[object] = [known.value]
    while pending:
        value = pending.pop()
        if isinstance(value, tuple):
            pending += value
        elif type(value) not in (bool, int, float, str, Dim):
            return False
    return known.exact


def _carry_over(cx: Context, value: ast.expr, entry: Bound) -> Bound:
    """Return the entry with what is known of the name that it is another name for."""
    source = cx.named(value)
    if not isinstance(source, Bound):
        return replace(entry, declared=declared_type(cx, value))
    atom = source.atom if entry.atom is None else entry.atom
    return replace(
        entry,
        atom=atom,
        model=source.model,
        places=source.places,
        record=source.record,
        items=source.items,
        function=source.function,
        stream=source.stream,
        declared=declared_type(cx, value),
    )


def _model_of(cx: Context, value: ast.expr) -> Bound | None:
    """Return which model or record, or list of some, an expression gives; None where the text does
    not show it."""
    known = known_of(cx, value)
    if known is not None:
        return known
    if isinstance(value, ast.List) and value.elts:
        return list_of(cx, [_model_of(cx, e) for e in value.elts])
    if isinstance(value, ast.ListComp) and isinstance(value.elt, ast.Call):
        element = _model_of(cx, value.elt)
        return None if element is None or element.model is None else Bound(items=element)
    if not isinstance(value, ast.Call):
        return None
    if static_meaning(cx, value.func) is not Intrinsic.CREATE_MODEL:
        return gradient_at(cx, value)
    model = created(cx, value)
    return None if model is None else Bound(model=model, places=(created_place(cx, value),))


def _value_for(cx: Context, target: ast.expr, value: ast.expr, code: BlockBuilder) -> Steps[Expr]:
    """Translate one of several values that are assigned at once."""
    if not isinstance(target, ast.Name):
        return (yield cx.expression(value))
    if target.id in cx.grown:
        return (yield grown_list(cx, target, value, code))
    return unit(cx.span(value)) if makes_optimizer(cx, value) else (yield cx.expression(value))


def _assign_each(
    cx: Context, targets: Sequence[ast.expr], values: Sequence[ast.expr], code: BlockBuilder
) -> Steps[None]:
    """Translate `a, b = b, a`: all values first, then the names."""
    origins = [origin(cx, v, t) for t, v in zip(targets, values, strict=True)]
    records: list[Bound | None] = []
    found: list[Expr] = []
    for target, value in zip(targets, values, strict=True):
        expr = yield _value_for(cx, target, value, code)
        record = record_at(cx, value, expr)
        records.append(None if record is None else Bound(record=record))
        hint = target.id if isinstance(target, ast.Name) else "value"
        var = Var(hint, span=cx.span(target))
        code.bind(var, expr)
        found.append(var)
    own = items_assigned(cx, targets)
    for target, value in zip(targets, values, strict=True):
        if _is_element(cx, target):
            hold_elements(cx, value, own)
    for target, value, expr, record in zip(targets, values, found, records, strict=True):
        if isinstance(target, ast.Name) and target.id in cx.grown:
            bind_grown(cx, target, value, expr, code)
        elif isinstance(target, ast.Name) and (is_none(value) or makes_optimizer(cx, value)):
            yield _assign_name(cx, target, value, code)
        else:
            yield bind_target(cx, target, expr, code)
            _note_records(cx, target, [record])
    for target, place in zip(targets, origins, strict=True):
        if not isinstance(target, ast.Subscript):  # an item of a tensor is a copy
            _note_holders(cx, target, place)


def _is_element(cx: Context, target: ast.expr) -> bool:
    """Return whether a target is an element of a name's list, which holds what it gets."""
    if not isinstance(target, ast.Subscript):
        return False
    root = root_of(target)
    return is_nested(target) or root in cx.grown or root in cx.list_names


def augmented(cx: Context, stmt: ast.AugAssign, code: BlockBuilder) -> Steps[None]:
    """Translate `x += e`, which gives `x` a new value; `x[i] += e`; `cell.value += e`."""
    op, span = BINARY[type(stmt.op)], cx.span(stmt)
    match stmt.target:
        case ast.Name(id=name) as target:
            entry = cx.local(name, cx.span(target))
            if entry is None or (entry.atom is None and entry.static is None):
                cx.program.report(OuterAssignment(cx.span(target), name))
                return
            if name in cx.grown and isinstance(stmt.op, ast.Add):
                yield extend_grown(cx, target, stmt.value, code)
                return
            read = ast.copy_location(ast.Name(name, ast.Load()), target)
            old = yield cx.expression(read)
            value = yield cx.expression(stmt.value)
            span = span.using(cx.uses)
            both = ast.copy_location(ast.BinOp(read, stmt.op, stmt.value), stmt)
            new = arithmetic(cx, both, old, value) or Call(op, (old, value), {}, span=span)
            if is_placeholder(new):  # what is done with it is no mistake of its own
                cx.bind(name, Bound(atom=new), cx.span(target))
                return
            var = Var(name, span=cx.span(target))
            code.bind(var, new)
            cx.bind(name, Bound(atom=var, record=cx.computed.get(new)), cx.span(target))
        case ast.Subscript(value=ast.Name() as name) as target:
            place = fixed((yield read_place(cx, target.slice)), code)
            both = ast.BinOp(_loaded(target), stmt.op, stmt.value)
            base = owned_value(cx, name, target, both)
            if base is None or not changes_own(cx, stmt, target):
                return
            old = item_of(cx, target, base, place)
            old = atom(old, "item", code.bind)
            value = yield cx.expression(stmt.value)
            new = Call(op, (old, value), {}, span=span.using(cx.uses))
            set_item(cx, target, copied(place), new, code, both)
        case ast.Subscript() as target:
            nested = yield nested_item(cx, target, code)
            if nested is None:
                return
            old = atom(nested.old(), "item", code.bind)
            value = yield cx.expression(stmt.value)
            nested.bind(cx, Call(op, (old, value), {}, span=span.using(cx.uses)), code)
        case ast.Attribute(value=owner, attr="value") as target:
            cell = atom((yield cx.expression(owner)), "cell", code.bind)
            old = atom(RefRead(cell, span=cx.span(target)), "content", code.bind)
            value = yield cx.expression(stmt.value)
            new = Call(op, (old, value), {}, span=span.using(cx.uses))
            code.bind(Var("_", span=span), RefWrite(cell, new, span=span))
        case target:
            refuse_field(cx, target)


def _loaded(target: ast.Subscript) -> ast.Subscript:
    return ast.Subscript(target.value, target.slice, ast.Load())


def _note_records(cx: Context, target: ast.expr, records: Sequence[Bound | None]) -> None:
    targets = elements_of(target)
    for element, record in zip(targets, records, strict=False):
        note_known(cx, element, record)


def _note_holders(cx: Context, target: ast.expr, found: Origin) -> None:
    """Note that a target and the names that its value comes from may hold one tensor."""
    if not cx.writes_items:
        return
    names = [n for n in found.names if n.id not in cx.grown]
    cx.hold(((n.id, cx.span(n)) for n in names if n.id in cx.lists), ELSEWHERE)
    cx.hold(((n.id, cx.span(n)) for n in names), "its tensor goes to another name here")
    targets = elements_of(target)
    if found.of_target is None:
        return
    holder = Alias(cx.span(found.of_target), "it comes from here")
    for element in targets:
        entry = cx.named(element)
        if isinstance(element, ast.Name) and isinstance(entry, Bound):
            cx.env.set(element.id, replace(entry, holder=holder))
