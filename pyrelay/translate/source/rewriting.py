"""Python that stands for other Python, rewritten before anything else looks at a function.

* `xs.pop()` gives a value and changes the list, and only a statement changes what a name stands
  for. So `f(stack.pop(), stack.pop())` becomes `popped = stack.pop()`, `popped_1 = stack.pop()` and
  `f(popped, popped_1)`. What Python evaluates before a call of `pop` is named as well, so that the
  order stays the same. `(n := e)` becomes `n = e` in the same way, and `while (n := e) > 0:` a loop
  that ends with `break`.
* `a, *rest = xs` becomes `a = xs[0]` and `rest = [x for x in xs[1:]]`, and `del xs[i]`
  `xs.pop(i)`.
* `@relay.custom_vjp(fwd, bwd)` above a nested `def f` becomes `f = relay.custom_vjp(fwd, bwd)(f)`
  below it, and `@relay.checkpoint` likewise. A bare name as a decorator is refused later.

A call or `:=` that Python evaluates only sometimes, such as that in `p and xs.pop()`, stays where
it is and is refused later.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Sequence
from typing import Final, TypeAlias, TypeVar, final

from ...ir.traverse import Steps, run
from .flow import root_of


def rewritten(function: ast.FunctionDef) -> ast.FunctionDef:
    """Return a function in which each call `xs.pop()` is the right side of an assignment to a name,
    or a statement, and what stands for other Python is that; itself if there is nothing to do."""
    nodes = [n for n in ast.walk(function) if n is not function]
    if not any(map(_stands_for_other, nodes)):
        return function
    names = {n.id for n in ast.walk(function) if isinstance(n, ast.Name)}
    return _Rewriter(names).function(function)


def _stands_for_other(node: ast.AST) -> bool:
    is_call = is_pop(node) or is_append_to_item(node)
    return is_call or isinstance(node, _REWRITTEN) or _is_decorated(node)


_REWRITTEN: Final = (ast.NamedExpr, ast.Starred, ast.Delete)


def is_pop(node: ast.AST) -> bool:
    """Return whether a node is a call of `pop` on a name."""
    match node:
        case ast.Call(func=ast.Attribute(value=ast.Name(), attr="pop")):
            return True
        case _:
            return False


def _is_decorated(node: ast.AST) -> bool:
    """Return whether a node is a function under decorators that are called below it."""
    return isinstance(node, ast.FunctionDef) and any(
        isinstance(d, ast.Call | ast.Attribute) for d in node.decorator_list
    )


Part: TypeAlias = "tuple[str, int | None, ast.expr]"
"""A part of an expression: the field of its node, the place in it if it is a list, and itself."""

_HELD: Final = ("value", "test", "iter", "subject")
"""The fields of statements that hold the expression which is evaluated first, and once."""


@final
class _Rewriter:
    """Rewrites the bodies of one function and of those inside it."""

    def __init__(self, names: set[str]) -> None:
        self._names: Final = names
        self._pending: list[ast.stmt] = []

    def function(self, node: ast.FunctionDef) -> ast.FunctionDef:
        """Return a function with its body rewritten, nested functions included."""
        return _with(node, body=list(self._block(node.body)))

    def _block(self, body: Sequence[ast.stmt]) -> Iterator[ast.stmt]:
        for stmt in body:
            for single in self._singles(stmt):
                last = self._statement(single)
                before, self._pending = self._pending, []
                yield from before
                yield last

    def _singles(self, stmt: ast.stmt) -> Iterator[ast.stmt]:
        """Return the statements that one stands for."""
        match stmt:
            case ast.FunctionDef() if _is_decorated(stmt):
                yield from _decorated(stmt)
            case ast.Expr(ast.Call() as call) if is_append_to_item(call):
                yield _extended(call)
            case ast.Delete(targets=targets) if all(map(_is_item, targets)):
                yield from map(_removed, targets)
            case ast.Assign(targets=[ast.Tuple(elts=elts) | ast.List(elts=elts)], value=value) if (
                _stars(elts) == 1
            ):
                names = {n.id for e in elts for n in ast.walk(e) if isinstance(n, ast.Name)}
                is_free = isinstance(value, ast.Name) and value.id not in names - _starred(elts)
                if not is_free:
                    name = self._fresh("packed")
                    yield _assigned(ast.Name(name, ast.Store()), value)
                    value = ast.copy_location(ast.Name(name, ast.Load()), value)
                yield from _unpacked(elts, value, self._fresh("item"))
            case ast.For(target=ast.Tuple(elts=elts) | ast.List(elts=elts) as target) if (
                _stars(elts) == 1
            ):
                name = self._fresh("packed")
                taken = ast.copy_location(ast.Name(name, ast.Load()), target)
                whole = ast.copy_location(ast.Name(name, ast.Store()), target)
                yield _with(stmt, target=whole, body=[_assigned(target, taken), *stmt.body])
            case _:
                yield stmt

    def _statement(self, stmt: ast.stmt) -> ast.stmt:
        if isinstance(stmt, ast.While) and _has_taken(stmt.test):
            stmt = _endless(stmt)
        stmt = self._first_expression(stmt)
        before, self._pending = self._pending, []
        changed = {
            name: list(self._block(body))
            for name in ("body", "orelse")
            if (body := getattr(stmt, name, None)) and isinstance(body, list)
        }
        if isinstance(stmt, ast.Match):
            cases = [_with(c, body=list(self._block(c.body))) for c in stmt.cases]
            stmt = _with(stmt, cases=cases)
        self._pending = before
        return _with(stmt, **changed) if changed else stmt

    def _first_expression(self, stmt: ast.stmt) -> ast.stmt:
        if isinstance(stmt, ast.While):
            return stmt  # evaluated before every round, and has nothing to take out
        for name in _HELD:
            value = getattr(stmt, name, None)
            if not isinstance(value, ast.expr) or not _has_taken(value):
                continue
            stands = isinstance(stmt, ast.Expr) or (
                isinstance(stmt, ast.Assign)
                and len(stmt.targets) == 1
                and isinstance(stmt.targets[0], ast.Name)
            )
            new = run(self._inside(value) if stands and is_pop(value) else self._taken(value))
            return _with(stmt, **{name: new})
        return stmt

    # Expressions.

    def _taken(self, node: ast.expr) -> Steps[ast.expr]:
        """Return an expression without calls of `pop` and `:=`, which stand in statements before
        it."""
        if isinstance(node, ast.NamedExpr):
            self._pending.append(_assigned(node.target, (yield self._taken(node.value))))
            return ast.copy_location(ast.Name(node.target.id, ast.Load()), node)
        inside = yield self._inside(node)
        return self._named(inside, "popped") if is_pop(node) else inside

    def _inside(self, node: ast.expr) -> Steps[ast.expr]:
        """Return an expression with the calls taken out of its parts."""
        parts = _parts(node)
        places = [i for i, (_, _, part) in enumerate(parts) if _has_taken(part)]
        if not places:
            return node
        single: dict[str, ast.expr] = {}
        several: dict[str, list[ast.expr]] = {}
        for place, (field, index, part) in enumerate(parts[: places[-1] + 1]):
            made = (yield self._taken(part)) if _has_taken(part) else part
            later = (p for _, _, p in parts[place + 1 : places[-1] + 1])
            if place < places[-1] and not (_is_fixed(made) and _keeps(made, later)):
                made = self._named(made, "before")
            if index is None:
                single[field] = made
            else:
                several.setdefault(field, list(getattr(node, field)))[index] = made
        return _with(node, **single, **several)

    def _named(self, node: ast.expr, hint: str) -> ast.expr:
        """Return a new name for the value of an expression, which a statement before gives it."""
        name = self._fresh(hint)
        self._pending.append(_assigned(ast.Name(name, ast.Store()), node))
        return ast.copy_location(ast.Name(name, ast.Load()), node)

    def _fresh(self, hint: str) -> str:
        name, number = hint, 0
        while name in self._names:
            number += 1
            name = f"{hint}_{number}"
        self._names.add(name)
        return name


def _assigned(target: ast.expr, value: ast.expr) -> ast.stmt:
    return ast.copy_location(ast.Assign([_placed(target, value)], value), value)


def _endless(stmt: ast.While) -> ast.While:
    """Return a loop whose condition is tested inside, before its `else` if it fails."""
    over = ast.UnaryOp(ast.Not(), stmt.test)
    leave = ast.If(over, [*stmt.orelse, ast.Break()], [])
    forever = ast.Constant(True)
    for part in (over, leave, leave.body[-1], forever):
        ast.copy_location(part, stmt.test)
    return _with(stmt, test=forever, body=[leave, *stmt.body], orelse=[])


def _is_item(target: ast.expr) -> bool:
    """Return whether `del` removes one element of the list of a name."""
    match target:
        case ast.Subscript(value=ast.Name(), slice=place):
            return not isinstance(place, ast.Slice | ast.Tuple)
        case _:
            return False


def is_append_to_item(node: ast.AST) -> bool:
    """Return whether a node is `xs[i].append(x)`, or that of an item further inside."""
    match node:
        case ast.Call(
            func=ast.Attribute(value=ast.Subscript() as owner, attr="append"), args=[_], keywords=[]
        ):
            return root_of(owner) is not None
        case _:
            return False


def _extended(call: ast.Call) -> ast.stmt:
    """Return `xs[i] += [x]` for `xs[i].append(x)`."""
    assert isinstance(call.func, ast.Attribute)
    owner = call.func.value
    assert isinstance(owner, ast.Subscript)
    target = ast.copy_location(ast.Subscript(owner.value, owner.slice, ast.Store()), owner)
    added = ast.copy_location(ast.List(call.args, ast.Load()), call.args[0])
    return ast.copy_location(ast.AugAssign(target, ast.Add(), added), call)


def _removed(target: ast.expr) -> ast.stmt:
    """Return `xs.pop(i)` for `del xs[i]`."""
    assert isinstance(target, ast.Subscript)
    assert isinstance(target.value, ast.Name)
    owner = ast.copy_location(ast.Name(target.value.id, ast.Load()), target.value)
    method = ast.copy_location(ast.Attribute(owner, "pop", ast.Load()), target)
    call = ast.copy_location(ast.Call(method, [target.slice], []), target)
    return ast.copy_location(ast.Expr(call), target)


def _stars(elts: Sequence[ast.expr]) -> int:
    return sum(isinstance(e, ast.Starred) for e in elts)


def _starred(elts: Sequence[ast.expr]) -> set[str]:
    """Return the name after the star among targets."""
    stars = (e.value for e in elts if isinstance(e, ast.Starred))
    return {v.id for v in stars if isinstance(v, ast.Name)}


def _unpacked(elts: Sequence[ast.expr], value: ast.expr, name: str) -> Iterator[ast.stmt]:
    """Return the statements for `a, *rest, b = value`, the one for the list last, with a new name
    for its elements."""
    place = next(i for i, e in enumerate(elts) if isinstance(e, ast.Starred))
    after = len(elts) - place - 1
    if after and len(elts) > 2:
        words = f"not enough values to unpack (expected at least {len(elts) - 1})"
        length = ast.Call(ast.Name("len", ast.Load()), [value], [])
        enough = ast.Compare(length, [ast.GtE()], [ast.Constant(len(elts) - 1)])
        yield _placed(ast.Assert(enough, ast.Constant(words)), value)
    for number, target in enumerate(elts):
        if number != place:
            index = number if number < place else number - len(elts)
            item = ast.Subscript(value, _placed(ast.Constant(index), value), ast.Load())
            yield _assigned(target, ast.copy_location(item, value))
    stop = ast.Constant(-after) if after else None
    middle = ast.Subscript(value, ast.Slice(ast.Constant(place), stop, None), ast.Load())
    item = ast.Name(name, ast.Load())
    over = ast.comprehension(ast.Name(name, ast.Store()), middle, [], 0)
    rest = ast.ListComp(item, [over])
    starred = elts[place]
    assert isinstance(starred, ast.Starred)
    yield _assigned(starred.value, _placed(rest, value))


def _decorated(node: ast.FunctionDef) -> Iterator[ast.stmt]:
    """Return a nested function without its decorators, and the calls of these."""
    own = [d for d in node.decorator_list if isinstance(d, ast.Call | ast.Attribute)]
    yield _with(node, decorator_list=[d for d in node.decorator_list if d not in own])
    for decorator in reversed(own):
        given = ast.copy_location(ast.Name(node.name, ast.Load()), decorator)
        called = ast.copy_location(ast.Call(decorator, [given], []), decorator)
        yield _assigned(ast.Name(node.name, ast.Store()), called)


def _placed(made: Node, place: ast.expr) -> Node:
    """Return a new node whose parts stand at a place, as far as they stand nowhere yet."""
    for part in ast.walk(made):
        if isinstance(part, ast.expr | ast.stmt) and not hasattr(part, "lineno"):
            ast.copy_location(part, place)
    return made


def _has_taken(node: ast.AST) -> bool:
    """Return whether Python calls `pop` or assigns whenever it evaluates an expression."""
    pending = [node]
    while pending:
        current = pending.pop()
        if is_pop(current) or isinstance(current, ast.NamedExpr):
            return True
        if isinstance(current, ast.expr):
            pending += (part for _, _, part in _parts(current))
    return False


def _parts(node: ast.expr) -> list[Part]:
    """Return the parts of an expression that are always evaluated, in order, with their places."""
    match node:
        case ast.Call(func=func, args=args):
            given: list[Part] = [("args", i, a) for i, a in enumerate(args)]
            is_part = isinstance(func, ast.Attribute) and not _is_fixed(func)
            return [("func", None, func), *given] if is_part else given
        case ast.BinOp(left=left, right=right):
            return [("left", None, left), ("right", None, right)]
        case ast.Compare(left=left, comparators=others):
            return [("left", None, left), ("comparators", 0, others[0])]
        case ast.Tuple(elts=elts) | ast.List(elts=elts):
            return [("elts", i, e) for i, e in enumerate(elts)]
        case ast.BoolOp(values=values):
            return [("values", 0, values[0])]
        case ast.Subscript(value=value, slice=index):
            return [("value", None, value), ("slice", None, index)]
        case ast.IfExp(test=test):
            return [("test", None, test)]
        case ast.UnaryOp(operand=operand):
            return [("operand", None, operand)]
        case ast.Attribute(value=value) | ast.Starred(value=value):
            return [("value", None, value)]
        case _:
            return []


def _keeps(node: ast.expr, later: Iterable[ast.expr]) -> bool:
    """Return whether no expression of some assigns to a name in another one."""
    assigned = {n.target.id for e in later for n in ast.walk(e) if isinstance(n, ast.NamedExpr)}
    return not any(isinstance(n, ast.Name) and n.id in assigned for n in ast.walk(node))


def _is_fixed(node: ast.expr) -> bool:
    """Return whether evaluating an expression before or after a call of `pop` gives the same. A
    name is the list itself in Python, which the call then has changed."""
    while isinstance(node, ast.Attribute):
        node = node.value
    return isinstance(node, ast.Constant | ast.Lambda | ast.Name)


Node = TypeVar("Node", bound=ast.AST)


def _with(node: Node, **fields: object) -> Node:
    """Return a copy of a node with other fields, at the same place."""
    kept = {name: getattr(node, name, None) for name in node._fields}
    made = type(node)(**{**kept, **fields})
    return ast.copy_location(made, node) if hasattr(node, "lineno") else made
