"""The plan for each function of a program, in Python of the host or in C.

A function is *in place* when it is only called directly, from one place outside itself, and its
calls of itself are all in tail position: its body stands at that place, in a `while` loop if it
calls itself. Every other function is a *unit*: a Python function. `deep.py` then finds the units
that may recurse.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import field
from typing import Final, final

from ..analysis.dim_availability import needed
from ..dataclass import dataclass
from ..dispatch.view import NOTHING, View
from ..ir.calls.storage import overwritten_operand
from ..ir.dims import Dim, DimOp
from ..ir.expr import (
    Call,
    Constructor,
    Expr,
    Flavour,
    Function,
    GlobalVar,
    If,
    LetBlock,
    Match,
    Var,
)
from ..ir.module import Module
from ..ir.op import Op
from ..ir.traverse import children
from ..operators.host.debugging import is_debugged


@final
@dataclass(slots=True, eq=False)
class CallSite:
    """A direct call: who makes it, and whether it is in tail position there."""

    call: Call
    caller: Planned
    is_tail: bool


@final
@dataclass(slots=True, eq=False)
class Planned:
    """A function and what the plan has found out about it."""

    function: Function
    name: str
    owner: Planned | None = None
    """The function around a local one."""
    escapes: bool = False
    sites: list[CallSite] = field(default_factory=list[CallSite])
    calls_unknown: bool = False
    place: CallSite | None = None
    """The call at which the body stands, of a function in place."""
    has_jumps: bool = False
    is_deep: bool = False
    needed_sizes: dict[Dim, None] = field(default_factory=dict[Dim, None])
    """Of a global function: the dims that attributes anywhere in it mention."""

    @property
    def home(self) -> Planned:
        """The global function it stands in."""
        planned = self
        while planned.owner is not None:
            planned = planned.owner
        return planned

    def way_in(self, site: CallSite) -> bool | None:
        """Return, for a call from inside itself, whether it is in tail position; else None."""
        caller, is_tail = site.caller, site.is_tail
        while caller is not self:
            if caller.place is None:
                return None
            caller, is_tail = caller.place.caller, is_tail and caller.place.is_tail
        return is_tail


@final
class FunctionPlan:
    """The functions that a program reaches from its entry, and what each becomes."""

    def __init__(self, module: Module, entry: str, view: View = NOTHING) -> None:
        """Calls of operators in `view` are dispatched."""
        self.module: Final = module
        self.view: Final = view
        self.by_global: Final[dict[str, Planned]] = {}
        self.by_var: Final[dict[Var, Planned]] = {}
        self.by_function: Final[dict[Function, Planned]] = {}
        self.updates: bool = False
        """Whether an operator in it could write into one of its operands."""
        self._pending: Final[list[tuple[Expr, Planned, bool]]] = []
        self.entry: Final = self._global(entry)
        while self._pending:
            self._visit(*self._pending.pop())
        self._place()

    def functions(self) -> Iterator[Planned]:
        """Return all functions, in order of discovery."""
        yield from self.by_function.values()

    def callee(self, call: Call) -> Planned | None:
        """Return the function that a call names, if it names one."""
        match call.callee:
            case GlobalVar(name):
                return self.by_global[name]
            case Var():
                return self.by_var.get(call.callee)
            case _:
                return None

    def unit_of(self, planned: Planned) -> Planned:
        """Return the Python function in which a function's body stands."""
        while planned.place is not None:
            planned = planned.place.caller
        return planned

    def _global(self, name: str) -> Planned:
        if name not in self.by_global:
            function = self.module.functions[name]
            planned = Planned(function, name)
            self.by_global[name] = self.by_function[function] = planned
            self._pending.append((function.body, planned, True))
        return self.by_global[name]

    def _local(self, function: Function, owner: Planned, var: Var | None) -> Planned:
        hint = function.name or (var.name if var is not None else "function")
        planned = Planned(function, hint, owner=owner)
        self.by_function[function] = planned
        if var is not None:
            self.by_var[var] = planned
        self._pending.append((function.body, planned, True))
        return planned

    def _visit(self, expr: Expr, owner: Planned, is_tail: bool) -> None:
        match expr:
            case Var():
                if expr in self.by_var:
                    self.by_var[expr].escapes = True
            case GlobalVar(name):
                self._global(name).escapes = True
            case Function():
                self._local(expr, owner, None).escapes = True
            case LetBlock():
                self._visit_block(expr, owner, is_tail)
            case If(condition, then, otherwise):
                self._pending.extend(((otherwise, owner, is_tail), (then, owner, is_tail)))
                self._pending.append((condition, owner, False))
            case Match():
                self._visit_match(expr, owner, is_tail)
            case Call():
                self._visit_call(expr, owner, is_tail)
            case _:
                self._pending.extend((c, owner, False) for c in reversed(children(expr)))

    def _visit_match(self, node: Match, owner: Planned, is_tail: bool) -> None:
        for clause in reversed(node.clauses):
            self._pending.append((clause.body, owner, is_tail))
            if clause.guard is not None:
                self._pending.append((clause.guard, owner, False))
        self._pending.append((node.value, owner, False))

    def _visit_block(self, block: LetBlock, owner: Planned, is_tail: bool) -> None:
        self._pending.append((block.body, owner, is_tail))
        for binding in reversed(block.bindings):
            if isinstance(binding.value, Function):
                self._local(binding.value, owner, binding.var)
            else:
                assert block.flavour is not Flavour.REC
                self._pending.append((binding.value, owner, False))

    def _visit_call(self, call: Call, owner: Planned, is_tail: bool) -> None:
        for arg in reversed(call.args):
            self._pending.append((arg, owner, False))
        match call.callee:
            case Op() as op:
                self.updates = self.updates or overwritten_operand(op) is not None
                for dim in needed(call):
                    _add_parts(owner.home.needed_sizes, dim)
            case Constructor():
                pass
            case GlobalVar(name):
                self._global(name).sites.append(CallSite(call, owner, is_tail))
            case Var() as var if var in self.by_var:
                self.by_var[var].sites.append(CallSite(call, owner, is_tail))
            case callee:
                owner.calls_unknown = True
                self._pending.append((callee, owner, False))

    def _place(self) -> None:
        """Decide which functions stand in place; those inside first, until nothing changes."""
        candidates = [p for p in self.functions() if p.owner is not None and not p.escapes]
        if is_debugged(self.module):  # functions of the source have frames of their own
            candidates = [p for p in candidates if not p.function.name]
        changed = True
        while changed:
            changed = False
            for planned in reversed(candidates):
                if planned.place is None and self._fits_in_place(planned):
                    changed = True
        for planned in self.functions():
            planned.has_jumps = any(planned.way_in(s) is True for s in planned.sites)

    def _fits_in_place(self, planned: Planned) -> bool:
        inside = [planned.way_in(s) for s in planned.sites]
        outside = [s for s, way in zip(planned.sites, inside, strict=True) if way is None]
        if False in inside or len(outside) != 1:
            return False
        planned.place = outside[0]
        return True


def _add_parts(needed: dict[Dim, None], dim: Dim) -> None:
    """Add a dim and the names and operations that it can be computed from."""
    pending = [dim]
    while pending:
        current = pending.pop()
        if current.constant is not None or current in needed:
            continue
        needed[current] = None
        for monomial, _ in current.terms:
            for atom in monomial:
                pending.append(Dim.atom(atom))
                if isinstance(atom, DimOp):
                    pending += (atom.left, atom.right)
