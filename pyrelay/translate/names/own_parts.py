"""Whether the rows of a list belong to one name alone, for `table[i][j] = x`.

The assignment gives `table` a new value with another row, where Python changes the row itself. The
two differ where something else has that row: another place of the table, as in `[[0] * n] * m`, or
another name. The rule looks at the text of the whole function. A name is *its parts' owner* if each
list that it gets has parts which are made there, and no part goes elsewhere before they change.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from ...ir.op import Op, View
from ...ir.types import AdtType, TensorType
from ...prelude.library import LIST
from ..program.context import Context
from ..program.environment import Alias
from ..source.flow import Compound, Loop, bodies, captures, names_of, reads, root_of
from ..source.syntax import elements_of, parameter_nodes
from .alias_check import shows_list, stored_by, values_shared
from .static import static_meaning, static_value

_MADE: Final = "its parts may have aliases"
_GONE: Final = "a part of it gets an alias here"
_ELEMENT: Final = "this tensor has another name"


class _Stmt(NamedTuple):
    """A statement with its place in the text and the loops around it."""

    node: ast.stmt
    place: int
    loops: tuple[ast.stmt, ...]


def holder_of_parts(cx: Context, name: str, depth: int, *, is_made: bool = True) -> Alias | None:
    """Return where something else may get a part of the value of a name, in which elements are
    assigned below `depth` indices; None if nothing does. `is_made` asks where its parts come from,
    too."""
    assert cx.node is not None
    stmts = list(_statements(cx.node.body))
    if any(_shows_tensor(cx, s.node, name) or _shows_numbers(cx, s.node, name) for s in stmts):
        return None  # the items of a tensor are all parts of it, and numbers have none
    changes = [s for s in stmts if _changes(s.node, name)]
    for stmt in stmts:
        foreign = next(_foreign(cx, stmt.node, name, depth), None)
        if is_made and foreign is not None:
            return Alias(cx.span(foreign), _MADE)
        gone = next(_leaving(cx, stmt.node, name, depth), None)
        inside = isinstance(stmt.node, ast.For) and _is_confined(cx, stmts, stmt, depth)
        if gone is not None and any(
            stmt.node in c.loops if inside else _may_follow(c, stmt) for c in changes
        ):
            return Alias(cx.span(gone), _GONE)
    args = cx.node.args
    taken = next((a for a in (*args.args, *args.kwonlyargs) if a.arg == name), None)
    if taken is None or not is_made:
        return None
    return Alias(cx.span(taken), "the caller may have aliases of its parts")


def holder_of_tensor(cx: Context, name: str) -> Alias | None:
    """Return where a tensor with a name goes into a list, the value of `name`, if something reads
    the name after the list's element was changed by `xs[i] += e`, or the list has it twice."""
    assert cx.node is not None
    stmts = list(_statements(cx.node.body))
    changes = [s for s in stmts if isinstance(s.node, ast.AugAssign) and _changes(s.node, name)]
    for stmt in stmts:
        stored = [e for e in _elements(stmt.node, name) if isinstance(e, ast.Name)]
        for element in stored:
            others = [e for e in stored if e.id == element.id]
            is_read = len(others) > 1 or any(
                s is not stmt and element.id in _own_reads(s.node) and _may_follow(s, change)
                for s in stmts
                for change in changes
            )
            if is_read and any(_shows_tensor(cx, s.node, element.id) for s in stmts):
                return Alias(cx.span(element), _ELEMENT)
    return None


def _elements(stmt: ast.stmt, name: str) -> Iterator[ast.expr]:
    """Yield the expressions that a statement stores as elements of a name's list."""
    for target, value in _targets(stmt):
        if root_of(target) != name:
            continue
        if isinstance(target, ast.Subscript) and value is not None:
            yield value
        elif isinstance(value, ast.List):
            yield from value.elts
    match stmt:
        case ast.Expr(
            ast.Call(func=ast.Attribute(ast.Name(id=owner), "append" | "insert"), args=[*_, value])
        ) if owner == name:
            yield value
        case _:
            pass


def _statements(body: Sequence[ast.stmt]) -> Iterator[_Stmt]:
    pending: list[tuple[ast.stmt, tuple[ast.stmt, ...]]] = [(s, ()) for s in reversed(body)]
    place = 0
    while pending:
        node, loops = pending.pop()
        yield _Stmt(node, place, loops)
        place += 1
        if isinstance(node, Compound):
            first, *others = bodies(node)
            inner = (*loops, node) if isinstance(node, Loop) else loops
            pending += [(s, loops) for part in reversed(others) for s in reversed(part)]
            pending += [(s, inner) for s in reversed(first)]


def _may_follow(later: _Stmt, stmt: _Stmt) -> bool:
    """Return whether a statement may run after another has."""
    return later.place > stmt.place or bool(set(later.loops) & set(stmt.loops))


def _targets(stmt: ast.stmt) -> Iterator[tuple[ast.expr, ast.expr | None]]:
    """Yield the targets of a statement, each with the expression that is assigned to it alone."""
    match stmt:
        case ast.Assign(targets=targets, value=value):
            for target in targets:
                yield from _each(target, value)
        case ast.AnnAssign(target=target, value=value):
            yield target, value
        case ast.AugAssign(target=target, op=ast.Add(), value=value):
            yield target, value
        case ast.AugAssign(target=target):
            yield target, None
        case ast.For(target=target):
            yield from ((t, None) for t in elements_of(target))
        case ast.Match(cases=cases):
            found = (ast.Name(n, ast.Store()) for c in cases for n in captures(c.pattern))
            yield from ((ast.copy_location(n, stmt.subject), None) for n in found)
        case _:
            pass


def _each(target: ast.expr, value: ast.expr) -> Iterator[tuple[ast.expr, ast.expr | None]]:
    targets = elements_of(target)
    if targets == [target]:
        yield target, value
        return
    values = elements_of(value)
    if sorted(map(ast.unparse, targets)) == sorted(map(ast.unparse, values)):
        return  # an exchange
    is_each = len(targets) == len(values)
    yield from zip(targets, values if is_each else [None] * len(targets), strict=True)


def _shows_tensor(cx: Context, stmt: ast.stmt, name: str) -> bool:
    """Return whether a statement shows that the value of a name is a tensor."""
    for target, value in _targets(stmt):
        match target, value:
            case ast.Name(id=bound), ast.Call(func=function) if bound == name:
                if _makes_tensor(cx, function):
                    return True
            case ast.Subscript(value=ast.Name(id=owner), slice=ast.Tuple()), _ if owner == name:
                return True
            case _:
                pass
    return False


def _shows_numbers(cx: Context, stmt: ast.stmt, name: str) -> bool:
    """Return whether a statement shows that the value of a name is a list of numbers."""
    if isinstance(stmt, ast.AnnAssign) and root_of(stmt.target) == name:
        return _are_numbers(cx, stmt.annotation)
    for target, value in _targets(stmt):
        if isinstance(target, ast.Name) and target.id == name:
            value = value.left if isinstance(value, ast.BinOp) else value
            elts = value.elts if isinstance(value, ast.List) else []
            elts = [value.elt] if isinstance(value, ast.ListComp) else elts
            if any(isinstance(e, ast.Constant | ast.UnaryOp) for e in elts):
                return True
            if value is not None and _counts(cx, value):
                return True
            if value is not None and _are_numbers(cx, _annotation_of(cx, value)):
                return True
    return False


def _counts(cx: Context, value: ast.expr) -> bool:
    """Return whether an expression makes a list of the elements of a `range`."""
    match value:
        case ast.Call(func=maker, args=[ast.Call(func=function)]) if _copies(cx, maker):
            pass
        case ast.ListComp(
            ast.Name(id=element), [ast.comprehension(ast.Name(id=bound), ast.Call(func=function))]
        ) if element == bound:
            pass
        case _:
            return False
    known = static_value(cx, function)
    return known is not None and known.value is range


def _annotation_of(cx: Context, value: ast.expr) -> ast.expr | None:
    """Return the annotation of the parameter that an expression is a copy of, or a part of such."""
    while True:
        match value:
            case ast.Subscript(value=inner, slice=ast.Slice()):
                value = inner
            case ast.Call(func=ast.Name(id="list" | "sorted"), args=[inner, *_]):
                value = inner
            case ast.Name(id=name) if cx.node is not None:
                args = cx.node.args
                taken = parameter_nodes(args)
                return next((a.annotation for a in taken if a.arg == name), None)
            case _:
                return None


def _are_numbers(cx: Context, annotation: ast.expr | None) -> bool:
    """Return whether an annotation is that of a list of single numbers."""
    if annotation is None:
        return False
    found = cx.annotations.read(annotation, cx.span(annotation))
    match None if found is None else found.ty:
        case AdtType(name, (TensorType(()),)):
            return name == LIST
        case _:
            return False


def _changes(stmt: ast.stmt, name: str) -> bool:
    """Return whether a statement assigns to an element of a part of a name's value, or changes a
    part."""
    least = 0 if isinstance(stmt, ast.AugAssign) else 1
    return any(root_of(t) == name and _indices(t) > least for t, _ in _targets(stmt))


def may_extend(stmt: ast.AugAssign) -> bool:
    """Return whether `x[i] += e` may extend a list in `x`."""
    match stmt.value:
        case ast.Constant() | ast.UnaryOp() | ast.Compare():
            return False
        case ast.BinOp():
            return shows_list(stmt.value)
        case _:
            return isinstance(stmt.op, ast.Add)


def _indices(target: ast.expr) -> int:
    count = 0
    while isinstance(target, ast.Subscript):
        target, count = target.value, count + 1
    return count


def _foreign(cx: Context, stmt: ast.stmt, name: str, depth: int) -> Iterator[ast.expr]:
    """Yield the expressions that a statement assigns to a name, or stores in its value, and whose
    parts something else may alias."""
    for target, value in _targets(stmt):
        if root_of(target) == name:
            level = depth - _indices(target)
            if isinstance(stmt, ast.AugAssign) and not shows_list(value):
                continue
            if level > 0 and (value is None or not _is_made(cx, value, level)):
                yield target if value is None else value
    match stmt:
        case ast.Expr(
            ast.Call(func=ast.Attribute(value=ast.Name(id=owner), attr=method), args=[*_, value])
        ) if owner == name:
            if method in ("append", "insert") and not _is_made(cx, value, depth - 1):
                yield value
            if method == "extend" and not _is_made(cx, value, depth):
                yield value
        case _:
            pass


def _is_made(cx: Context, value: ast.expr, depth: int) -> bool:
    """Return whether a value, and its parts that lie less than `depth` deep in it, are made by the
    expression, each for one place."""
    if depth == 0:
        return True
    match value:
        case ast.Constant() | ast.UnaryOp():
            return True
        case ast.List() | ast.ListComp():
            elts = value.elts if isinstance(value, ast.List) else [value.elt]
            return all(_is_made(cx, e, depth - 1) for e in elts)
        case ast.IfExp(body=one, orelse=other):
            return all(_is_made(cx, e, depth) for e in (one, other))
        case ast.BinOp(left=left, op=op, right=right):
            is_each = isinstance(op, ast.Add)
            return depth == 1 or (is_each and all(_is_made(cx, e, depth) for e in (left, right)))
        case ast.Call():
            return _is_made_by_call(cx, value, depth)
        case ast.Subscript():
            return depth == 1 and all(s.inside for s in values_shared(cx, value))
        case _:
            return False


def _is_made_by_call(cx: Context, call: ast.Call, depth: int) -> bool:
    if _makes_tensor(cx, call.func):
        return True
    if _copies(cx, call.func) and len(call.args) == 1:
        return depth == 1 or _is_made(cx, call.args[0], depth)
    return depth == 1 and all(s.inside for s in values_shared(cx, call))


def _makes_tensor(cx: Context, function: ast.expr) -> bool:
    if isinstance(function, ast.Attribute) and function.attr == "clone":
        return True
    found = static_meaning(cx, function)
    return isinstance(found, Op) and not isinstance(found.lowering, View)


def _copies(cx: Context, function: ast.expr) -> bool:
    known = static_value(cx, function)
    return known is not None and known.value in (list, tuple, sorted, reversed)


def _leaving(cx: Context, stmt: ast.stmt, name: str, depth: int) -> Iterator[ast.expr]:
    """Return the expressions of a statement through which something else gets a part of a name's
    value."""
    value = stmt.iter if isinstance(stmt, ast.For) else stored_by(cx, stmt)
    if isinstance(stmt, ast.Match):
        value = stmt.subject
    targets = stmt.targets if isinstance(stmt, ast.Assign) else []
    own = {root_of(e) for t in targets for e in elements_of(t)} == {name}
    if value is not None and not own and _shares_part(cx, value, name, depth):
        yield value


def _shares_part(cx: Context, value: ast.expr, name: str, depth: int) -> bool:
    """Return whether a value may hold what lies less than `depth` deep in a name's value."""
    rest = _Elements(name, depth).visit(ast.parse(ast.unparse(value), mode="eval").body)
    return any(s.name == name for s in values_shared(cx, rest))


def _is_confined(cx: Context, stmts: Sequence[_Stmt], loop: _Stmt, depth: int) -> bool:
    """Return whether the names of a `for` loop have elements inside of it alone."""
    assert isinstance(loop.node, ast.For)
    for name in names_of(loop.node.target):
        for stmt in stmts:
            if any(isinstance(s, ast.For) and name in names_of(s.target) for s in stmt.loops):
                value = stored_by(cx, stmt.node)
                if value is not None and _shares_part(cx, value, name, depth - 1):
                    return False
            elif stmt is not loop and _may_follow(stmt, loop) and name in _own_reads(stmt.node):
                return False
    return True


def _own_reads(stmt: ast.stmt) -> frozenset[str]:
    """Return the names that a statement reads, statements inside of it excepted."""
    if not isinstance(stmt, Compound):
        return reads(stmt)
    parts = (n for n in ast.iter_child_nodes(stmt) if isinstance(n, ast.expr))
    return frozenset[str]().union(*map(reads, parts))


class _Elements(ast.NodeTransformer):
    """Leaves out the elements that are read below all indices, which no assignment changes."""

    def __init__(self, name: str, depth: int) -> None:
        self._name: Final = name
        self._depth: Final = depth

    def visit_Subscript(self, node: ast.Subscript) -> ast.expr:
        if root_of(node) == self._name and _indices(node) >= self._depth:
            return ast.Constant(0)
        self.generic_visit(node)
        return node
