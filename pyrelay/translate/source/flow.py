"""Flow of names through the statements of one function: the names that are assigned, read and live.

`live_after` says which of the names that a branch or loop assigns are read later, so only those are
joined after it; `live_head` which are read in a later round of a loop or after it, so only those
are carried. Scoping is Python's: a name assigned anywhere in a function is local to it.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import field
from enum import Flag, auto
from typing import Final, TypeAlias, final

from ...dataclass import dataclass
from ...ir.traverse import Steps, run
from .syntax import parameter_nodes

Compound: TypeAlias = ast.If | ast.Match | ast.For | ast.While
Branching: TypeAlias = ast.If | ast.Match
Loop: TypeAlias = ast.For | ast.While
Nested: TypeAlias = ast.FunctionDef | ast.Lambda
Names: TypeAlias = frozenset[str]
StaticTest: TypeAlias = Callable[[ast.expr], bool | None]
"""Return the value of a condition that is known statically, else None."""

NONE: Final[Names] = frozenset()


class Exit(Flag):
    """How control leaves a statement but by going on after it."""

    NONE = 0
    RETURN = auto()
    RAISE = auto()
    LOOP = auto()
    """`break` or `continue` of a loop around."""


@dataclass(frozen=True, slots=True)
class _Exits:
    """The names live at the targets of `break` and `continue` of the loop around."""

    leave: Names
    again: Names


@final
@dataclass(frozen=True, slots=True)
class Flow:
    """The result of the analysis of one function, nested functions excluded."""

    live_after: dict[Compound, Names] = field(default_factory=dict[Compound, Names])
    live_head: dict[Compound, Names] = field(default_factory=dict[Compound, Names])
    assigned: dict[Compound, tuple[str, ...]] = field(
        default_factory=dict[Compound, tuple[str, ...]]
    )
    exits: dict[Compound, Exit] = field(default_factory=dict["Compound", "Exit"])
    """How control may leave what is around a branch or loop, from inside of it."""
    ends: dict[Compound, tuple[bool, ...]] = field(
        default_factory=dict["Compound", "tuple[bool, ...]"]
    )
    """Whether control can reach the end of each of the bodies of a branch or loop."""

    def jumps(self, stmt: Branching) -> bool:
        """Return whether a branch may leave what is around it: by return or raise, or by break or
        continue of a loop around it."""
        return bool(self.exits[stmt])

    def jumps_back(self, loop: Loop) -> bool:
        """Return whether a loop may leave what is around it: by a `return` inside, or by a `break`
        or `continue` of a loop around it in its `else`."""
        return bool(self.exits[loop] & ~Exit.RAISE)

    def falls_through(self, stmt: Branching) -> bool:
        """Return whether control can reach the end of several bodies of a branch."""
        return sum(self.ends[stmt]) > 1

    def joined(self, stmt: Compound) -> tuple[str, ...]:
        """Return the names that a branch or loop assigns and that are read after it, in order."""
        return tuple(n for n in self.assigned[stmt] if n in self.live_after[stmt])

    def carried(self, loop: Compound) -> tuple[str, ...]:
        """Return the names that a loop assigns and that its next round or what follows reads."""
        return tuple(n for n in self.assigned[loop] if n in self.live_head[loop])


def analyse(body: Sequence[ast.stmt], static_test: StaticTest) -> Flow:
    """Return the flow of the body of a function."""
    flow = Flow()
    _note_inside(flow, body, static_test)
    run(_Analysis(flow, static_test).block(body, NONE, None))
    return flow


def _note_inside(flow: Flow, body: Sequence[ast.stmt], static_test: StaticTest) -> None:
    """Record how control leaves each branch and loop by itself, those inside first, so that a long
    chain of branches costs no more than its text."""
    for stmt in reversed(list(statements_in(body))):
        if isinstance(stmt, Compound):
            names = dict.fromkeys(bound_by(stmt))
            exits = Exit.NONE
            for each, is_round in _inside(stmt):
                known = flow.assigned.get(each) if isinstance(each, Compound) else bound_by(each)
                names |= dict.fromkeys(known or ())
                found = flow.exits[each] if isinstance(each, Compound) else _exit(each)
                exits |= found & ~Exit.LOOP if is_round else found
            flow.assigned[stmt], flow.exits[stmt] = tuple(names), exits
            flow.ends[stmt] = tuple(_reaches_end(flow, b, static_test) for b in bodies(stmt))


def _inside(stmt: Compound) -> Iterator[tuple[ast.stmt, bool]]:
    """Return the statements inside of one, each with whether it belongs to the rounds of a loop."""
    for place, body in enumerate(bodies(stmt)):
        yield from ((each, isinstance(stmt, Loop) and place == 0) for each in body)


def bodies(stmt: Compound) -> list[list[ast.stmt]]:
    """Return the ways through a branch, or the body of a loop and its `else`."""
    match stmt:
        case ast.If(body=then, orelse=otherwise):
            return [then, otherwise]
        case ast.Match(cases=cases):
            return [case.body for case in cases]
        case ast.For(body=body, orelse=after) | ast.While(body=body, orelse=after):
            return [body, after]


def _exit(stmt: ast.stmt) -> Exit:
    match stmt:
        case ast.Return():
            return Exit.RETURN
        case ast.Raise():
            return Exit.RAISE
        case ast.Expr() if is_never(stmt):
            return Exit.RAISE
        case ast.Break() | ast.Continue():
            return Exit.LOOP
        case _:
            return Exit.NONE


def _reaches_end(flow: Flow, body: Sequence[ast.stmt], static_test: StaticTest) -> bool:
    """Return whether control can reach the end of a body, by what is noted of the branches in
    it."""
    if any(_exit(s) for s in body):
        return False
    match body[-1] if body else None:
        case ast.If(test=test) as last:
            known, (then, otherwise) = static_test(test), flow.ends[last]
            return (then and known is not False) or (otherwise and known is not True)
        case ast.Match() as last:
            return any(flow.ends[last])
        case ast.For(body=inside) | ast.While(body=inside) as last:
            is_endless = isinstance(last, ast.While) and static_test(last.test) is True
            return has_break(inside) or (flow.ends[last][1] and not is_endless)
        case _:
            return True


@final
class _Analysis:
    """A backward walk; each step computes the names live before it from those live after it."""

    def __init__(self, flow: Flow, static_test: StaticTest) -> None:
        self._flow = flow
        self._static_test = static_test

    def block(self, body: Sequence[ast.stmt], after: Names, exits: _Exits | None) -> Steps[Names]:
        live = set(after)
        for stmt in reversed(body):
            match stmt:
                case ast.If():
                    live = set((yield self._branch(stmt, frozenset(live), exits)))
                case ast.Match():
                    live = set((yield self._cases(stmt, frozenset(live), exits)))
                case ast.While() | ast.For():
                    live = set((yield self._loop(stmt, frozenset(live), exits)))
                case ast.Return() | ast.Raise():
                    live = set(reads(stmt))
                case ast.Expr() if is_never(stmt):
                    live = set(reads(stmt))
                case ast.Break():
                    live = set(NONE if exits is None else exits.leave)
                case ast.Continue():
                    live = set(NONE if exits is None else exits.again)
                case ast.FunctionDef():
                    live.discard(stmt.name)
                    live |= reads(stmt)
                case _:
                    live.difference_update(bound_by(stmt))
                    live |= reads(stmt)
        return frozenset(live)

    def _note(self, stmt: Compound, after: Names) -> None:
        self._flow.live_after[stmt] = after.intersection(self._flow.assigned[stmt])

    def _branch(self, stmt: ast.If, after: Names, exits: _Exits | None) -> Steps[Names]:
        self._note(stmt, after)
        known = self._static_test(stmt.test)
        if known is not None:
            return (yield self.block(stmt.body if known else stmt.orelse, after, exits))
        then = yield self.block(stmt.body, after, exits)
        otherwise = yield self.block(stmt.orelse, after, exits)
        return then | otherwise | reads(stmt.test)

    def _cases(self, stmt: ast.Match, after: Names, exits: _Exits | None) -> Steps[Names]:
        self._note(stmt, after)
        live = reads(stmt.subject)
        for case in stmt.cases:
            inside = yield self.block(case.body, after, exits)
            guard = NONE if case.guard is None else reads(case.guard)
            live |= (inside | guard).difference(captures(case.pattern)) | reads(case.pattern)
        return live

    def _loop(self, stmt: Loop, after: Names, exits: _Exits | None) -> Steps[Names]:
        self._note(stmt, after)
        head = yield self.block(stmt.orelse, after, exits)
        if isinstance(stmt, ast.While):
            endless = self._static_test(stmt.test) is True
            head = NONE if endless else head | reads(stmt.test)
            before, targets = NONE, NONE
        else:
            before, targets = reads(stmt.iter), frozenset(names_of(stmt.target))
        # What a round reads does not grow with what is live after it, so two walks settle it.
        for _ in range(2):
            inside = yield self.block(stmt.body, head, _Exits(after, head))
            head |= inside - targets
        self._flow.live_head[stmt] = head.intersection(self._flow.assigned[stmt])
        return head | before


def names_of(target: ast.expr, *, items: bool = True) -> Iterator[str]:
    """Return the names that an assignment to a target binds, in order; with `items`, `x` for `x[i]`
    too, which gets a new value though Python does not bind it."""
    pending = [target]
    while pending:
        match pending.pop():
            case ast.Name(id=name):
                yield name
            case ast.Subscript() as target if items and (name := root_of(target)) is not None:
                yield name
            case ast.Tuple(elts=elts) | ast.List(elts=elts):
                pending += reversed(elts)
            case _:
                pass


def root_of(target: ast.expr) -> str | None:
    """Return the name of which a target is, or is an item: `x` for `x`, `x[i]` and `x[i][j]`."""
    while isinstance(target, ast.Subscript):
        target = target.value
    return target.id if isinstance(target, ast.Name) else None


def bound_by(stmt: ast.stmt, *, items: bool = True) -> Iterator[str]:
    """Return the names that a statement itself binds anew, in order."""
    match stmt:
        case ast.Assign(targets=targets):
            for target in targets:
                yield from names_of(target, items=items)
            if items and (name := changed_list(stmt)) is not None:
                yield name
        case ast.AugAssign(target=target) | ast.For(target=target):
            yield from names_of(target, items=items)
        case ast.AnnAssign(target=target, value=value) if value is not None:
            yield from names_of(target, items=items)
        case ast.FunctionDef(name=name):
            yield name
        case ast.Expr() if items and (name := changed_list(stmt)) is not None:
            yield name
        case ast.Match(cases=cases):
            for case in cases:
                yield from captures(case.pattern)
        case _:
            pass


def annotated_names(node: ast.FunctionDef) -> frozenset[str]:
    """Return the names that annotations anywhere in a function mention, also in text."""
    texts: list[str] = []
    for part in ast.walk(node):
        match part:
            case ast.arg(annotation=ast.expr() as found) | ast.AnnAssign(annotation=found):
                texts.append(ast.unparse(found))
            case ast.FunctionDef(returns=ast.expr() as found):
                texts.append(ast.unparse(found))
            case _:
                pass
    return frozenset(word for text in texts for word in _WORD.findall(text))


_WORD: Final = re.compile(r"[^\W\d]\w*")


def attributes_read(node: ast.FunctionDef) -> frozenset[str]:
    """Return the names whose attributes are read anywhere in a function."""
    return frozenset(
        n.value.id
        for n in ast.walk(node)
        if isinstance(n, ast.Attribute) and isinstance(n.value, ast.Name)
    )


def captures(pattern: ast.pattern) -> Iterator[str]:
    """Return the names that a pattern binds, in order; those of an or-pattern again and again."""
    pending: list[ast.AST] = [pattern]
    while pending:
        current = pending.pop()
        if isinstance(current, ast.MatchAs | ast.MatchStar) and current.name is not None:
            yield current.name
        if isinstance(current, ast.pattern):
            pending += reversed(list(ast.iter_child_nodes(current)))


def leaves(stmt: ast.stmt) -> bool:
    """Return whether control never goes on after a simple statement."""
    return bool(_exit(stmt))


def is_never(stmt: ast.stmt) -> bool:
    """Return whether a statement asserts that control never reaches it: a call of
    `assert_never`."""
    match stmt:
        case ast.Expr(value=ast.Call(func=ast.Name(id=name) | ast.Attribute(attr=name))):
            return name == "assert_never"
        case _:
            return False


CHANGES: Final = frozenset(
    {"append", "clear", "extend", "insert", "pop", "remove", "reverse", "sort"}
)
"""The methods of lists that change them."""


def changed_list(stmt: ast.stmt) -> str | None:
    """Return the name whose list a statement such as `xs.append(x)` or `x = xs.pop()` changes."""
    match stmt:
        case (
            ast.Expr(ast.Call(func=ast.Attribute(value=ast.Name(id=name), attr=change)))
            | ast.Assign(value=ast.Call(func=ast.Attribute(value=ast.Name(id=name), attr=change)))
        ):
            only_pops = isinstance(stmt, ast.Assign)
            return name if change in (("pop",) if only_pops else CHANGES) else None
        case _:
            return None


def statements_in(body: Sequence[ast.stmt]) -> Iterator[ast.stmt]:
    """Return the statements and all inside them, nested functions not entered, in order."""
    pending = list(reversed(body))
    while pending:
        stmt = pending.pop()
        yield stmt
        if isinstance(stmt, Compound):
            for body in reversed(bodies(stmt)):
                pending += reversed(body)


def all_statements(body: Sequence[ast.stmt]) -> Iterator[ast.stmt]:
    """Return the statements and all inside them, whatever they are, nested functions included."""
    pending: list[ast.AST] = list(reversed(body))
    while pending:
        node = pending.pop()
        if isinstance(node, ast.stmt):
            yield node
        pending += reversed(list(inner_statements(node)))


def inner_statements(node: ast.AST) -> Iterator[ast.AST]:
    """Return the direct parts of a statement: statements, handlers, cases."""
    for field_name in _BODIES:
        yield from getattr(node, field_name, ())


_BODIES: Final = ("body", "handlers", "cases", "orelse", "finalbody")


def assigned_in(body: Sequence[ast.stmt]) -> Iterator[str]:
    """Return the names bound anywhere in a body, in order, repeats included."""
    for stmt in statements_in(body):
        yield from bound_by(stmt, items=False)


def nested_in(node: ast.FunctionDef) -> list[ast.FunctionDef]:
    """Return the functions defined inside a function, to any depth."""
    return [s for s in all_statements(node.body) if isinstance(s, ast.FunctionDef)]


def parameters_of(function: Nested) -> list[str]:
    """Return the names of a function's parameters, in order."""
    return [a.arg for a in parameter_nodes(function.args)]


def locals_of(function: Nested) -> Names:
    """Return the names local to a function: its parameters, and all that it assigns."""
    parameters = parameters_of(function)
    if isinstance(function, ast.Lambda):
        return frozenset(parameters)
    return frozenset((*parameters, *assigned_in(function.body)))


def reads(node: ast.AST) -> Names:
    """Return the names read by a statement or expression; by a nested function, those it
    captures."""
    found: set[str] = set()
    pending: list[tuple[ast.AST, Names]] = [(node, NONE)]
    while pending:
        current, hidden = pending.pop()
        if isinstance(current, ast.FunctionDef | ast.Lambda):
            pending += ((d, hidden) for d in defaults_of(current))
            hidden = hidden | locals_of(current)
            body = [current.body] if isinstance(current, ast.Lambda) else current.body
            pending += ((child, hidden) for child in body)
            continue
        found.update(n for n in _read_here(current) if n not in hidden)
        pending += ((child, hidden) for child in _read_parts(current))
    if isinstance(node, ast.FunctionDef):
        found.discard(node.name)
    return frozenset(found)


def defaults_of(function: Nested) -> Iterable[ast.expr]:
    """Return the default values of a function's parameters."""
    args = function.args
    return [d for d in (*args.defaults, *args.kw_defaults) if d is not None]


def _read_here(node: ast.AST) -> Iterator[str]:
    match node:
        case ast.Name(id=name, ctx=ast.Load()):
            yield name
        case ast.AugAssign(target=ast.Name(id=name)):
            yield name
        case ast.Subscript(value=ast.Name(id=name), ctx=ast.Store()):
            yield name
        case _:
            pass


def _read_parts(node: ast.AST) -> Iterator[ast.AST]:
    if isinstance(node, ast.AnnAssign):
        yield node.target
        yield from () if node.value is None else (node.value,)
    else:
        yield from ast.iter_child_nodes(node)


def has_break(body: Sequence[ast.stmt]) -> bool:
    """Return whether a loop's body holds a `break` of that loop."""
    pending = list(body)
    while pending:
        match pending.pop():
            case ast.Break():
                return True
            case ast.If() | ast.Match() as stmt:
                pending += (s for part in bodies(stmt) for s in part)
            case ast.For(orelse=after) | ast.While(orelse=after):
                pending += after
            case _:
                pass
    return False
