"""Local names of lists that `append`, `pop` and the like change.

A name whose list is changed anywhere in a function is *grown*: its variable holds the list the
other way round, so each `append` is one step, and wherever the name is read the list is turned
round. Which names are grown is known from the text, so all paths agree on it.
"""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

from ...diagnostics.catalogue.language import Unsupported
from ...diagnostics.catalogue.lists import SharedList
from ...diagnostics.source import Span
from ...ir.block_builder import BlockBuilder
from ...ir.expr import Call, Constructor, Expr, GlobalVar, Var
from ...ir.traverse import Steps
from ...ir.types import UNKNOWN, AdtType, Type
from ...prelude.library import LIST, element_of, qualified
from ..names.alias_check import (
    ELSEWHERE,
    is_fresh,
    is_grown,
    list_names,
    lists_in,
    lists_shared,
    lists_stored,
    mentions,
    shared_by,
)
from ..program.context import Context
from ..program.environment import Alias, Bound
from ..source.flow import Nested, assigned_in, captures, changed_list, locals_of, statements_in
from ..source.syntax import parameter_nodes
from .optional_parts import element_type, has_optionals, inner_displays


def empty(span: Span) -> Expr:
    """Return the list without elements."""
    return Call(Constructor(LIST, "Nil", span=span), (), span=span)


def longer(element: Expr, rest: Expr, span: Span) -> Expr:
    """Return a list with an element in front."""
    return Call(Constructor(LIST, "Cons", span=span), (element, rest), span=span)


def turned(xs: Expr, span: Span) -> Expr:
    """Return a list the other way round."""
    return Call(GlobalVar(qualified("rev"), span=span), (xs,), span=span)


def empty_of(element: Type, span: Span, code: BlockBuilder) -> Expr:
    """Return the list without elements to put elements in front of, which are, or hold, optionals
    if what is known of their type says so."""
    if not has_optionals(element):
        return empty(span)
    var = Var("optionals", AdtType(LIST, (element,)), span=span)
    code.bind(var, empty(span))
    return var


def chain(elements: Iterable[Expr], end: Expr, span: Span) -> Expr:
    """Return a list with elements in front, the last of these first."""
    found = end
    for element in elements:
        found = longer(element, found, span)
    return found


def has_starred(node: ast.List) -> bool:
    """Return whether a display has elements such as `*xs`."""
    return any(isinstance(e, ast.Starred) for e in node.elts)


def grown_in(node: ast.FunctionDef, data: Collection[str]) -> dict[str, Type]:
    """Return the names of a function's own whose lists it changes, nested functions not entered,
    each with the type of its elements as far as what is written shows it. A parameter is one if it
    is also assigned to; names that hold `data` are none."""
    own = frozenset(assigned_in(node.body)).difference(data)
    displayed = list_names(node.body)
    elements: dict[str, list[ast.expr]] = {}
    grown: dict[str, None] = {}
    for stmt in statements_in(node.body):
        name = changed_list(stmt) or _extended(stmt, displayed)
        if name is not None and name in own:
            grown[name] = None
        for owner, written in _elements_in(stmt):
            elements.setdefault(owner, []).extend(written)
    return {n: element_type(elements.get(n, [])) for n in grown}


def _extended(stmt: ast.stmt, displayed: Collection[str]) -> str | None:
    """Return the name whose list `xs += ys` extends, as far as the text shows that it has one."""
    match stmt:
        case ast.AugAssign(target=ast.Name(id=name), op=ast.Add(), value=value):
            is_list = isinstance(value, ast.List | ast.ListComp) or name in displayed
            return name if is_list else None
        case _:
            return None


def _elements_in(stmt: ast.stmt) -> Iterator[tuple[str, Sequence[ast.expr]]]:
    """Return the elements that a statement writes for the lists of names."""
    match stmt:
        case ast.Expr(
            ast.Call(
                func=ast.Attribute(value=ast.Name(id=name), attr="append" | "insert"), args=[*_, x]
            )
        ):
            yield name, (x,)
        case ast.Assign(targets=targets, value=ast.List(elts=elements)):
            yield from ((t.id, elements) for t in targets if isinstance(t, ast.Name))
        case ast.AugAssign(target=ast.Name(id=name), value=ast.List(elts=elements)):
            yield name, elements
        case _:
            pass


def grown_inside(
    node: Nested, around: Mapping[str, Type], data: Collection[str]
) -> dict[str, Type]:
    """Return the grown names in a nested function: its own, and those of the function around."""
    own = grown_in(node, data) if isinstance(node, ast.FunctionDef) else {}
    hidden = locals_of(node)
    return {n: ty for n, ty in around.items() if n not in hidden} | own


def enter_grown(cx: Context, node: ast.FunctionDef, code: BlockBuilder) -> None:
    """Bind the parameters of a function whose lists it changes after it has assigned to them."""
    args = node.args
    for arg in parameter_nodes(args):
        entry = cx.env.find(arg.arg)
        if arg.arg in cx.grown and isinstance(entry, Bound) and entry.atom is not None:
            span = cx.span(arg)
            var = Var(arg.arg, span=span)
            code.bind(var, turned(entry.atom, span))
            holder = Alias(span, "the caller has an alias of this list")
            cx.env.set(arg.arg, Bound(atom=var, holder=holder))


def grown_value(cx: Context, node: ast.expr) -> Expr | None:
    """Return the variable of a grown name, which holds the list the other way round; None for any
    other expression."""
    if not isinstance(node, ast.Name) or node.id not in cx.grown:
        return None
    entry = cx.local(node.id, cx.span(node))
    return None if entry is None else entry.atom


def assign_grown(
    cx: Context, target: ast.Name, value: ast.expr, code: BlockBuilder, ty: Type | None = None
) -> Steps[None]:
    """Translate `xs = value` for a grown name, perhaps annotated with a type."""
    expr = yield grown_list(cx, target, value, code, ty)
    bind_grown(cx, target, value, expr, code, ty)


def grown_list(
    cx: Context, target: ast.Name, value: ast.expr, code: BlockBuilder, ty: Type | None = None
) -> Steps[Expr]:
    """Translate the list that a grown name gets, the other way round."""
    if not isinstance(value, ast.List) or has_starred(value):
        return turned((yield cx.expression(value)), cx.span(target))
    element = cx.grown[target.id] if ty is None else element_of(ty) or UNKNOWN
    cx.displays.update(inner_displays(value.elts, element))
    elements = yield cx.expressions(value.elts)
    return chain(elements, empty_of(element, cx.span(value), code), cx.span(value))


def extend_grown(cx: Context, target: ast.Name, value: ast.expr, code: BlockBuilder) -> Steps[None]:
    """Translate `xs += value` for a name that is appended to."""
    span, old = cx.span(target), grown_value(cx, target)
    assert old is not None
    items = yield cx.expression(value)
    place = span.using([*cx.uses, (target.id, span)])
    expr = Call(GlobalVar(qualified("rev_onto"), span=span), (items, old), span=place)
    entry = cx.env.find(target.id)
    holder = entry.holder if isinstance(entry, Bound) else None
    if holder is not None:
        cx.program.report(SharedList(span, target.id, holder.span, holder.why))
    hold_added(cx, value)
    bind_grown(cx, target, ast.List([], ast.Load()), expr, code)


def bind_grown(
    cx: Context,
    target: ast.Name,
    value: ast.expr,
    expr: Expr,
    code: BlockBuilder,
    ty: Type | None = None,
) -> None:
    """Bind a grown name to a list, written as `value`, that is already the other way round."""
    span, elements = cx.span(target), cx.grown[target.id]
    if ty is None and has_optionals(elements):
        ty = AdtType(LIST, (elements,))
    holder: Alias | None = None
    if not is_fresh(cx, value, target.id):
        holder = Alias(cx.span(value), "the list comes from here")
    hold_elements(cx, value)
    var = Var(target.id, ty, span=span)
    code.bind(var, expr)
    cx.bind(target.id, Bound(atom=var, holder=holder), span)


def refuse_grown(cx: Context, name: str, span: Span) -> None:
    """Report that a grown name gets a value otherwise than by an assignment of its own."""
    what = f"`{name}` here, which is appended to elsewhere"
    instead = f"give the value another name, and assign it: `{name} = list(...)`"
    cx.program.report(Unsupported(span, what, instead))


# Who else may hold a list.


def hold_lists(cx: Context, value: ast.expr) -> None:
    """Note that a value may hold the lists of grown names from here on."""
    cx.hold(((n.id, cx.span(n)) for n in lists_in(cx, value)), ELSEWHERE)


def hold_captured(cx: Context, subject: ast.expr, pattern: ast.pattern) -> None:
    """Note that names which a pattern binds may hold the lists of the value that is matched."""
    names = set(captures(pattern))
    if not names or not cx.grown:
        return
    alternatives = pattern.patterns if isinstance(pattern, ast.MatchOr) else [pattern]
    is_whole = any(isinstance(p, ast.MatchAs) and p.name is not None for p in alternatives)
    shared = lists_shared(cx, subject)
    names = {s.name for s in shared if not s.part and (s.inside or is_whole) and s.name in cx.grown}
    cx.hold(((n.id, cx.span(n)) for n in mentions(subject, names)), ELSEWHERE)


def hold_elements_of(cx: Context, iterable: ast.expr) -> None:
    """Note that the names which a loop binds may hold the lists that the elements are."""
    inner = {s.name for s in lists_shared(cx, iterable) if s.inside and not s.part}
    names = mentions(iterable, {n for n in inner if n in cx.grown})
    cx.hold(((n.id, cx.span(n)) for n in names), ELSEWHERE)


def hold_stored(cx: Context, node: ast.Call) -> None:
    """Note that cells may hold the lists from here on that a call stores there."""
    stored = ((n.id, cx.span(n)) for n in lists_stored(cx, [node]) if n.id in cx.grown)
    cx.hold(stored, ELSEWHERE)


def hold_elements(cx: Context, value: ast.expr, own: Collection[str] = ()) -> None:
    """Note that a list may hold the lists and tensors of the names in a value from here on, parts
    of its `own` excepted."""
    hold_lists(cx, value)
    if cx.writes_items:
        parts_apart = {*own, *cx.lists}
        tensors = [n for n in shared_by(cx, value, parts_apart) if n.id not in cx.grown]
        cx.hold(((n.id, cx.span(n)) for n in tensors), "its tensor goes to a list here")


def hold_added(cx: Context, value: ast.expr) -> None:
    """Note that a list may hold what is in another from here on, which extends it."""
    if not is_grown(cx, value):
        hold_elements(cx, value)
