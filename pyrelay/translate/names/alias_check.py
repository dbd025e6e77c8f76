"""Which names may hold one list or one tensor, for `xs.append(y)` and `x[i] = e`.

`x[i] = e` rebinds `x` to a new value, and so does `xs.append(y)`, which is what Python does as long
as nothing else holds the tensor or the list. Where another name, a tuple or a view may, the two
differ, and the change is refused. The rule looks at the text only (`sharing.py`), through the
functions that it calls.
"""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Any, Final, NamedTuple, final

from ...ir.expr import Var
from ...ir.traverse import run
from ...prelude.library import element_of
from ..program.context import Context
from ..program.environment import Alias, Bound
from ..source.flow import (
    all_statements,
    bound_by,
    changed_list,
    parameters_of,
    root_of,
    statements_in,
)
from ..source.scope import MISSING
from ..source.sharing import Called, Share, Sharing, shares, stored_by_call
from ..source.syntax import elements_of
from ..source.unions import may_be_field
from .static import static_value
from .summaries import called, calls_in, summary, units_called


def writes_items(body: Sequence[ast.stmt]) -> bool:
    """Return whether a body assigns to an item anywhere, nested functions included."""
    for stmt in all_statements(body):
        targets = getattr(stmt, "targets", None) or [getattr(stmt, "target", None)]
        if any(isinstance(n, ast.Subscript) for t in targets if t for n in ast.walk(t)):
            return True
    return False


def shows_list(value: ast.expr | None, lists: Collection[str] = ()) -> bool:
    """Return whether an expression is a list, as its text shows; `lists` are the names of lists,
    and of functions that make them."""
    match value:
        case ast.List() | ast.ListComp():
            return True
        case ast.BinOp(left=left, op=ast.Add() | ast.Mult(), right=right):
            return shows_list(left, lists) or shows_list(right, lists)
        case ast.Subscript(value=whole, slice=ast.Slice()):
            return shows_list(whole, lists)
        case ast.Call(func=ast.Attribute(value=whole, attr="copy"), args=[], keywords=[]):
            return shows_list(whole, lists)
        case ast.Name(id=name) | ast.Call(func=ast.Name(id=name)):
            return name in lists
        case _:
            return False


def list_names(body: Sequence[ast.stmt], lists: Collection[str] = ()) -> frozenset[str]:
    """Return the names that a body binds to lists, as the text shows."""
    found: set[str] = set()
    for stmt in statements_in(body):
        match stmt:
            case ast.Assign(targets=targets, value=value) if shows_list(value, {*lists, *found}):
                found.update(t.id for t in targets if isinstance(t, ast.Name))
            case ast.AnnAssign(target=ast.Name(id=name), value=value) if shows_list(
                value, {*lists, *found}
            ):
                found.add(name)
            case _:
                pass
    return frozenset(found)


def only_lists(cx: Context, node: ast.FunctionDef) -> frozenset[str]:
    """Return the names of a function's own that get lists alone, as displays, copies, slices and
    the types of parameters show."""
    makers = {f.__name__ for f in (list, sorted) if _is_known(cx, f)}
    taken = set(parameters_of(node))
    found = {name for name in taken if _takes_list(cx, name)}
    found |= list_names(node.body, found | makers) - (taken - found)
    before: set[str] = set()
    while found != before:
        before = set(found)
        for stmt in statements_in(node.body):
            match stmt:
                case ast.Assign(targets=[ast.Name()], value=value) if shows_list(
                    value, found | makers
                ):
                    pass
                case ast.AnnAssign(value=value) if shows_list(value, found | makers):
                    pass
                case _:
                    found.difference_update(bound_by(stmt, items=False))
    return frozenset(found)


def _is_known(cx: Context, function: Any) -> bool:
    """Return whether a function of Python has its own name where the program stands."""
    known = static_value(cx, ast.Name(function.__name__, ast.Load()))
    return known is not None and known.value is function


def _takes_list(cx: Context, name: str) -> bool:
    """Return whether a parameter is annotated as a list."""
    entry = cx.env.find(name)
    ty = entry.atom.ty if isinstance(entry, Bound) and isinstance(entry.atom, Var) else None
    return element_of(ty) is not None


@final
class _Here:
    """The names of a function at the place that is translated; a name shares with itself."""

    def __init__(self, cx: Context, *, lists: bool) -> None:
        self._cx: Final = cx
        self.lists: Final = lists

    def sharing(self, name: str) -> Sharing:
        return frozenset({Share(name)})

    def known(self, node: ast.expr) -> Any:
        found = static_value(self._cx, node)
        return MISSING if found is None else found.value

    def is_field(self, name: str) -> bool:
        return may_be_field(name, self._cx.annotations.namespace)

    def called(self, node: ast.Call) -> Sequence[Called]:
        function = node.func.value if isinstance(node.func, ast.Subscript) else node.func
        known, cx = self.known(function), self._cx
        seen = cx.program.namespace(cx.definition)
        units = units_called(cx.program, cx.definition, node, known, seen, lists=self.lists)
        return [called(u, node, known, summary(cx.program, u)) for u in units]


def values_shared(cx: Context, node: ast.expr) -> Sharing:
    """Return how the value of an expression may share lists or tensors with names."""
    return lists_shared(cx, node) | run(shares(_Here(cx, lists=False), node))


def lists_shared(cx: Context, node: ast.expr) -> Sharing:
    """Return how the value of an expression may share lists with names."""
    return run(shares(_Here(cx, lists=True), node))


def shared_by(cx: Context, node: ast.expr, own: Collection[str] = ()) -> Iterator[ast.Name]:
    """Return the local names whose tensors the value of an expression may hold; parts of those in
    `own` do not count."""
    found = run(shares(_Here(cx, lists=False), node))
    counted = (s.name for s in found if not (s.part and s.name in own))
    return mentions(node, {n for n in counted if cx.env.find(n) is not None})


class Origin(NamedTuple):
    """Where the tensors of an assigned value may come from: names, and what shows that another
    value may hold those of the target too."""

    names: Sequence[ast.Name]
    of_target: ast.expr | None


def origin(cx: Context, value: ast.expr, target: ast.expr) -> Origin:
    """Return where the tensors of a value may come from that a target gets."""
    here, names = _Here(cx, lists=False), list(shared_by(cx, value))
    held = list(shared_by(cx, value, cx.lists))  # an element of a list is no part of a tensor
    if isinstance(target, ast.Tuple | ast.List):
        found = here.called(value) if isinstance(value, ast.Call) else ()
        repeats = not all(f.summary.distinct for f in found)
        return Origin(held, value if repeats else next(iter(names), None))
    is_list = shows_list(value, cx.lists)  # a slice of a list is a copy, one of a tensor is a view
    shared = lists_shared(cx, value) if is_list else run(shares(here, value))
    own = {s.name for s in shared if not s.inside}
    return Origin(held, next((n for n in names if n.id in own), None))


def lists_stored(cx: Context, nodes: Iterable[ast.Call]) -> Iterator[ast.Name]:
    """Return the mentions of names whose lists calls store in cells."""
    here = _Here(cx, lists=True)
    for node in nodes:
        stored = run(stored_by_call(here, node))
        yield from mentions(node, {s.name for s in stored if not s.part})


def mentions(node: ast.expr, names: set[str]) -> Iterator[ast.Name]:
    """Return the first mention of each name in an expression, in the order of the text; one at the
    expression itself for a name that only a function mentions which it calls."""
    left = set(names)
    pending: list[ast.AST] = [node]
    while pending and left:
        current = pending.pop()
        if isinstance(current, ast.Name) and current.id in left:
            left.remove(current.id)
            yield current
        pending += reversed(list(ast.iter_child_nodes(current)))
    for name in sorted(left):
        yield ast.copy_location(ast.Name(name, ast.Load()), node)


def aliased_in_loop(cx: Context, body: Sequence[ast.stmt]) -> dict[str, Alias]:
    """Return the names whose tensors another name or a list may hold when the next round of a loop
    finds them. A list itself is not its elements: `lists_aliased` looks at lists."""
    found: dict[str, Alias] = {}
    for stmt in statements_in(body):
        value = stored_by(cx, stmt)
        own = items_assigned(cx, stmt.targets) if isinstance(stmt, ast.Assign) else ()
        shared = [] if value is None else list(shared_by(cx, value, own))
        for name in () if value is None else shared_by(cx, value, {*own, *cx.lists}):
            found.setdefault(name.id, Alias(cx.span(name), "its tensor gets an alias here"))
        for target in bound_by(stmt, items=False) if shared else ():
            found.setdefault(target, Alias(cx.span(shared[0]), "it comes from here"))
    return {name: holder for name, holder in found.items() if name not in cx.grown}


def items_assigned(cx: Context, targets: Iterable[ast.expr]) -> frozenset[str]:
    """Return the names of which an assignment to targets assigns items and nothing else, if they
    are one name, or lists: an item that comes from one of them is nowhere else afterwards."""
    each = [e for t in targets for e in elements_of(t)]
    bases = {(root_of(e) or "") if isinstance(e, ast.Subscript) else "" for e in each}
    is_known = len(bases) == 1 or bases <= {*cx.list_names, *cx.grown}
    return frozenset(bases) if is_known else frozenset()


def lists_aliased(cx: Context, body: Sequence[ast.stmt]) -> dict[str, Alias]:
    """Return the grown names whose lists another value may hold when the next round of a loop finds
    them: those that a round puts into a value or a cell, and those that it takes out of one."""
    found: dict[str, Alias] = {}
    for stmt in statements_in(body):
        for name in lists_stored(cx, calls_in(stmt)):
            found.setdefault(name.id, Alias(cx.span(name), ELSEWHERE))
        value = stored_by(cx, stmt)
        if value is None:
            continue
        targets = [n for n in bound_by(stmt, items=False) if n in cx.grown]
        for name in lists_in(cx, value):
            if [name.id] != targets:
                found.setdefault(name.id, Alias(cx.span(name), ELSEWHERE))
        for name in targets:
            if not is_fresh(cx, value, name):
                found.setdefault(name, Alias(cx.span(value), "the list comes from here"))
    return {name: holder for name, holder in found.items() if name in cx.grown}


ELSEWHERE: Final = "an alias goes to another value here"


def lists_in(cx: Context, value: ast.expr) -> Iterator[ast.Name]:
    """Return the grown names whose very list a value may be or hold."""
    whole = {s.name for s in lists_shared(cx, value) if not s.part}
    return mentions(value, {n for n in whole if n in cx.grown})


def is_fresh(cx: Context, value: ast.expr, target: str) -> bool:
    """Return whether a value that a name gets is a list that nothing else holds; its own list is as
    long as nothing else holds that."""
    entry = cx.env.find(target)
    is_own = isinstance(entry, Bound) and entry.holder is None
    own = {Share(target)} if is_own else set[Share]()
    return not {s for s in lists_shared(cx, value) if not s.inside} - own


def stored_by(cx: Context, stmt: ast.stmt) -> ast.expr | None:
    """Return the value that a name, a list or an item holds after a simple statement, if any."""
    match stmt:
        case ast.Assign(value=value) | ast.AnnAssign(value=value):
            return value
        case ast.Expr(ast.Call(func=ast.Attribute(attr="extend"), args=[value])) if is_grown(
            cx, value
        ):
            return None
        case ast.Expr(ast.Call(args=[*_, value])) if changed_list(stmt) is not None:
            return value
        case ast.AugAssign(target=ast.Name(), value=ast.List() as value):
            return value
        case _:
            return None


def is_grown(cx: Context, value: ast.expr) -> bool:
    """Return whether an expression is a name whose list the function changes."""
    return isinstance(value, ast.Name) and value.id in cx.grown
