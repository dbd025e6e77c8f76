"""Where the values of a group of recursive functions go: the facts that `accumulators` decides by.

A *leaf* is a variable, or the result of a function, and a path into it: tuples are looked through.
A leaf is used in one of three ways: it is passed on unchanged, it is a term of a sum, or it is
used, which is everything else.
"""

from __future__ import annotations

from dataclasses import field
from typing import TYPE_CHECKING, Final, TypeAlias, final

from ...dataclass import dataclass
from ...ir.expr import (
    Binding,
    Call,
    Expr,
    Function,
    GlobalVar,
    If,
    LetBlock,
    Match,
    Tuple,
    TupleGet,
    Var,
)
from ...ir.traverse import children, free_globals, free_vars, spine
from ...operators.primitive.arithmetic import add
from ...operators.primitive.index import index_accumulate

if TYPE_CHECKING:
    from collections.abc import Mapping

Holder: TypeAlias = Var | str
"""A holder of a value: a variable, or a function for its result."""
Path: TypeAlias = tuple[int, ...]
Leaf: TypeAlias = tuple[Holder, Path]


@final
@dataclass(frozen=True, slots=True)
class FlowEdge:
    """How a value comes from one holder to another: whole, as field `into` of the other, or out of
    field `out_of` of the one."""

    source: Holder
    target: Holder
    into: int | None = None
    out_of: int | None = None

    def forward(self, path: Path) -> Path | None:
        """Return the path in the target of the value at a path of the source; None if it is not
        in."""
        if self.into is not None:
            return (self.into, *path)
        if self.out_of is not None:
            return path[1:] if path and path[0] == self.out_of else None
        return path

    def backward(self, path: Path) -> Path | None:
        """Return the path in the source of the value at a path of the target; None if it is not
        in."""
        if self.into is not None:
            return path[1:] if path and path[0] == self.into else None
        return path if self.out_of is None else (self.out_of, *path)


@final
@dataclass(slots=True, eq=False)
class SumFlow:
    """The flow of one group of functions."""

    group: Mapping[str, Function]
    steps_from: dict[Holder, list[FlowEdge]] = field(default_factory=dict[Holder, list[FlowEdge]])
    steps_to: dict[Holder, list[FlowEdge]] = field(default_factory=dict[Holder, list[FlowEdge]])
    sums_of: dict[Var, list[Var]] = field(default_factory=dict[Var, list[Var]])
    """For each variable the sums that it is a term of."""
    terms: dict[Var, tuple[Expr, Expr]] = field(default_factory=dict[Var, tuple[Expr, Expr]])
    """For each sum its two terms; the call itself stands for the rows that it adds to a table."""
    used: set[Holder] = field(default_factory=set[Holder])
    """The holders with any other use."""
    made: set[Holder] = field(default_factory=set[Holder])
    """The holders that may have a value from outside of the flow."""
    defined: dict[Expr, Expr] = field(default_factory=dict[Expr, Expr])
    calls: list[Call] = field(default_factory=list[Call])
    """The calls of functions of the group."""

    def step(self, step: FlowEdge) -> None:
        """Add a step."""
        self.steps_from.setdefault(step.source, []).append(step)
        self.steps_to.setdefault(step.target, []).append(step)


def flow_of(group: Mapping[str, Function]) -> SumFlow:
    """Return the flow of functions, in A-normal form, that call each other."""
    flow = SumFlow(group)
    for name, function in group.items():
        _Walk(flow).walk(function.body, name)
    return flow


@final
class _Walk:
    """Adds what one function does to a flow; an explicit stack, so nothing nests too deeply."""

    def __init__(self, flow: SumFlow) -> None:
        self._flow: Final = flow
        self._pending: Final[list[tuple[Expr, Holder]]] = []

    def walk(self, body: Expr, holder: Holder) -> None:
        """Walk a body whose value goes to a holder."""
        self._pending.append((body, holder))
        while self._pending:
            body, holder = self._pending.pop()
            blocks, end = spine(body)
            for block in blocks:
                for binding in block.bindings:
                    self._binding(binding)
            self._value(end, holder)

    def _binding(self, binding: Binding) -> None:
        self._flow.defined[binding.var] = binding.value
        self._value(binding.value, binding.var)

    def _value(self, value: Expr, holder: Holder) -> None:
        match value:
            case Var():
                self._flow.step(FlowEdge(value, holder))
            case Tuple(fields) if fields:
                for place, atom in enumerate(fields):
                    self._field(atom, holder, place)
            case TupleGet(Var() as source, index):
                self._flow.step(FlowEdge(source, holder, out_of=index))
            case If(condition, then, otherwise):
                self._use(condition)
                self._pending.extend(((then, holder), (otherwise, holder)))
            case Match():
                self._match(value, holder)
            case Call() if self._is_followed(value, holder):
                pass
            case _:
                self._use_all(value)
                self._flow.made.add(holder)

    def _match(self, node: Match, holder: Holder) -> None:
        self._use(node.value)
        for clause in node.clauses:
            self._pending.append((clause.body, holder))
            if clause.guard is not None:
                self._use_all(clause.guard)
        if node.partial:
            self._flow.made.add(holder)

    def _is_followed(self, call: Call, holder: Holder) -> bool:
        """Add a call of the group, or a sum; return whether it is one."""
        flow = self._flow
        match call:
            case Call(GlobalVar(name), args) if name in flow.group:
                flow.calls.append(call)
                for param, arg in zip(flow.group[name].params, args, strict=True):
                    self._field(arg, param, None)
                flow.step(FlowEdge(name, holder))
            case Call(callee, (left, right)) if callee is add and isinstance(holder, Var):
                flow.terms[holder] = (left, right)
                for term in (left, right):
                    if isinstance(term, Var):
                        flow.sums_of.setdefault(term, []).append(holder)
            case Call(callee, (Var() as table, *added)) if (
                callee is index_accumulate and isinstance(holder, Var)
            ):
                flow.terms[holder] = (table, call)
                flow.sums_of.setdefault(table, []).append(holder)
                for part in added:
                    self._use(part)
            case _:
                return False
        return True

    def _field(self, atom: Expr, holder: Holder, place: int | None) -> None:
        if isinstance(atom, Var):
            self._flow.step(FlowEdge(atom, holder, into=place))
        else:
            self._flow.made.add(holder)
            self._use(atom)

    def _use(self, atom: Expr) -> None:
        if isinstance(atom, Var):
            self._flow.used.add(atom)

    def _use_all(self, value: Expr) -> None:
        if isinstance(value, Function | LetBlock):
            inside: tuple[Expr, ...] = free_vars(value)
            named: tuple[str, ...] = free_globals(value)
        else:
            inside = children(value)
            named = tuple(p.name for p in inside if isinstance(p, GlobalVar))
        for part in inside:
            self._use(part)
        self._flow.used.update(n for n in named if n in self._flow.group)
