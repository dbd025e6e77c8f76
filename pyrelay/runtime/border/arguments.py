"""Arguments of a call: walked over by the plan of their type, every leaf checked and converted.

A value of data takes one loop with a stack of its own, about a microsecond for a few fields. Where
a leaf is converted, such as a Python float where a tensor is wanted, the value is rebuilt after it.
"""

from __future__ import annotations

import operator
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from itertools import count
from types import NoneType
from typing import Any, Final, NoReturn, TypeAlias, final

import torch

from ...diagnostics.catalogue.call import CyclicArgument, MixedDevices
from ...diagnostics.diagnostic import RunError
from ...diagnostics.source import NOWHERE
from ...ir.dims import Dim
from ...ir.types import ITERABLE, Substitution, Type, TypeVar, dim_names
from ...prelude.values import List
from ..values.structure import tensors
from .binder import Binder
from .places import Parameter, Part, Place, Trail
from .plain import Plain, plain_data
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
        first = len(binder.leaves)
        met = plain_data(value, plan, binder.device)
        if met is not None and not (met.shared and _is_cyclic(value, plan)):
            binder.leaves.extend(tensor for tensor, _, _ in met.tensors)
            host = self._converted_in(value, plan, met)
        else:
            host = self._walked(value, plan)
            met = self._met
        if self._lasts:
            met.remember(value, host, plan, binder.leaves[first:])
        return host

    def _walked(self, value: Any, plan: Plan) -> Any:
        """Check a value and its parts; return it as compiled code takes it."""
        pending: list[_Pending] = [(value, plan, self._trail, _NO_NAMES)]
        while pending:
            pending += self._parts(*pending.pop())
        if self._shared and _is_cyclic(value, plan):
            where = self._parameter.span
            raise RunError(CyclicArgument(self._binder.function, self._place.name, where))
        return self._converted_in(value, plan, self._met)

    def _converted_in(self, value: Any, plan: Plan, met: Plain) -> Any:
        """Return a value with its leaves converted."""
        for leaf, values in met.floats.items():
            self._convert_floats(leaf, values)
        if not self._converted and not self._has_lists:
            return value
        if met is not self._met and type(plan) is Data and len(self._converted) == 1:
            (tensors,) = self._converted.values()
            found = met.rebuilt(value, plan, tensors)
            if found is not None:
                return found
        return transform(
            value, plan, lambda v, leaf: self._converted[leaf].get(id(v), v), is_given=True
        )

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
        elif isinstance(plan, Elements) or isinstance(value, list):
            self._has_lists = True
            self._lasts = False
        rest: list[_Pending] = []
        parts, plans, _ = opened(value, plan, is_given=True)
        if isinstance(plan, Elements) and self._are_numbers(parts, plan.inner):
            return []
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
        self._met.instances[plan][id(value)] = value
        return True

    def _fits(self, value: Any, leaf: Leaf) -> bool:
        """Return whether a leaf certainly fits: a number, or a tensor of the right dtype whose
        sizes the type fixes."""
        if type(value) is int:
            return leaf.scalar is torch.int64 and value in INT_RANGE
        if type(value) is float:
            if not -leaf.most <= value <= leaf.most:
                return False
            self._met.floats[leaf][id(value)] = value
            return True
        if not isinstance(value, torch.Tensor):
            return False
        binder = self._binder
        if leaf.scalar is None:
            fixed = leaf.fixed
            if fixed is None or fixed != (value.dtype, value.shape):
                return False
            if value.device != binder.device:
                return False
            binder.leaves.append(value)
            self._met.tensors.append((value, *fixed))
            return True
        if value.dtype is not leaf.scalar or value.dim() or value.device != binder.device:
            return False
        binder.leaves.append(value)
        self._met.tensors.append((value, leaf.scalar, ()))
        return True

    def _are_numbers(self, values: Sequence[Any], plan: Plan) -> bool:
        """Return whether all elements of a list are numbers that certainly fit."""
        if type(plan) is not Leaf or not values:
            return False
        classes = set(map(type, values))
        if classes == {int}:
            return (
                plan.scalar is torch.int64 and min(values) in INT_RANGE and max(values) in INT_RANGE
            )
        if classes != {float} or not -plan.most <= min(values) <= max(values) <= plan.most:
            return False
        self._met.floats[plan].update(zip(map(id, values), values, strict=True))
        return True

    def _convert_floats(self, leaf: Leaf, values: Mapping[int, float]) -> None:
        """Convert numbers at once, which takes a fraction of the time of one after the other."""
        numbers = torch.tensor([*values.values()], dtype=leaf.scalar, device=self._binder.device)
        made = numbers.unbind()
        self._converted[leaf].update(zip(values, made, strict=True))
        self._binder.leaves.extend(made)

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
            return isinstance(value, list | tuple | List)
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
            parts, plans, _ = opened(current, plan, is_given=True)
            pending += ((p, q, False) for p, q in zip(parts, plans, strict=False))
    return False
