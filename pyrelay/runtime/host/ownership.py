"""Which values a program owns: whether a call may write its result into an operand.

A value is owned by a variable if nothing else can ever read its storage once the variable is
dead: it was made here, or handed over by the variable that owned it before, as it died there. The
storage goes from hand to hand through tuples, arguments and results; the greatest solution of
these equations is the answer, so a loop's accumulator is owned in every round if it is in the
first, and in none if any round lets it go. The idea is that of uniqueness types, found instead of
declared: Barendsen and Smetsers, "Uniqueness typing for functional languages with graph rewriting
semantics", 1996.

A recursive function that overwrites a parameter may be entered with a value that is not owned.
The value is then copied once, where the function is entered from outside, instead of once a round.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, TypeAlias, final

from ...analysis.components import components
from ...ir.calls.storage import overwritten_operand
from ...ir.expr import Call, Var
from ...ir.op import Op
from ...ir.types import TensorType, TupleType, Type
from ...kernels.function_plan import FunctionPlan, Planned
from .liveness import Liveness, Region
from .uses import (
    Fields,
    Fresh,
    Part,
    RegionPoint,
    Result,
    Target,
    Unknown,
    UseKind,
    Uses,
    ValueOrigin,
    Whole,
)

Node: TypeAlias = tuple[Target, int | None]
"""A value, or a field of one."""


@final
class Ownership:
    """The values that the code of one program may overwrite, and those that it copies so that it
    may."""

    def __init__(self, plan: FunctionPlan, liveness: Callable[[Planned], Liveness]) -> None:
        self._uses: Final = Uses(plan, liveness)
        self._loops: Final = {
            liveness(plan.unit_of(p)).region(p.function) for p in plan.functions() if p.has_jumps
        }
        self._groups: Final = _groups(plan)
        self._given: Final[dict[Var, bool]] = {}
        self._params: Final = {v: p for p in plan.functions() for v in p.function.params}
        self._wanted: Final = self._wanted_params()
        self._owned: Final = self._solve()
        self._copies: Final = self._find_copies()
        self._allowed: Final = {
            call for call, place in self._uses.overwriting if self._is_allowed(call, place)
        }

    def may_overwrite(self, call: Call) -> bool:
        """Return whether the call may write its result into the operand that its operator names."""
        return call in self._allowed

    def copies(self, call: Call, operand: int) -> bool:
        """Return whether the call of a function passes a copy of an argument."""
        return (call, operand) in self._copies

    def _is_allowed(self, call: Call, place: RegionPoint) -> bool:
        var = _overwritten(call)
        if var is None or not self._owned.get((var, None), False):
            return False
        return call.args.count(var) == 1 and self._is_handed_over(var, place)

    # When a variable hands its value over.

    def _is_handed_over(self, var: Var, place: RegionPoint) -> bool:
        """Return whether nothing reads the value after a place at which the variable is used
        once."""
        if not self._is_giver(var) or not self._dies(var, place):
            return False
        return self._views_are_dead(var, place) and not self._is_used_inside(var, place)

    def _is_giver(self, var: Var) -> bool:
        """Return whether nothing aliases the value of the variable, until it is passed on once."""
        if var not in self._given:
            self._given[var] = self._gives(var)
        return self._given[var]

    def _gives(self, var: Var) -> bool:
        uses = self._uses.of.get(var, [])
        at = [u.place for u in uses]
        for use in uses:
            match use.kind:
                case UseKind.KEPT:
                    return False
                case UseKind.MOVE if not self._dies(var, use.place) or at.count(use.place) > 1:
                    return False
                case _:
                    pass
        return not any(var in p.live.captured for p in at)

    def _dies(self, var: Var, place: RegionPoint) -> bool:
        """Return whether a place is the last that uses a variable, each time it is bound."""
        region, position = place.region, place.position
        while position >= 0 and region.last.get(var) == position:
            if place.live.is_home(var, region):
                return True
            if region in self._loops or region.parent is None:
                return False
            position, region = region.position, region.parent
        return False

    def _views_are_dead(self, var: Var, place: RegionPoint) -> bool:
        """Return whether all that shares the storage of a variable was last read before a place."""
        pending, seen = [var], {var}
        while pending:
            for view in self._uses.views.get(pending.pop(), ()):
                if view in seen:
                    continue
                seen.add(view)
                pending.append(view)
                uses = self._uses.of.get(view, [])
                if any(u.kind is not UseKind.READ for u in uses):
                    return False
                if any(view in u.place.live.captured for u in uses):
                    return False
                if not self._is_dead(view, place):
                    return False
        return True

    def _is_used_inside(self, var: Var, place: RegionPoint) -> bool:
        """Return whether what is called at a place, and whose body stands there, uses a variable
        from around it, be it also an argument of the call."""
        for use in self._uses.of.get(var, []):
            region = use.place.region
            while region.parent is not None and region is not place.region:
                if region.parent is place.region and region.position == place.position:
                    return True
                region = region.parent
        return False

    def _is_dead(self, view: Var, place: RegionPoint) -> bool:
        chain: list[tuple[Region, int]] = []
        region: Region | None = place.region
        position = place.position - 1
        while region is not None:
            chain.append((region, position))
            if place.live.is_home(view, region):
                break
            position, region = region.position, region.parent
        else:
            return True  # bound in a run that is over
        if any(r in self._loops for r, _ in chain[:-1]):
            return False
        return all(r.last.get(view, -1) <= p for r, p in chain)

    # The equations.

    def _solve(self) -> dict[Node, bool]:
        owned: dict[Node, bool] = {}
        feeds: dict[Node, list[Node]] = {}
        lost: list[Node] = []
        for target, sources in self._uses.sources.items():
            for index in _indices(target):
                node = (target, index)
                owned[node] = True
                for source in sources:
                    if self._is_copied_on_entry(target, source):
                        continue
                    before = self._before(source, index)
                    if before is None:
                        lost.append(node)
                    elif before != node and not isinstance(before, bool):
                        feeds.setdefault(before, []).append(node)
        lost += [node for node in feeds if node not in owned]
        while lost:
            node = lost.pop()
            if owned.get(node, True):
                owned[node] = False
                lost += feeds.get(node, ())
        return owned

    def _before(self, source: ValueOrigin, index: int | None) -> Node | bool | None:
        """Return the value that must be owned for a source to be; True if it is, None if it cannot
        be."""
        match source:
            case Fresh():
                return True if index is None else None
            case Whole(var, place):
                taken = any(u.kind is UseKind.PART for u in self._uses.of[var])
                return (var, index) if not taken and self._is_handed_over(var, place) else None
            case Fields(found, place):
                var = None if index is None else found[index]
                if var is None or not self._is_handed_over(var, place):
                    return None
                return (var, None)
            case Part(var, at, place):
                return (var, at) if index is None and self._is_taken(var, at, place) else None
            case Result(function):
                return (function, index)
            case _:
                return None

    def _is_taken(self, var: Var, index: int, place: RegionPoint) -> bool:
        """Return whether taking a field of a tuple is all that is ever done with the field."""
        uses = self._uses.of[var]
        if not place.live.is_home(var, place.region) or var in place.live.captured:
            return False
        taken = [u.index if u.kind is UseKind.PART else None for u in uses]
        return None not in taken and taken.count(index) == 1

    # Copies on entry.

    def _wanted_params(self) -> set[Var]:
        """Return the parameters that are overwritten, here or by the functions they go to."""
        pending = [
            v
            for call, place in self._uses.overwriting
            if (v := _overwritten(call)) is not None and self._is_handed_over(v, place)
        ]
        found: set[Var] = set()
        while pending:
            var = pending.pop()
            if var in found or var not in self._params:
                continue
            found.add(var)
            given = [s for s in self._uses.sources.get(var, ()) if isinstance(s, Whole)]
            pending += [s.var for s in given if self._is_handed_over(s.var, s.place)]
        return found

    def _is_copied_on_entry(self, target: Target, source: ValueOrigin) -> bool:
        argument = _argument(source)
        if not isinstance(target, Var) or argument is None:
            return False
        if target not in self._wanted or not isinstance(target.ty, TensorType):
            return False
        callee = self._params[target]
        caller = self._uses.callers[argument[0]]
        is_recursive = any(self._groups[s.caller] == self._groups[callee] for s in callee.sites)
        return is_recursive and self._groups[caller] != self._groups[callee]

    def _find_copies(self) -> set[tuple[Call, int]]:
        found: set[tuple[Call, int]] = set()
        for target, sources in self._uses.sources.items():
            if not self._owned.get((target, None), False):
                continue
            for source in sources:
                argument = _argument(source)
                if argument is None or not self._is_copied_on_entry(target, source):
                    continue
                before = self._before(source, None)
                if not isinstance(before, tuple) or not self._owned.get(before, False):
                    found.add(argument)
        return found


def _argument(source: ValueOrigin) -> tuple[Call, int] | None:
    """Return the call and the operand that a source is, if it is one."""
    if isinstance(source, Whole | Unknown) and source.call is not None:
        return source.call, source.operand
    return None


def _overwritten(call: Call) -> Var | None:
    assert isinstance(call.callee, Op)
    place = overwritten_operand(call.callee)
    assert place is not None
    found = call.args[place]
    return found if isinstance(found, Var) else None


def _indices(target: Target) -> list[int | None]:
    """Return the parts of a value that may be owned."""
    ty = target.ty if isinstance(target, Var) else target.function.body.ty
    if _is_array(ty):
        return [None]
    if isinstance(ty, TupleType):
        return [i for i, field in enumerate(ty.fields) if _is_array(field)]
    return []


def _is_array(ty: Type | None) -> bool:
    return isinstance(ty, TensorType) and bool(ty.shape)


def _groups(plan: FunctionPlan) -> dict[Planned, int]:
    """Return for each function the number of its group of functions that reach each other."""
    functions = list(plan.functions())
    graph: dict[Planned, list[Planned]] = {p: [] for p in functions}
    for planned in functions:
        for site in planned.sites:
            graph[site.caller].append(planned)
    return {p: i for i, group in enumerate(components(graph)) for p in group}
