"""Rows that die as a loop goes on, in whose room it makes rows of its own.

A loop saves rows in the nodes of a list, and another loop walks over these from the last to the
first: a gradient. What a node has for its own round alone is dead in the next round, so the rows
that the walk makes take the room of those that it has left behind. This file finds which fields of
the nodes these are: values that a kernel makes, that nothing but kernels of the same round and the
node have, and of which the walk, which there is one of, passes none on.

The loop that saves them may read a row of a tensor in each round, such as a product for all rounds
that stands before the loop. Where nothing else needs that tensor, the rows that are saved take the
room of the row of the round before.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final, final

from ...dataclass import dataclass
from ...ir.bounds import at_most
from ...ir.dims import ZERO
from ...ir.expr import (
    BindPattern,
    Call,
    Constant,
    Constructor,
    ConstructorPattern,
    Expr,
    If,
    LetBlock,
    Match,
    Tuple,
    TupleGet,
    Var,
    Wildcard,
    type_of,
)
from ...ir.traverse import Steps, free_vars, post_order, run, spine
from ...ir.types import AdtType, TensorType, TupleType, Type, subtypes
from ...kernels.cost import size_of
from ...kernels.function_plan import FunctionPlan, Planned
from .c_types import is_tensor
from .rounds import Counting, rounds_of
from .views import Row, row_of


@final
@dataclass(frozen=True, slots=True)
class Ahead:
    """A tensor that a loop reads row by row: the variable that nothing else uses, and the parameter
    of the loop that has it."""

    made: Var
    param: Var


@final
@dataclass(frozen=True, slots=True)
class Dying:
    """The loop that makes nodes, by a call of a constructor, the one that walks over them, the
    fields of a node that die with it, and the tensor in whose room they may be made."""

    maker: Planned
    walker: Planned
    node: Call
    fields: tuple[int, ...]
    ahead: Ahead | None


@final
@dataclass(eq=False, slots=True)
class _Made:
    """A value that is no tuple; `by_kernel` says that a kernel has made it."""

    by_kernel: bool = False


def find_dying(plan: FunctionPlan, is_kernel: Callable[[Planned], bool]) -> Mapping[Planned, Dying]:
    """Return what dies, by the loops that make and that walk."""
    own = [p for p in plan.functions() if not is_kernel(p)]
    nodes: dict[tuple[str, str], list[tuple[Planned, Call]]] = {}
    walks: dict[str, list[tuple[Planned, ConstructorPattern]]] = {}
    for planned in own:
        for node in post_order(planned.function.body):
            if isinstance(node, Call) and isinstance(node.callee, Constructor):
                name = (node.callee.adt, node.callee.name)
                nodes.setdefault(name, []).append((planned, node))
            for pattern in _opened(node):
                walks.setdefault(pattern.adt, []).append((planned, pattern))
    found: dict[Planned, Dying] = {}
    for (adt, name), made in nodes.items():
        met = walks.get(adt, [])
        if len(made) != 1 or len(met) != 1 or met[0][1].name != name:
            continue
        (maker, node), (walker, pattern) = made[0], met[0]
        if not _is_walked_once(plan, own, adt, maker, walker):
            continue
        uses = (_Uses(plan, is_kernel, maker, node), _Uses(plan, is_kernel, walker, None))
        dying = _dying(uses, Dying(maker, walker, node, (), None), pattern)
        if dying.fields:
            found |= {maker: dying, walker: dying}
    return found


def _opened(node: Expr) -> Iterator[ConstructorPattern]:
    """Yield the patterns by which a node of the program reads the fields of data."""
    for clause in node.clauses if isinstance(node, Match) else ():
        if isinstance(clause.pattern, ConstructorPattern) and clause.pattern.fields:
            yield clause.pattern


def _dying(uses: tuple[_Uses, _Uses], loops: Dying, pattern: ConstructorPattern) -> Dying:
    """Return what dies of the nodes of two loops."""
    fields = tuple(_dying_fields(*uses, loops.node, pattern))
    ahead = _ahead(loops.maker, uses[0]) if fields else None
    fitting = () if ahead is None else _fitting(fields, loops.node, row_type(ahead.param))
    if not fitting:
        return replace(loops, fields=fields)
    return replace(loops, fields=fitting, ahead=ahead)


def row_type(var: Var) -> TensorType:
    """Return the type of the rows of a tensor."""
    ty = type_of(var)
    assert isinstance(ty, TensorType)
    return TensorType(ty.shape[1:], ty.dtype)


def _fitting(fields: Sequence[int], node: Call, row: TensorType) -> tuple[int, ...]:
    """Return as many fields as certainly fit into a row, if they fill half of it."""
    found: list[int] = []
    filled = ZERO
    for field in fields:
        more = filled + size_of(type_of(node.args[field]))
        if at_most(more, size_of(row)):
            found.append(field)
            filled = more
    return tuple(found) if at_most(size_of(row), filled + filled) else ()


def _ahead(maker: Planned, uses: _Uses) -> Ahead | None:
    """Return the tensor that a loop, which has been read, reads row by row, from the first on."""
    around = uses.plan.entry
    calls = [s.call for s in maker.sites if s.caller is maker]
    (making,) = (s for s in maker.sites if s.caller is not maker)
    rounds = rounds_of(maker.function, calls)
    if making.caller is not around or rounds is None or not isinstance(rounds.way, Counting):
        return None
    params = maker.function.params
    at = rounds.way.at
    start = making.call.args[params.index(at)]
    if not isinstance(start, Constant) or start.value != 0:
        return None
    blocks, end = spine(around.function.body)
    bindings = [b for block in blocks for b in block.bindings]
    for param, arg in zip(params, making.call.args, strict=True):
        users = [b for b in bindings if isinstance(arg, Var) and arg in free_vars(b.value)]
        made = next((b.value for b in bindings if b.var is arg), None)
        if not isinstance(arg, Var) or made is None or not uses.is_made_by_kernel(made):
            continue
        is_passed_on = making.call.args.count(arg) > 1 or arg in free_vars(end)
        if len(users) == 1 and not is_passed_on and uses.reads_rows(param, at):
            return Ahead(arg, param)
    return None


def _has(ty: Type, adt: str) -> bool:
    return any(isinstance(part, AdtType) and part.name == adt for part in subtypes(ty))


def _is_walked_once(
    plan: FunctionPlan, own: Iterable[Planned], adt: str, maker: Planned, walker: Planned
) -> bool:
    """Return whether each list is made by one loop, walked over by another one, once, and nowhere
    else: the result of the first goes to the second on the one way through a function."""
    if maker is walker:
        return False
    for name, definition in plan.module.adts.items():
        if name != adt and any(_has(f, adt) for f in definition.fields):
            return False
    for planned in own:
        count = sum(_has(type_of(p), adt) for p in planned.function.params)
        if count != (planned in (maker, walker)):
            return False
    if _has(type_of(walker.function.body), adt):
        return False
    entries = [[s for s in p.sites if s.caller is not p] for p in (maker, walker)]
    if any(len(sites) != 1 for sites in entries):
        return False
    (making,), (walking,) = entries
    around = making.caller
    if around is not walking.caller:
        return False
    return _goes_to(around, making.call, walking.call, adt)


def _goes_to(around: Planned, making: Call, walking: Call, adt: str) -> bool:
    """Return whether a function passes the list in the result of one call to another one, and does
    nothing else with it."""
    blocks, end = spine(around.function.body)
    bindings = [b for block in blocks for b in block.bindings]
    whole = next((b.var for b in bindings if b.value is making), None)
    if whole is None or not any(b.value is walking for b in bindings):
        return False
    parts = [whole]
    if isinstance(type_of(whole), TupleType):
        uses = [b for b in bindings if whole in free_vars(b.value)]
        if whole in free_vars(end) or not all(isinstance(b.value, TupleGet) for b in uses):
            return False
        parts = [b.var for b in uses if _has(type_of(b.var), adt)]
    if len(parts) != 1 or parts[0] in free_vars(end):
        return False
    users = [b.value for b in bindings if parts[0] in free_vars(b.value)]
    if whole is parts[0]:
        users = [u for u in users if u is not making]
    return users == [walking] and walking.args.count(parts[0]) == 1


def _dying_fields(
    made: _Uses, read: _Uses, node: Call, pattern: ConstructorPattern
) -> Iterator[int]:
    run(made.round())
    run(read.round())
    if len(made.nodes) != 1:
        return
    (saved,) = made.nodes
    for index, (value, part) in enumerate(zip(saved, pattern.fields, strict=True)):
        is_own = isinstance(value, _Made) and value.by_kernel and saved.count(value) == 1
        if not is_own or value in made.kept or not is_tensor(type_of(node.args[index])):
            continue
        seen = read.values.get(part.var) if isinstance(part, BindPattern) else None
        if isinstance(part, Wildcard) or (seen is not None and seen not in read.kept):
            yield index


@final
class _Uses:
    """The values of one round of a loop, and which of them live longer than it, or may."""

    def __init__(
        self,
        plan: FunctionPlan,
        is_kernel: Callable[[Planned], bool],
        loop: Planned,
        node: Call | None,
    ) -> None:
        """`node` is the call that makes a node."""
        self.plan: Final = plan
        self._is_kernel: Final = is_kernel
        self._loop: Final = loop
        self._node: Final = node
        self._around: Final = [loop]
        self.values: Final[dict[Var, Any]] = {}
        self.kept: Final[set[_Made]] = set()
        self.nodes: Final[list[list[Any]]] = []
        """The fields of the node that the round makes."""
        self._read: Final[set[Any]] = set()
        self._rows: Final[list[tuple[Call, Row, Any]]] = []

    def is_made_by_kernel(self, value: Expr) -> bool:
        """Return whether a value is a new tensor that a kernel makes."""
        callee = self.plan.callee(value) if isinstance(value, Call) else None
        return callee is not None and self._is_kernel(callee) and row_of(callee.function) is None

    def reads_rows(self, param: Var, at: Var) -> bool:
        """Return whether all that a round does with a tensor is to let kernels read the row at a
        place."""
        whole = self.values.get(param)
        rows = [r for r in self._rows if param in r[0].args]
        if whole is None or whole in self.kept or whole in self._read or len(rows) != 1:
            return False
        ((call, row, value),) = rows
        callee = self.plan.callee(call)
        assert callee is not None
        given: dict[Expr, Expr] = dict(zip(callee.function.params, call.args, strict=True))
        if given.get(row.source) is not param or [given.get(i) for i in row.indices] != [at]:
            return False
        return value not in self.kept and all(value not in node for node in self.nodes)

    def round(self) -> Steps[None]:
        """Read the body of the loop: its value is kept."""
        self._keep((yield self._value(self._loop.function.body)))

    def _value(self, expr: Expr) -> Steps[Any]:
        while isinstance(expr, LetBlock):
            for binding in expr.bindings:
                self.values[binding.var] = yield self._value(binding.value)
            expr = expr.body
        match expr:
            case Var():
                return self.values.setdefault(expr, _made(type_of(expr)))
            case Tuple(fields):
                return tuple((yield self._each(fields)))
            case TupleGet(whole, index):
                found = yield self._value(whole)
                return found[index] if isinstance(found, tuple) else self._unknown(expr, [found])
            case Call():
                return (yield self._call(expr))
            case If(condition, then, otherwise):
                return self._unknown(expr, (yield self._each((condition, then, otherwise))))
            case Match(value, clauses):
                guards = [c.guard for c in clauses if c.guard is not None]
                parts = (value, *(c.body for c in clauses), *guards)
                return self._unknown(expr, (yield self._each(parts)))
            case _:
                return self._unknown(expr, [self.values.get(v) for v in free_vars(expr)])

    def _each(self, parts: Iterable[Expr]) -> Steps[list[Any]]:
        found: list[Any] = []
        for part in parts:
            value = yield self._value(part)
            found.append(value)
        return found

    def _call(self, call: Call) -> Steps[Any]:
        args = yield self._each(call.args)
        callee = self.plan.callee(call)
        if call is self._node:
            self.nodes.append(args)
            return _Made()
        if callee is not None and callee is self._loop:
            pairs = zip(callee.function.params, call.args, args, strict=True)
            return self._unknown(call, [a for p, arg, a in pairs if arg is not p])
        if callee is None or callee in self._around:
            return self._unknown(call, args)
        if self._is_kernel(callee):
            row = row_of(callee.function)
            if row is None:
                self._read.update(a for a in args if isinstance(a, _Made))
                return _made(type_of(call), by_kernel=True)
            found = _Made()
            self._rows.append((call, row, found))
            for arg in args:
                if isinstance(arg, _Made) and arg.by_kernel:
                    self._keep(arg)
            return found
        self._around.append(callee)
        self.values.update(zip(callee.function.params, args, strict=True))
        found = yield self._value(callee.function.body)
        self._around.pop()
        return found

    def _unknown(self, expr: Expr, parts: Iterable[Any]) -> Any:
        """Return a value that may be made of parts, which are kept."""
        for part in parts:
            self._keep(part)
        found = _made(type_of(expr))
        self._keep(found)
        return found

    def _keep(self, value: Any) -> None:
        pending = [value]
        while pending:
            part = pending.pop()
            if isinstance(part, tuple):
                pending += part
            elif part is not None:
                self.kept.add(part)


def _made(ty: Type, *, by_kernel: bool = False) -> Any:
    if isinstance(ty, TupleType):
        return tuple([_made(f, by_kernel=by_kernel) for f in ty.fields])
    return _Made(by_kernel)
