"""Assignments to items of items, `table[i][j] = x`: new values all the way up to the name."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from typing import final

from ...dataclass import dataclass
from ...diagnostics.catalogue.lists import SharedParts
from ...diagnostics.catalogue.names import OuterAssignment
from ...diagnostics.source import Span
from ...ir.block_builder import BlockBuilder
from ...ir.expr import Expr, Var
from ...ir.traverse import Steps
from ..names.alias_check import is_grown, shows_list
from ..names.atoms import again, atom
from ..names.own_parts import holder_of_parts, holder_of_tensor, may_extend
from ..program.context import Context
from ..program.environment import Alias, Bound
from ..source.flow import root_of
from .list_append import hold_elements, turned
from .subscripts import Subscript, copied, fixed, item, read_place, replaced


@final
@dataclass(frozen=True, slots=True)
class _Level:
    """A value of which an item is replaced."""

    value: Expr
    place: Subscript
    span: Span
    inside: Span
    """The index between the brackets."""

    def item(self) -> Expr:
        """Return the item as it is."""
        return item(again(self.value), copied(self.place), self.span, self.inside)

    def replaced(self, new: Expr) -> Expr:
        """Return the value with another item."""
        return replaced(again(self.value), copied(self.place), new, self.span, self.inside)


@final
@dataclass(frozen=True, slots=True)
class NestedItem:
    """An item of items of a name's value, on the way to which all indices are computed."""

    name: ast.Name
    levels: Sequence[_Level]

    def old(self) -> Expr:
        """Return the item as it is."""
        return self.levels[-1].item()

    def bind(self, cx: Context, new: Expr, code: BlockBuilder) -> None:
        """Bind the name to a copy of its value in which the item is replaced."""
        for level in reversed(self.levels):
            new = level.replaced(new)
        name, span = self.name.id, self.levels[-1].span
        var = Var(name, span=span)
        code.bind(var, turned(new, span) if is_grown(cx, self.name) else new)
        cx.bind(name, Bound(atom=var), span)


def is_nested(target: ast.Subscript) -> bool:
    """Return whether a target is an item of an item."""
    return isinstance(target.value, ast.Subscript)


def nested_item(cx: Context, target: ast.Subscript, code: BlockBuilder) -> Steps[NestedItem | None]:
    """Return the item that a target is; None when it may not be assigned, which is reported."""
    chain = _chain(target)
    name = chain[0].value
    assert isinstance(name, ast.Name), "the subset excludes other targets"
    value = _owned(cx, name, target, len(chain))
    if value is None:
        return None
    if is_grown(cx, name):
        value = atom(turned(value, cx.span(name)), name.id, code.bind)
    levels: list[_Level] = []
    for each in chain:
        if levels:
            value = atom(levels[-1].item(), "item", code.bind)
        place = fixed((yield read_place(cx, each.slice)), code)
        levels.append(_Level(value, place, cx.span(each), cx.span(each.slice)))
    return NestedItem(name, levels)


def _chain(target: ast.Subscript) -> list[ast.Subscript]:
    """Return the subscripts of a target, the outermost value's first."""
    chain = [target]
    while isinstance(chain[-1].value, ast.Subscript):
        chain.append(chain[-1].value)
    chain.reverse()
    return chain


def _owned(cx: Context, name: ast.Name, target: ast.Subscript, depth: int) -> Expr | None:
    """Return the value of a name of whose items the items may be assigned; None when another value
    may hold them, which is reported."""
    span = cx.span(target)
    entry = cx.local(name.id, span)
    if entry is None or entry.atom is None:
        cx.program.report(OuterAssignment(span, name.id))
        return None
    holder = entry.holder or holder_of_parts(cx, name.id, depth)
    if holder is not None:
        cx.program.report(shared_parts(cx, target, name.id, holder))
        return None
    return entry.atom


def changes_own(cx: Context, stmt: ast.AugAssign, target: ast.Subscript) -> bool:
    """Return whether `x[i] += e`, which changes a list or a tensor in a list itself, changes one
    that nothing else holds; another is reported."""
    name = root_of(target) or ""
    if name not in cx.lists and not may_extend(stmt):
        return True
    is_list = shows_list(stmt.value)
    holder = holder_of_parts(cx, name, 2, is_made=is_list)
    if holder is None and not is_list:
        holder = holder_of_tensor(cx, name)
    if holder is not None:
        both = ast.unparse(ast.BinOp(target, stmt.op, stmt.value))
        new = "" if is_list else f"{ast.unparse(target)} = {both}"
        cx.program.report(shared_parts(cx, target, name, holder, new))
    elif is_list:
        hold_elements(cx, stmt.value)
    return holder is None


def shared_parts(
    cx: Context, target: ast.Subscript, name: str, holder: Alias, assignment: str = ""
) -> SharedParts:
    """Return the mistake of a change in an item of a name's value that another value may hold;
    `assignment` makes a new item instead."""
    indices = ", ".join(ast.unparse(each.slice) for each in _chain(target))
    return SharedParts(cx.span(target), name, indices, assignment, holder.span, holder.why)
