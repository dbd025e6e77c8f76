"""The `else` of a loop, which runs unless the loop ends with `break`, written without it.

for x in xs:                    left = False
    if x > k:                   for x in xs:
        break                       if x > k:
else:                                   left = True
    x = k                               break
                                if not left:
                                    x = k
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Sequence
from copy import copy
from typing import TypeAlias

from ...ir.traverse import Steps, run

Loop: TypeAlias = ast.For | ast.While


def without_else(loop: Loop, fresh: Callable[[str], str]) -> Iterator[ast.stmt]:
    """Return the statements that a loop with an `else` stands for; `fresh` makes new names."""
    if not _has_break(loop.body):
        yield _with_bodies(loop, loop.body, [])
        yield from loop.orelse
        return
    name, place = fresh("left"), loop.orelse[0]
    yield _set(name, False, place)
    yield _with_bodies(loop, run(_marked(loop.body, name)), [])
    over = ast.UnaryOp(ast.Not(), ast.Name(name, ast.Load()))
    for part in (over, over.operand):
        ast.copy_location(part, place)
    yield ast.copy_location(ast.If(over, loop.orelse, []), place)


def _set(name: str, value: bool, place: ast.stmt) -> ast.stmt:
    target, constant = ast.Name(name, ast.Store()), ast.Constant(value)
    made = ast.Assign([target], constant)
    for part in (target, constant, made):
        ast.copy_location(part, place)
    return made


def _with_bodies(loop: Loop, body: list[ast.stmt], orelse: list[ast.stmt]) -> Loop:
    made = copy(loop)
    made.body, made.orelse = body, orelse
    return made


def _inside(stmt: ast.stmt) -> Sequence[Sequence[ast.stmt]]:
    """Return the bodies in a statement whose `break` ends the loop around it."""
    match stmt:
        case ast.If(body=body, orelse=orelse):
            return body, orelse
        case ast.For(orelse=orelse) | ast.While(orelse=orelse):
            return (orelse,)
        case ast.Match(cases=cases):
            return [case.body for case in cases]
        case _:
            return ()


def _has_break(body: Sequence[ast.stmt]) -> bool:
    pending = list(body)
    while pending:
        stmt = pending.pop()
        if isinstance(stmt, ast.Break):
            return True
        pending += (s for part in _inside(stmt) for s in part)
    return False


def _marked(body: Sequence[ast.stmt], name: str) -> Steps[list[ast.stmt]]:
    """Return statements in which a name is set to True before each `break`."""
    found: list[ast.stmt] = []
    for stmt in body:
        match stmt:
            case ast.Break():
                found += (_set(name, True, stmt), stmt)
            case ast.If(test=test, body=then, orelse=orelse):
                both = (yield _marked(then, name)), (yield _marked(orelse, name))
                found.append(ast.copy_location(ast.If(test, *both), stmt))
            case ast.For(orelse=[_, *_]) | ast.While(orelse=[_, *_]):
                found.append(_with_bodies(stmt, stmt.body, (yield _marked(stmt.orelse, name))))
            case ast.Match(cases=cases):
                made = copy(stmt)
                made.cases = [copy(case) for case in cases]
                for case in made.cases:
                    case.body = yield _marked(case.body, name)
                found.append(made)
            case _:
                found.append(stmt)
    return found
