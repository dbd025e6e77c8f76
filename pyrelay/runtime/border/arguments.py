"""Arguments of a call: walked over by the plan of their type, every leaf checked and converted.

A value of data takes one loop with a stack of its own, about a microsecond for a few fields. Where
a leaf is converted, such as a Python float where a tensor is wanted, the value is rebuilt after it.
"""

from __future__ import annotations

import operator
from collections import defaultdict
from collections.abc import Iterable, Sequence
from functools import partial
from itertools import count
from types import NoneType
from typing import Any, Final, NoReturn, TypeAlias, cast, final

import torch

from ...diagnostics.catalogue.call import CyclicArgument, MixedDevices
from ...diagnostics.diagnostic import RunError
from ...diagnostics.source import NOWHERE
from ...diagnostics.wording import counted
from ...ir.dims import Dim
from ...ir.types import ITERABLE, Substitution, TensorType, Type, TypeVar, dim_names
from ..values.structure import distinct_tensors, tensors
from .binder import Binder
from .cycles import has_form, is_cyclic
from .known import known_before, known_now, known_value
from .leaf_map import map_leaves
from .places import Parameter, Part, Place, Trail
from .plain import Plain, are_numbers
from .remembered import Known
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
)
from .side_by_side import side_by_side
from .stream import Stream
from .supply import tensors_of

Names: TypeAlias = dict[str, str]
"""The names of the sizes in the types of one value's fields among all sizes of the call."""

_Pending: TypeAlias = tuple[Any, Plan, "Trail | Parameter", Names]

_OWN: Final = "#"
"""What separates the name of a size of one value from the number of the value."""

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
            value = side_by_side(binder, place, value, plan)
            return _Walk(binder, place).host_value(value, plan)


def bound(binder: Binder, parameter: Parameter, value: Any) -> Any:
    """Return the host value of a parameter whose plan is not at hand. Raises RunError."""
    return bind(binder, parameter, value, binder.schema.plan(parameter.type, parameter.numbers))


@final
class Look:
    """Looks at one argument of calls on a device: one that is data, or has data in it, and shares
    no size with other arguments."""

    def __init__(
        self, function: str, parameter: Parameter, schema: Schema, device: torch.device
    ) -> None:
        self._function: Final = function
        self._parameter: Final = parameter
        self._plan: Final = schema.plan(parameter.type, parameter.numbers)
        self._schema: Final = schema
        self._device: Final = device
        self.before: Final = known_before(self._plan)
        """Returns what is known of an argument from calls before, which may not be so any more."""

    def __call__(self, value: Any) -> Known | None:
        """Return what is known of an argument; None if it does not fit."""
        known = self.before(value)
        if known is not None and known.fits(self._device):
            return known
        plan = self._plan
        known = known_now(value, plan, self._schema, self._device)
        if known is not None:
            return known
        binder = Binder(self._function, self._device, self._schema)
        try:
            if type(plan) is Data:
                host = _Walk(binder, self._parameter).instance(value, plan)
            else:
                host = bind(binder, self._parameter, value, plan)
            binder.finish(())
        except RunError:
            return None
        found = distinct_tensors((host,)) if isinstance(plan, Items) else binder.leaves
        given = tuple(found)
        return Known(None if host is value else host, given, self._device, given)


def _has_own_sizes(ty: Type, names: Names) -> bool:
    """Return whether the sizes in the type of a tensor belong to the argument alone, which fits as
    long as they stay."""
    return isinstance(ty, TensorType) and all(_OWN in names.get(n, n) for n in dim_names(ty))


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
    if not has_form(value, plan):
        values = counted(len(plan.fields), "value")
        is_tuple = isinstance(value, tuple | list)
        binder.wrong(place, value, None if is_tuple else f"pass one tuple of {values}")
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
        self._met: Final = Plain(binder.device)
        self._floats: Final[defaultdict[Leaf, list[float]]] = defaultdict(list)

    def host_value(self, value: Any, plan: Plan) -> Any:
        """Return an argument as compiled code takes it. Raises RunError if it does not fit."""
        binder = self._binder
        known = known_value(value, plan, binder.schema, binder.device)
        if known is None:
            return self.instance(value, plan) if type(plan) is Data else self._walked(value, plan)
        binder.leaves.extend(known.tensors)
        return value if known.host is None else known.host

    def instance(self, value: Any, plan: Data) -> Any:
        """Return an argument that is data, of which nothing is known, as compiled code takes it.
        Raises RunError if it does not fit."""
        first = len(self._binder.leaves)
        host = self._walked(value, plan)
        if self._lasts:
            self._met.remember(value, host, self._binder.leaves[first:], plan)
        return host

    def _walked(self, value: Any, plan: Plan) -> Any:
        """Check a value and its parts; return it as compiled code takes it."""
        pending: list[_Pending] = [(value, plan, self._trail, _NO_NAMES)]
        while pending:
            pending += self._parts(*pending.pop())
        if self._shared and is_cyclic(value, plan):
            where = self._parameter.span
            raise RunError(CyclicArgument(self._binder.function, self._place.name, where))
        for leaf, numbers in self._floats.items():
            assert leaf.scalar is not None
            made = tensors_of(numbers, leaf.scalar, self._binder.device)
            self._converted[leaf].update(zip(map(id, numbers), made, strict=True))
            self._binder.leaves.extend(made)
        if not self._converted and not self._has_lists:
            return value
        return map_leaves(
            value, plan, lambda v, leaf: self._converted[leaf].get(id(v), v), is_given=True
        )

    def _parts(
        self, value: Any, plan: Plan, trail: Trail | Parameter, names: Names
    ) -> list[_Pending]:
        """Check a value and the leaves directly in it; return its other parts, the first last."""
        if type(plan) is Leaf:
            self._leaf(value, plan, trail, names)
            return []
        if not has_form(value, plan):
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
            self._note_list(value)
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

    def _note_list(self, value: Any) -> None:
        self._has_lists = True
        if isinstance(value, list):
            items = cast("list[Any]", value)
            self._met.lists.append((items, tuple(items)))

    def _is_new(self, value: Any, plan: Data) -> bool:
        """Return whether the fields of an instance are still to be checked."""
        if id(value) in self._seen:
            self._shared = True
            if self._seen[id(value)] is plan or is_cyclic(value, plan):
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
            self._floats[leaf].append(value)
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
            self._met.tensors.append(value)
            return True
        if value.dtype is not leaf.scalar or value.dim() or value.device != binder.device:
            return False
        binder.leaves.append(value)
        self._met.tensors.append(value)
        return True

    def _are_numbers(self, values: Sequence[Any], plan: Plan) -> bool:
        """Return whether all elements of a list are numbers that certainly fit."""
        cls = are_numbers(values, plan) if type(plan) is Leaf and values else None
        if type(plan) is Leaf and cls is float:
            self._floats[plan].extend(values)
        return cls is not None

    def _opened(self, case: Case, plan: Data, names: Names) -> Names:
        """Name the sizes that belong to one value alone."""
        number = next(self._binder.numbers)
        outer = {n: names.get(n, n) for n in plan.outer}
        return outer | {n: f"{n}{_OWN}{number}" for n in case.own}

    def _leaf(self, value: Any, plan: Leaf, trail: Trail | Parameter, names: Names) -> None:
        if plan.own:
            number = next(self._binder.numbers)
            names = names | {n: f"{n}{_OWN}{number}" for n in plan.own}
        at = self._at(trail, plan.type, names, plan)
        host = _converted(self._binder, at, value, plan)
        if host is value and isinstance(host, torch.Tensor) and _has_own_sizes(plan.type, names):
            self._met.tensors.append(host)  # it is compared with what it is now
        elif type(value) not in _UNCHANGING or any(dim_names(plan.type)):
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
