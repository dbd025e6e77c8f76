"""Arguments of a call: walked over by the plan of their type, every leaf checked and converted.

A value of data takes one loop with a stack of its own, about a microsecond for a few fields. Where
a leaf is converted, such as a Python float where a tensor is wanted, the value is rebuilt after it.
"""

from __future__ import annotations

import operator
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import count
from types import NoneType
from typing import Any, Final, NoReturn, TypeAlias, final

import torch

from ...diagnostics.catalogue.call import CyclicArgument, MixedDevices
from ...diagnostics.diagnostic import RunError
from ...diagnostics.source import NOWHERE
from ...ir.dims import Dim
from ...ir.types import ITERABLE, StrType, Substitution, Type, TypeVar, dim_names
from ...prelude.values import List
from ..values.structure import tensors
from .binder import Binder
from .places import Parameter, Part, Place, Trail
from .remembered import SETTLED, Known
from .schema import (
    INT_RANGE,
    Case,
    Data,
    Elements,
    Items,
    Leaf,
    Maybe,
    Plan,
    Schema,
    opened,
    transform,
)
from .stream import Stream

Names: TypeAlias = dict[str, str]
"""The names of the sizes in the types of one value's fields among all sizes of the call."""

_Pending: TypeAlias = tuple[Any, Plan, "Trail | Parameter", Names]

_UNCHANGING: Final = frozenset({bool, float, int, str, NoneType})
"""The classes of leaves, besides tensors, of instances that are remembered."""

_NO_NAMES: Final[Names] = {}


def bind(binder: Binder, place: Place, value: Any, plan: Plan) -> Any:
    """Return the host value of an argument, or of a field of a tuple. Raises RunError if it does
    not fit."""
    match plan:
        case Leaf():
            return _converted(binder, place, value, plan)
        case Items():
            return _items(binder, place, value, plan)
        case _:
            return _Walk(binder, place).host_value(value, plan)


def bound(binder: Binder, parameter: Parameter, value: Any) -> Any:
    """Return the host value of a parameter whose plan is not at hand. Raises RunError."""
    return bind(binder, parameter, value, binder.schema.plan(parameter.type, parameter.numbers))


def _converted(binder: Binder, place: Place, value: Any, leaf: Leaf) -> Any:
    if leaf.type != ITERABLE:
        return binder.convert(place, value, place.type)
    if not hasattr(value, "__iter__"):
        way = "pass what a `for` loop runs over: a DataLoader, a generator, a list"
        binder.wrong(place, value, way)
    return Stream(value, partial(_element, binder.function, binder.schema))


def _element(function: str, schema: Schema, device: torch.device, ty: Type, value: Any) -> Any:
    """Return the host value of an element of a stream. Raises RunError."""
    binder = Binder(function, device, schema)
    found = bound(binder, Parameter("x", ty, NOWHERE), value)
    binder.finish(())
    return found


def _items(binder: Binder, place: Place, value: Any, plan: Items) -> Any:
    if not _has_form(value, plan):
        binder.wrong(place, value)
    parameter, trail = _root(place)
    found: list[Any] = []
    for index, (field_value, field_plan) in enumerate(zip(value, plan.fields, strict=True)):
        numbers = field_plan.numbers if type(field_plan) is Leaf else None
        part = Part(parameter, (trail, index), field_plan.type, numbers)
        found.append(bind(binder, part, field_value, field_plan))
    # The same tuple when nothing changed, so that a plan sees there is nothing to do.
    is_same = isinstance(value, tuple) and all(map(operator.is_, found, value))
    return value if is_same else tuple(found)


def _root(place: Place) -> tuple[Parameter, Trail | Parameter]:
    """Return the parameter that a place belongs to, and how the place is reached."""
    return (place, place) if isinstance(place, Parameter) else (place.parameter, place.trail)


@final
@dataclass(frozen=True, slots=True, eq=False)
class Plain:
    """The instances that a walk met which are to be remembered, and the tensors of rank 0 in them
    with their dtypes."""

    instances: list[tuple[Any, Data]] = field(default_factory=list[tuple[Any, Data]])
    scalars: list[tuple[torch.Tensor, torch.dtype]] = field(
        default_factory=list[tuple[torch.Tensor, torch.dtype]]
    )

    def remember(self, value: Any, host: Any, plan: Data, leaves: Sequence[torch.Tensor]) -> None:
        """Remember an instance; if it has no tensors, the instances inside as well."""
        if not leaves and host is value:
            for instance, own in self.instances:
                own.remembered.add(instance, SETTLED)
            return
        changed = None if host is value else host
        device = leaves[0].device if leaves else None
        plan.remembered.add(value, Known(changed, tuple(self.scalars), tuple(leaves), device))


def plain_data(value: Any, plan: Data, device: torch.device) -> Plain | None:
    """Return what is in an instance that fits and stays as it is in every part, found by a quick
    walk; None where a part is to be converted, compared or refused, or where one instance stands in
    two places."""
    found = Plain()
    seen: set[int] = set()
    pending: list[tuple[Any, Plan]] = [(value, plan)]
    while pending:
        current, here = pending.pop()
        if type(here) is not Data:
            return None
        if here.remembered.get(current) is SETTLED:
            continue
        case = here.cases.get(type(current))
        if case is None or not case.lasts or id(current) in seen:
            return None
        seen.add(id(current))
        waiting = len(pending)
        for part, inner in zip(case.read(current), case.plans, strict=True):
            if type(inner) is not Leaf:
                pending.append((part, inner))
            elif (
                type(part) is not int or inner.scalar is not torch.int64 or part not in INT_RANGE
            ) and not _is_plain(part, inner, device, found):
                return None
        if len(pending) > waiting or current is value:
            found.instances.append((current, here))
    return found


def _is_plain(part: Any, leaf: Leaf, device: torch.device, found: Plain) -> bool:
    """Return whether a leaf is a text, or a tensor of rank 0, that stays as it is."""
    if not isinstance(part, torch.Tensor):
        return type(part) is str and type(leaf.type) is StrType
    found.scalars.append((part, part.dtype))
    return part.dtype is leaf.scalar and not part.dim() and part.device == device


@final
class _Walk:
    """One argument that is data, or a list."""

    def __init__(self, binder: Binder, place: Place) -> None:
        self._binder: Final = binder
        self._place: Final = place
        self._parameter, self._trail = _root(place)
        self._seen: Final[dict[int, Plan]] = {}
        self._converted: Final[defaultdict[Leaf, dict[int, Any]]] = defaultdict(dict)
        self._shared = False
        self._has_lists = False
        self._lasts = True
        """Whether everything met so far stays as it is."""
        self._met: Final = Plain()

    def host_value(self, value: Any, plan: Plan) -> Any:
        """Return an argument as compiled code takes it. Raises RunError if it does not fit."""
        if type(plan) is not Data:
            return self._walked(value, plan)
        binder = self._binder
        known = plan.remembered.get(value)
        if known is not None and known.fits(binder.device):
            binder.leaves.extend(known.leaves)
            return value if known.host is None else known.host
        plain = plain_data(value, plan, binder.device)
        if plain is not None:
            leaves = [tensor for tensor, _ in plain.scalars]
            binder.leaves.extend(leaves)
            plain.remember(value, value, plan, leaves)
            return value
        first = len(binder.leaves)
        host = self._walked(value, plan)
        if self._lasts:
            self._met.remember(value, host, plan, binder.leaves[first:])
        return host

    def _walked(self, value: Any, plan: Plan) -> Any:
        """Check a value and its parts; return it as compiled code takes it."""
        pending: list[_Pending] = [(value, plan, self._trail, _NO_NAMES)]
        while pending:
            pending += self._parts(*pending.pop())
        if self._shared and _is_cyclic(value, plan):
            where = self._parameter.span
            raise RunError(CyclicArgument(self._binder.function, self._place.name, where))
        if not self._converted and not self._has_lists:
            return value
        return transform(value, plan, lambda v, leaf: self._converted[leaf].get(id(v), v))

    def _parts(
        self, value: Any, plan: Plan, trail: Trail | Parameter, names: Names
    ) -> list[_Pending]:
        """Check a value and the leaves directly in it; return its other parts, the first last."""
        if type(plan) is Leaf:
            self._leaf(value, plan, trail, names)
            return []
        if not _has_form(value, plan):
            self._wrong(value, plan, trail, names)
        labels: Iterable[str | int] = count()
        if type(plan) is Data:
            case = plan.cases[type(value)]
            if not self._is_new(value, plan):
                return []
            self._lasts = self._lasts and case.lasts
            names = self._opened(case, plan, names) if case.own else names
            labels = case.names
        elif not isinstance(value, tuple) and not isinstance(plan, Maybe):
            self._has_lists = True
            self._lasts = False
        rest: list[_Pending] = []
        parts, plans, _ = opened(value, plan)
        for label, part, inner in zip(labels, parts, plans, strict=False):
            at = trail if type(plan) is Maybe else (trail, label)
            if type(inner) is not Leaf:
                rest.append((part, inner, at, names))
            elif not self._fits(part, inner):
                self._leaf(part, inner, at, names)
        rest.reverse()
        return rest

    def _is_new(self, value: Any, plan: Data) -> bool:
        """Return whether the fields of an instance are still to be checked."""
        if id(value) in self._seen:
            self._shared = True
            if self._seen[id(value)] is plan or _is_cyclic(value, plan):
                return False
        self._seen[id(value)] = plan
        self._met.instances.append((value, plan))
        return True

    def _fits(self, value: Any, leaf: Leaf) -> bool:
        """Return whether a leaf certainly fits: an integer, or a tensor of the right dtype whose
        sizes the type fixes."""
        if type(value) is int:
            return leaf.scalar is torch.int64 and value in INT_RANGE
        if not isinstance(value, torch.Tensor):
            return False
        binder = self._binder
        if leaf.scalar is None:
            if leaf.fixed != (value.dtype, value.shape) or value.device != binder.device:
                return False
            self._lasts = False
            binder.leaves.append(value)
            return True
        if value.dtype is not leaf.scalar or value.dim() or value.device != binder.device:
            return False
        binder.leaves.append(value)
        self._met.scalars.append((value, leaf.scalar))
        return True

    def _opened(self, case: Case, plan: Data, names: Names) -> Names:
        """Name the sizes that belong to one value alone."""
        number = next(self._binder.numbers)
        outer = {n: names.get(n, n) for n in plan.outer}
        return outer | {n: f"{n}#{number}" for n in case.own}

    def _leaf(self, value: Any, plan: Leaf, trail: Trail | Parameter, names: Names) -> None:
        if plan.own:
            number = next(self._binder.numbers)
            names = names | {n: f"{n}#{number}" for n in plan.own}
        at = self._at(trail, plan.type, names, plan)
        host = _converted(self._binder, at, value, plan)
        if type(value) not in _UNCHANGING or any(dim_names(plan.type)):
            self._lasts = False
        if host is not value:
            self._converted[plan][id(value)] = host
        if isinstance(host, torch.Tensor):
            if host.device != self._binder.device:
                raise RunError(self._mixed(at, host.device))
            self._binder.leaves.append(host)
        elif isinstance(plan.type, TypeVar):
            self._binder.leaves.extend(tensors(host))

    def _mixed(self, at: Place, device: torch.device) -> MixedDevices:
        """Return the mistake of a part that is on another device than the call."""
        here = str(self._binder.device)
        part = (f"`{at.name}`", at.span, (str(device),))
        rest = ("what comes before it", NOWHERE, (here,))
        return MixedDevices(self._binder.function, (part, rest), here)

    def _at(
        self, trail: Trail | Parameter, ty: Type, names: Names, leaf: Leaf | None = None
    ) -> Place:
        if isinstance(trail, Parameter) and trail.type == ty:
            return trail
        named = Substitution({n: Dim.of(m) for n, m in names.items()}, {})(ty) if names else ty
        return Part(self._parameter, trail, named, None if leaf is None else leaf.numbers)

    def _wrong(self, value: Any, plan: Plan, trail: Trail | Parameter, names: Names) -> NoReturn:
        way = None
        if isinstance(plan, Elements) and hasattr(value, "__iter__"):
            way = "make it a list: `list(xs)`"
        for cls in plan.cases if isinstance(plan, Data) else ():
            if cls.__name__ == type(value).__name__:
                way = (
                    f"`{cls.__name__}` is another class now than when this value was made: "
                    "make the value again"
                )
            elif isinstance(value, cls):
                way = f"make it a `{cls.__name__}` itself, not an instance of a subclass"
        self._binder.wrong(self._at(trail, plan.type, names), value, way)


def _has_form(value: Any, plan: Plan) -> bool:
    """Return whether a value can be opened as its plan says."""
    match plan:
        case Data():
            return type(value) in plan.cases
        case Items(fields=fields):
            return isinstance(value, tuple | list) and len(value) == len(fields)
        case Elements():
            return isinstance(value, list | List)
        case _:
            return True


def _is_cyclic(value: Any, plan: Plan) -> bool:
    """Return whether a value contains itself."""
    inside: set[int] = set()
    done: set[int] = set()
    pending: list[tuple[Any, Plan, bool]] = [(value, plan, False)]
    while pending:
        current, plan, left = pending.pop()
        if left:
            inside.discard(id(current))
            done.add(id(current))
        elif id(current) in inside:
            return True
        elif id(current) not in done and not isinstance(plan, Leaf) and _has_form(current, plan):
            if not isinstance(plan, Maybe):
                inside.add(id(current))
                pending.append((current, plan, True))
            parts, plans, _ = opened(current, plan)
            pending += ((p, q, False) for p, q in zip(parts, plans, strict=False))
    return False
