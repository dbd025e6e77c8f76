"""Aliasing: which old contents of references can be read once the references are written.

A variable *aliases* the contents of a reference to parameters if its value was read from there, or
may share storage with what was. References are distinguished by type only. Contents of a type are
unaliased unless a variable aliases them after a write to such a reference, or they escape.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import deque
from collections.abc import Callable, Container, Iterable, Sequence
from typing import Final, final

from ..ir.calls.storage import makes_storage
from ..ir.effect import effects_of
from ..ir.expr import (
    Call,
    Constructor,
    Expr,
    Function,
    GlobalVar,
    If,
    LetBlock,
    Match,
    RefCreate,
    RefRead,
    RefWrite,
    Transform,
    Tuple,
    TupleGet,
    Var,
    type_of,
)
from ..ir.memo import remembered
from ..ir.module import Module
from ..ir.op import Effect, Op
from ..ir.traverse import Steps, children, post_order, run, spine
from ..ir.types import Type
from .call_graph import reachable
from .sharing import Sharing, sharing_of

_NOTHING: Final[frozenset[Type]] = frozenset()


@final
class RefAliasing:
    """Where values read from cells whose contents have one of `types` go, in a whole module.

    `lost` are the types of values that may have escaped. The writes in `in_place` put the current
    contents of their cells back, so they make no alias.
    """

    def __init__(
        self,
        module: Module,
        types: frozenset[Type],
        opaque: Callable[[Op], bool],
        in_place: Container[Expr] = (),
    ) -> None:
        self.lost: Final[set[Type]] = set()
        self.place: Final[dict[Expr, int]] = {}
        """When each write happens, counted in the order of evaluation."""
        self._module: Final = module
        self._types: Final = types
        self._opaque: Final = opaque
        self._in_place: Final = in_place
        self._effects: Final = effects_of(module)
        self._sharing: Final = sharing_of(module, opaque)
        self._contents: Final[dict[Var, frozenset[Type]]] = {}
        self._bound: Final[dict[Var, int]] = {}
        self._last: Final[dict[Var, int]] = {}
        self._unit: Final[dict[Var, Function]] = {}
        self._writes: Final[dict[Type | None, list[int]]] = {}
        self._now = 0
        self._waiting: Final = deque(module.functions.values())
        while self._waiting:
            self._here = self._waiting.popleft()
            run(self._body(self._here.body, None))

    def by(self, atom: Expr) -> frozenset[Type]:
        """Return the types of contents that an atom may share storage with."""
        return self._contents.get(atom, _NOTHING) if isinstance(atom, Var) else _NOTHING

    def use_at(self, var: Var, place: int) -> None:
        """Note that a variable will be used at a place where it was not before."""
        self._last[var] = max(self._last.get(var, 0), place)

    def settle(self) -> None:
        """Lose the types whose old contents are read after a write."""
        anywhere = self._writes.get(None, [])
        for var, types in self._contents.items():
            bound, last = self._bound[var], self._last.get(var, 0)
            for ty in types - self.lost:
                times = (anywhere, self._writes.get(ty, []))
                if any(_has_between(t, bound, last) for t in times):
                    self.lost.add(ty)

    # One function after the other; those inside come after those around them.

    def _body(self, body: Expr, target: Var | None) -> Steps[None]:
        blocks, tail = spine(body)
        for block in blocks:
            for binding in block.bindings:
                yield self._value(binding.value, binding.var)
        yield self._value(tail, target)

    def _value(self, value: Expr, target: Var | None) -> Steps[None]:
        self._now += 1
        if target is not None:
            self._unit.setdefault(target, self._here)
            self._bound.setdefault(target, self._now)
        match value:
            case Function():
                self._waiting.append(value)
            case If(condition, then, otherwise):
                self._use(condition)
                yield self._body(then, target)
                yield self._body(otherwise, target)
            case Match(scrutinee, clauses):
                self._lose_all((scrutinee,))
                for clause in clauses:
                    if clause.guard is not None:
                        yield self._body(clause.guard, None)
                    yield self._body(clause.body, target)
            case LetBlock():
                yield self._body(value, target)
            case _:
                self._simple(value, target)

    def _simple(self, value: Expr, target: Var | None) -> None:
        match value:
            case RefRead() | RefWrite() | RefCreate():
                self._cell(value, target)
            case Call(Op() as op, args):
                self._operator(op, args, target)
            case Call(GlobalVar(name), args) if not self._may_write(value, name):
                self._function(self._sharing[name], args, target)
            case Call():
                self._lose_all(children(value))
                if self._effects.of(value) & Effect.STATE:
                    self._writes.setdefault(None, []).append(self._now)
            case Tuple() | TupleGet() | Var():
                for part in children(value) or (value,):
                    self._use(part)
                    self._hold(target, self.by(part))
            case Transform():
                self.lost.update(self._types)
            case _:
                self._lose_all(children(value))

    def _may_write(self, call: Call, name: str) -> bool:
        """Return whether a call of a global function may write a cell: then it might read an
        argument after that, which shares storage with what was there."""
        if not self._effects.of(call) & Effect.STATE:
            return False
        functions = self._module.functions
        return any(_writes_state(functions[n]) for n in reachable(functions, [name]))

    def _cell(self, value: RefRead | RefWrite | RefCreate, target: Var | None) -> None:
        match value:
            case RefRead(ref):
                self._use(ref)
                self._hold(target, self._types & {type_of(value)})
            case RefWrite(ref, content):
                self._use(ref)
                if value not in self._in_place:
                    self._lose_all((content,))
                self.place[value] = self._now
                self._writes.setdefault(type_of(content), []).append(self._now)
            case RefCreate(content):
                self._lose_all((content,))
                self.lost.add(type_of(content))

    def _operator(self, op: Op, args: Sequence[Expr], target: Var | None) -> None:
        shares = self._opaque(op) or not makes_storage(op)
        for arg in args:
            self._use(arg)
            if shares:
                self._hold(target, self.by(arg))
        if op.effect & (Effect.STATE | Effect.IO):
            self._lose_all(args)  # it may keep what it is given

    def _function(self, sharing: Sharing, args: Sequence[Expr], target: Var | None) -> None:
        for place, arg in enumerate(args):
            self._use(arg)
            if place in sharing.result:
                self._hold(target, self.by(arg))
        self._lose_all(args[place] for place in sharing.escaping)

    def _hold(self, target: Var | None, types: frozenset[Type]) -> None:
        """Note that a variable holds contents; the caller of a function holds its result."""
        if target is None:
            self.lost.update(types)
        elif types:
            self._contents[target] = self._contents.get(target, _NOTHING) | types

    def _use(self, atom: Expr) -> None:
        if isinstance(atom, Function):
            self._waiting.append(atom)
        types = self.by(atom)
        if not types:
            return
        assert isinstance(atom, Var)
        if self._unit[atom] is self._here:
            self._last[atom] = self._now
        else:
            self.lost.update(types)

    def _lose_all(self, atoms: Iterable[Expr]) -> None:
        for atom in atoms:
            if isinstance(atom, Function):
                self._waiting.append(atom)
            self.lost.update(self.by(atom))


@remembered
def _writes_state(function: Function) -> bool:
    """Return whether a function itself may write a cell, or calls what is not known."""
    for node in post_order(function.body):
        match node:
            case RefWrite():
                return True
            case Call(Op(effect=effect)) if effect & Effect.STATE:
                return True
            case Call(callee) if not isinstance(callee, Op | GlobalVar | Constructor):
                return True
            case _:
                pass
    return False


def _has_between(times: list[int], first: int, last: int) -> bool:
    """Return whether one of the ascending times lies strictly between two others."""
    index = bisect_right(times, first)
    return index < len(times) and times[index] < last
