"""Summaries of the aliases between functions and their parameters (`sharing.py`), from their
source.

Recursive functions share the least that their text allows, so what is known of all functions that
one reaches is computed together, until nothing changes.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, TypeAlias, final

from ...ir.traverse import Steps, run
from ...ir.types import AdtType, FnType, Type, TypeHole, TypeVar, subtypes
from ..program.families import methods_named
from ..program.program import SourceProgram
from ..source.definition import Definition, meaning
from ..source.flow import captures, changed_list, locals_of, names_of, parameters_of, reads, root_of
from ..source.scope import MISSING
from ..source.sharing import (
    FRESH,
    Called,
    CallSharing,
    Share,
    Sharing,
    Unit,
    anything,
    copied,
    element,
    inside,
    shares,
    stored_by_call,
)
from ..source.unions import may_be_field

_State: TypeAlias = dict[str, Sharing]


def units_called(
    program: SourceProgram,
    definition: Definition,
    node: ast.Call,
    known: Any,
    seen: Mapping[str, Any],
    *,
    lists: bool,
) -> list[Unit]:
    """Return the functions that a call in a definition may be of, as far as their text is known:
    one, or methods of one name of the classes in sight."""
    found = meaning(known)
    if isinstance(found, Definition):
        return [Unit(found, found.source.node, lists)]
    if known is not MISSING:
        return []
    match node.func:
        case ast.Attribute(attr=name):
            methods = methods_named(program, name, seen)
            return [Unit(m, m.source.node, lists) for m in methods]
        case ast.Name(id=name) if name in definition.local_functions:
            return [Unit(definition, definition.local_functions[name], lists)]
        case _:
            return []


def called(unit: Unit, node: ast.Call, known: Any, found: CallSharing) -> Called:
    """Return a function as a call of it takes its arguments."""
    owner, params = unit.definition.owner, parameters_of(unit.node)
    if owner is None or unit.node is not unit.definition.source.node:
        return Called(params, found)
    is_method = known is MISSING and isinstance(node.func, ast.Attribute)
    return Called(params[int(owner.takes_class) :], found, is_method and owner.takes_self)


def summary(program: SourceProgram, unit: Unit) -> CallSharing:
    """Return the aliases between a function, its parameters and its captures."""
    known = program.summaries
    if unit in known:
        return known[unit]
    units = [unit]
    found: dict[Unit, CallSharing] = {unit: CallSharing()}
    changed = True
    while changed:
        changed = False
        for each in units:  # grows on the way
            new = _Body(program, each, found, units).summary()
            changed = changed or new != found[each]
            found[each] = new
        units.reverse()  # callees first
    known.update(found)
    return found[unit]


@final
class _Body:
    """The body of a function, with what its names share."""

    def __init__(
        self, program: SourceProgram, unit: Unit, found: dict[Unit, CallSharing], units: list[Unit]
    ) -> None:
        self._program: Final = program
        self._unit: Final = unit
        self._found: Final = found
        self._units: Final = units
        self._whole: Final = unit.definition.source.node
        self._scope: Final = program.scope(unit.definition)
        self._own: Final = locals_of(unit.node)
        self._around: Final = unit.definition.local_names
        self._seen: Final = program.namespace(unit.definition)
        self.lists: Final = unit.lists
        self._names: _State | None = {n: frozenset({Share(n)}) for n in self._taken()}
        """The aliases at the walk's position; None where control does not arrive."""
        self._heads: Final[dict[ast.stmt, _State]] = {}
        """The aliases at the start of each round of a loop."""
        self._left: Final[list[_State | None]] = []
        """The aliases where rounds of the loops around are left."""
        self._result = FRESH
        self._stored = FRESH
        self._distinct = True

    def _taken(self) -> Iterable[str]:
        """Return the parameters that may take the value in question."""
        names = parameters_of(self._unit.node)
        if self._unit.node is not self._whole or not self.lists:
            return names
        types = {p.name: p.ty for p in self._program.signature(self._unit.definition).parameters}
        return [n for n in names if n not in types or may_hold(types[n])]

    # Names, for `shares`.

    def sharing(self, name: str) -> Sharing:
        if name in self._own:
            return (self._names or {}).get(name, FRESH)
        is_captured = name in self._around and self._unit.node is not self._whole
        return frozenset({Share(name)}) if is_captured else FRESH

    def known(self, node: ast.expr) -> Any:
        found = self._scope.value(node, self._around)
        return MISSING if isinstance(node, ast.Constant) else found

    def is_field(self, name: str) -> bool:
        return may_be_field(name, self._seen)

    def called(self, node: ast.Call) -> Sequence[Called]:
        function = node.func.value if isinstance(node.func, ast.Subscript) else node.func
        definition = self._unit.definition
        known = self.known(function)
        units = units_called(self._program, definition, node, known, self._seen, lists=self.lists)
        return [called(u, node, known, self._summary_of(u)) for u in units]

    def _summary_of(self, unit: Unit) -> CallSharing:
        if unit in self._program.summaries:
            return self._program.summaries[unit]
        if unit not in self._found:
            self._found[unit] = CallSharing()
            self._units.append(unit)
        return self._found[unit]

    # Statements.

    def summary(self) -> CallSharing:
        """Return the summary of the function, by the summaries so far of those that it calls."""
        run(self._block(self._unit.node.body))
        result = self._result if self._may_give() else FRESH
        return CallSharing(_without_locals(result), _without_locals(self._stored), self._distinct)

    def _may_give(self) -> bool:
        """Return whether the result may be the value in question."""
        is_whole = self._unit.node is self._whole
        signature = self._program.signature(self._unit.definition)
        result = signature.result if is_whole and self.lists else None
        return result is None or may_hold(result)

    def _block(self, body: Sequence[ast.stmt]) -> Steps[None]:
        for stmt in body:
            if self._names is None:
                return
            for call in calls_in(stmt):
                self._stored |= run(stored_by_call(self, call))
            yield self._statement(stmt, self._names)

    def _statement(self, stmt: ast.stmt, names: _State) -> Steps[None]:
        match stmt:
            case ast.If(body=then, orelse=otherwise):
                yield self._branches(names, [(then, {}), (otherwise, {})])
            case ast.Match(subject=subject, cases=cases):
                found = anything(self._shares(subject))
                arms = [(c.body, dict.fromkeys(captures(c.pattern), found)) for c in cases]
                yield self._branches(names, [*arms, ([], {})])
            case ast.For() | ast.While():
                yield self._loop(stmt, names)
            case ast.Break() | ast.Continue():
                self._left[-1] = _joined(self._left[-1], names)
                self._names = None
            case ast.Return(value=value):
                self._return(value)
                self._names = None
            case ast.Raise():
                self._names = None
            case _:
                self._bind(stmt, names)

    def _branches(
        self, before: _State, arms: Sequence[tuple[Sequence[ast.stmt], Mapping[str, Sharing]]]
    ) -> Steps[None]:
        after: _State | None = None
        for body, bound in arms:
            self._names = {**before, **bound}
            yield self._block(body)
            after = _joined(after, self._names)
        self._names = after

    def _loop(self, stmt: ast.For | ast.While, names: _State) -> Steps[None]:
        """Go through the rounds of a loop until they give names nothing new to share."""
        head = _joined(self._heads.get(stmt), names)
        while head is not None and head != self._heads.get(stmt):
            self._heads[stmt], self._names = head, dict(head)
            if isinstance(stmt, ast.For):
                found = anything(element(self._shares(stmt.iter)))
                self._names.update(dict.fromkeys(names_of(stmt.target), found))
            self._left.append(None)
            yield self._block(stmt.body)
            head = _joined(head, _joined(self._names, self._left.pop()))
        yield self._branches(dict(self._heads[stmt]), [(stmt.orelse, {}), ([], {})])

    def _return(self, value: ast.expr | None) -> None:
        if value is None:
            return
        self._result |= self._shares(value)
        seen: set[str] = set()
        for part in value.elts if isinstance(value, ast.Tuple) else [value]:
            shared = {s.name for s in self._shares(part)}
            self._distinct = self._distinct and not shared & seen
            seen |= shared
        is_display = isinstance(value, ast.Tuple)
        self._distinct = self._distinct and (is_display or not seen)

    def _shares(self, node: ast.expr) -> Sharing:
        return run(shares(self, node))

    def _bind(self, stmt: ast.stmt, names: _State) -> None:
        """Record what names share after a simple statement."""
        match stmt:
            case ast.Assign(targets=targets, value=value):
                found = self._shares(value)
                for target in targets:
                    self._give(target, found, names)
            case ast.AnnAssign(target=target, value=value) if value is not None:
                self._give(target, self._shares(value), names)
            case ast.AugAssign(target=target, value=value):
                added = copied(self._shares(value), lists=self.lists)
                _add(names, names_of(target), added)
                self._stored |= added if isinstance(target, ast.Attribute) else FRESH
            case ast.FunctionDef(name=name):
                captured = (self.sharing(n) for n in sorted(reads(stmt)))
                names[name] = inside(FRESH.union(*captured))
            case ast.Expr(ast.Call(args=[*_, value])) if (name := changed_list(stmt)) is not None:
                _add(names, [name], inside(self._shares(value)))
            case _:
                pass

    def _give(self, target: ast.expr, value: Sharing, names: _State) -> None:
        match target:
            case ast.Name(id=name):
                names[name] = value | {Share(_LOCAL + name)}
            case ast.Tuple() | ast.List():
                found = anything(element(value))
                names.update((n, found | {Share(_LOCAL + n)}) for n in names_of(target))
            case ast.Subscript() if (name := root_of(target)) is not None:
                _add(names, [name], inside(value))
            case ast.Attribute(value=ast.Name(id=name)):
                _add(names, [name], inside(value))
                self._stored |= inside(value)
            case _:
                self._stored |= inside(value)


_LOCAL: Final = "="
"""In front of the names of a function's own values, which show where a result has one twice."""


def _without_locals(sharing: Sharing) -> Sharing:
    return frozenset(s for s in sharing if not s.name.startswith(_LOCAL))


def _add(names: _State, changed: Iterable[str], sharing: Sharing) -> None:
    for name in changed:
        names[name] = names.get(name, FRESH) | sharing


def _joined(one: _State | None, other: _State | None) -> _State | None:
    """Return the aliases of names where two paths through a function meet; None for no path."""
    if one is None or other is None:
        return other if one is None else one
    return {n: one.get(n, FRESH) | other.get(n, FRESH) for n in {**one, **other}}


def calls_in(stmt: ast.stmt) -> Iterator[ast.Call]:
    """Return the calls in the expressions of a statement, those of inner statements and functions
    excepted."""
    pending: list[ast.AST] = [n for n in ast.iter_child_nodes(stmt) if isinstance(n, ast.expr)]
    while pending:
        node = pending.pop()
        if isinstance(node, ast.Call):
            yield node
        if not isinstance(node, ast.Lambda):
            pending += ast.iter_child_nodes(node)


def may_hold(ty: Type) -> bool:
    """Return whether a value of a type may be or hold a list."""
    return any(isinstance(p, _HOLDING) for p in subtypes(ty))


_HOLDING: Final[tuple[type[Type], ...]] = (AdtType, FnType, TypeVar, TypeHole)
