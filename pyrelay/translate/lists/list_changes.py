"""Statements that change the list of a local name: `xs.append(x)`, `x = xs.pop()`, `xs.sort()` ...

Each gives the name a new list, which its variable holds the other way round (`growth.py`), so
`append` and `pop` at the end are one step. A list that another value may hold too is refused.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

from ...diagnostics.catalogue.language import Unsupported
from ...diagnostics.catalogue.lists import NotGrown, SharedList
from ...diagnostics.source import Span
from ...ir.block_builder import BlockBuilder
from ...ir.constant import placeholder
from ...ir.expr import Call, Expr, GlobalVar, TupleGet, Var
from ...ir.traverse import Steps
from ...operators.host.loop import index_of
from ...prelude.library import qualified
from ..blocks.list_append import (
    bind_grown,
    empty_of,
    grown_value,
    hold_added,
    hold_elements,
    longer,
    turned,
)
from ..blocks.optional_parts import inner_displays
from ..names.atoms import again, atom
from ..names.kept_functions import check_kept
from ..program.context import Context
from ..program.environment import Alias, Bound
from ..source.flow import CHANGES
from ..source.rewriting import is_pop
from .lists import as_list
from .ordering import sorted_list

Change = Callable[[Context, ast.Call, Expr, BlockBuilder], Steps[Expr]]
"""Returns the new list of a change of an old one, both the other way round."""


class _Form(NamedTuple):
    """How a method that changes a list is called, and how a new list is made instead."""

    fewest: int
    most: int
    text: str
    instead: str
    keywords: tuple[str, ...] = ()


_FORMS: Final[dict[str, _Form]] = {
    "append": _Form(1, 1, "append one element: `xs.append(x)`", "{0} = {0} + [x]"),
    "clear": _Form(0, 0, "write `xs.clear()`", "{0} = []"),
    "extend": _Form(1, 1, "write `xs.extend(ys)`", "{0} = {0} + ys"),
    "insert": _Form(2, 2, "write `xs.insert(i, x)`", "{0} = {0}[:i] + [x] + {0}[i:]"),
    "pop": _Form(0, 1, "write `xs.pop()` or `xs.pop(i)`", "{0} = {0}[:-1]"),
    "remove": _Form(1, 1, "write `xs.remove(x)`", "{0} = [y for y in {0} if y != x]"),
    "reverse": _Form(0, 0, "write `xs.reverse()`", "{0} = {0}[::-1]"),
    "sort": _Form(
        0, 0, "write `xs.sort(key=f, reverse=True)`", "{0} = sorted({0})", ("key", "reverse")
    ),
}
_DONE: Final = {"append": "an element is appended here", "pop": "an element is taken out here"}
_CHANGED: Final = "the list is changed here"


def is_change(cx: Context, node: ast.Call) -> bool:
    """Return whether a call that stands alone is one of a method that changes a list. Tensors have
    `sort` as well, whose result nobody would then use."""
    match node:
        case ast.Call(func=ast.Attribute(value=ast.Name(id=owner))) if owner in cx.holding_data:
            return False
        case ast.Call(func=ast.Attribute(attr="append")):
            return True
        case ast.Call(func=ast.Attribute(value=ast.Name(id=owner), attr=name)):
            return name in CHANGES and cx.env.find(owner) is not None
        case _:
            return False


def change_list(cx: Context, node: ast.Call, code: BlockBuilder) -> Steps[None]:
    """Translate the statement `xs.append(x)`, or that of another change."""
    found = _changed(cx, node)
    if found is None:
        return
    name, old = found
    assert isinstance(node.func, ast.Attribute)
    if node.func.attr == "pop":
        yield _take(cx, node, old, code)
        return
    new = yield _CHANGES[node.func.attr](cx, node, old, code)
    _bind(cx, name, new, cx.span(node), code)


def takes_element(cx: Context, node: ast.expr) -> bool:
    """Return whether an expression calls `pop` on a name that has a list, as far as the text
    shows."""
    if not isinstance(node, ast.Call) or not is_pop(node):
        return False
    return isinstance(node.func, ast.Attribute) and grown_value(cx, node.func.value) is not None


def assign_popped(
    cx: Context, target: ast.Name, value: ast.Call, code: BlockBuilder
) -> Steps[None]:
    """Translate `x = xs.pop()`, which gives `xs` the rest of its list."""
    span = cx.span(target)
    found = _changed(cx, value)
    if found is None:
        cx.bind(target.id, Bound(atom=placeholder(span)), span)
        return
    element = yield _take(cx, value, found[1], code)
    if target.id in cx.grown:
        bind_grown(cx, target, value, turned(element, span), code)
        return
    var = Var(target.id, span=span)
    code.bind(var, element)
    # The element may also be in another place of the list, or in another list.
    holder = Alias(cx.span(value), "it comes from here") if cx.writes_items else None
    cx.bind(target.id, Bound(atom=var, holder=holder), span)


def refuse_change(cx: Context, node: ast.Call) -> Expr:
    """Report a change of a list inside an expression, or of what is no list of the function's
    own."""
    if _changed(cx, node) is not None:
        assert isinstance(node.func, ast.Attribute)
        method = node.func.attr
        given = "x = " if method == "pop" else ""
        instead = f"make it a statement of its own: `{given}{ast.unparse(node)}`"
        cx.program.report(Unsupported(cx.span(node), f"`{method}` here", instead))
    return placeholder(cx.span(node))


def _changed(cx: Context, node: ast.Call) -> tuple[str, Expr] | None:
    """Return the name whose list is changed, and its variable; None after a mistake."""
    assert isinstance(node.func, ast.Attribute)
    owner, method, span = node.func.value, node.func.attr, cx.span(node)
    form, done = _FORMS[method], _DONE.get(method, _CHANGED)
    old = grown_value(cx, owner)
    if not isinstance(owner, ast.Name) or old is None:
        cx.program.report(_not_grown(cx, owner, span, done))
        return None
    entry = cx.env.find(owner.id)
    holder = entry.holder if isinstance(entry, Bound) else None
    if holder is not None:
        instead = f"write `{form.instead.format(owner.id)}`, which changes nothing but this name"
        cx.program.report(SharedList(span, owner.id, holder.span, holder.why, done, instead))
        return None
    named = all(k.arg in form.keywords for k in node.keywords)
    if not named or not form.fewest <= len(node.args) <= form.most:
        cx.program.report(Unsupported(span, f"`{method}` with these arguments", form.text))
        return None
    return owner.id, old


def _not_grown(cx: Context, owner: ast.expr, span: Span, done: str) -> NotGrown:
    text = ast.unparse(owner)
    if not isinstance(owner, ast.Name):
        why, instead = "it is part of another value", "give the list a name first"
    elif cx.env.find(owner.id) is None:
        why = "it is defined outside of the function"
        instead = "make a list inside, and return it"
    else:
        why = "it is not the function's own"
        instead = f"make a list of the function's own: `ys = list({text})`"
    return NotGrown(span, text, why, instead, done)


def _bind(cx: Context, name: str, new: Expr, span: Span, code: BlockBuilder) -> None:
    var = Var(name, span=span)
    code.bind(var, new)
    cx.bind(name, Bound(atom=var), span)


def _prelude(name: str, span: Span, *args: Expr) -> Expr:
    return Call(GlobalVar(qualified(name), span=span), args, span=span)


def _elements(cx: Context, name: str, written: Sequence[ast.expr]) -> Steps[Expr]:
    """Translate an element that is put into the list of a name."""
    check_kept(cx, written[-1])
    cx.displays.update(inner_displays(written[-1:], cx.grown[name]))
    element = yield cx.expression(written[-1])
    hold_elements(cx, written[-1])
    return element


def _append(cx: Context, node: ast.Call, old: Expr, code: BlockBuilder) -> Steps[Expr]:
    element = yield _elements(cx, _name(node), node.args)
    return longer(element, old, cx.span(node))


def _insert(cx: Context, node: ast.Call, old: Expr, code: BlockBuilder) -> Steps[Expr]:
    span = cx.span(node)
    place = atom((yield cx.expression(node.args[0])), "place", code.bind)
    element = yield _elements(cx, _name(node), node.args)
    return turned(_prelude("insert", span, turned(old, span), place, element), span)


def _extend(cx: Context, node: ast.Call, old: Expr, code: BlockBuilder) -> Steps[Expr]:
    span = cx.span(node)
    items = yield as_list(cx, node.args[0])
    hold_added(cx, node.args[0])
    return _prelude("rev_onto", span, items, old)


def _clear(cx: Context, node: ast.Call, old: Expr, code: BlockBuilder) -> Steps[Expr]:
    yield from ()
    return empty_of(cx.grown[_name(node)], cx.span(node), code)


def _reverse(cx: Context, node: ast.Call, old: Expr, code: BlockBuilder) -> Steps[Expr]:
    yield from ()
    return turned(old, cx.span(node))


def _sort(cx: Context, node: ast.Call, old: Expr, code: BlockBuilder) -> Steps[Expr]:
    span = cx.span(node)
    return turned((yield sorted_list(cx, node, turned(old, span))), span)


def _remove(cx: Context, node: ast.Call, old: Expr, code: BlockBuilder) -> Steps[Expr]:
    span = cx.span(node)
    items = atom(turned(old, span), "items", code.bind)
    place = Call(index_of, (items, (yield cx.expression(node.args[0]))), {}, span=span)
    return turned(TupleGet(_prelude("pop_at", span, again(items), place), 1, span=span), span)


_CHANGES: Final[dict[str, Change]] = {
    "append": _append,
    "clear": _clear,
    "extend": _extend,
    "insert": _insert,
    "remove": _remove,
    "reverse": _reverse,
    "sort": _sort,
}


def _take(cx: Context, node: ast.Call, old: Expr, code: BlockBuilder) -> Steps[Expr]:
    """Bind the rest of a list to its name, and return the element that is taken out."""
    span, name = cx.span(node), _name(node)
    if not node.args:  # the last element is in front
        element = atom(_prelude("hd", span, old), "last", code.bind)
        _bind(cx, name, _prelude("tl", span, again(old)), span, code)
        return element
    place = yield cx.expression(node.args[0])
    parts = atom(_prelude("pop_at", span, turned(old, span), place), "parts", code.bind)
    _bind(cx, name, turned(TupleGet(again(parts), 1, span=span), span), span, code)
    return TupleGet(parts, 0, span=span)


def _name(node: ast.Call) -> str:
    assert isinstance(node.func, ast.Attribute)
    assert isinstance(node.func.value, ast.Name)
    return node.func.value.id
