"""Checking arguments that are data: every leaf against the declared type, at any depth.

One loop with a stack of its own, about a microsecond for a value of a few fields. Where a leaf must
be converted, such as a Python float where a tensor is wanted, the value is rebuilt afterwards.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from types import NoneType
from typing import TYPE_CHECKING, Any, Final, NoReturn, TypeAlias, final

import torch

from ...diagnostics.catalogue.call import CyclicArgument, MixedDevices
from ...diagnostics.diagnostic import RunError
from ...diagnostics.source import NOWHERE
from ...ir.dims import Dim
from ...ir.types import Substitution, Type, TypeVar, dim_names
from ...prelude.values import List, some_value
from ..values.plain_data import Plain, plain_data
from ..values.schema import INT_RANGE, Case, Data, Elements, Items, Leaf, Maybe, Plan, transform
from ..values.structure import tensors
from .remembered import SETTLED, Known

if TYPE_CHECKING:
    from ...diagnostics.source import Span
    from ...translate.types.number_places import Numbers
    from .arguments import Binder, Place

Trail: TypeAlias = "tuple[Trail | None, str]"
"""How a value was reached: from where, and by which name."""

Names: TypeAlias = dict[str, str]
"""What the sizes in the types of one value's fields are called among all sizes of the call."""

_SHOWN: Final = 8
"""How many steps of a long path are shown at its start, and at its end."""

_UNCHANGING: Final = frozenset({bool, float, int, str, NoneType})
"""The classes of leaves, besides tensors, that an instance may hold to be remembered."""

_NO_NAMES: Final[Names] = {}


@final
class Part:
    """A part of an argument, in place of a parameter; its name is only made when it is shown."""

    __slots__ = ("_trail", "numbers", "span", "type")

    def __init__(self, trail: Trail, ty: Type, span: Span, numbers: Numbers = None) -> None:
        self._trail: Final = trail
        self.type: Final = ty
        self.span: Final = span
        self.numbers: Final = numbers

    @property
    def name(self) -> str:
        """How the part is reached from the parameter, such as `tree.left.value`."""
        return _path(self._trail)


@final
class DataWalk:
    """One argument that is checked."""

    def __init__(self, binder: Binder, parameter: Place) -> None:
        self._binder: Final = binder
        self._parameter: Final = parameter
        self._seen: Final[dict[int, Plan]] = {}
        self._converted: Final[defaultdict[Leaf, dict[int, Any]]] = defaultdict(dict)
        self._shared = False
        self._has_lists = False
        self._lasts = True
        """Whether everything met so far stays as it is."""
        self._met: Final = Plain()

    def host_value(self, value: Any, plan: Plan) -> Any:
        """Return an argument as compiled code takes it. Raises RunError if it does not fit."""
        known = plan.remembered.get(value) if type(plan) is Data else None
        if known is not None and known.fits(self._binder.device):
            self._binder.leaves.extend(known.leaves)
            return value if known.host is None else known.host
        plain = plain_data(value, plan, self._binder.device) if type(plan) is Data else None
        if plain is not None and type(plan) is Data:
            leaves = [tensor for tensor, _ in plain.scalars]
            self._binder.leaves.extend(leaves)
            _remember(value, value, plan, plain, leaves)
            return value
        first = len(self._binder.leaves)
        host = self._walked(value, plan)
        if self._lasts and type(plan) is Data:
            _remember(value, host, plan, self._met, self._binder.leaves[first:])
        return host

    def _walked(self, value: Any, plan: Plan) -> Any:
        """Check a value and its parts; give it as compiled code takes it."""
        pending: list[tuple[Any, Plan, Trail, Names]] = []
        pending.append((value, plan, (None, self._parameter.name), _NO_NAMES))
        while pending:
            current, plan_here, trail, names = pending.pop()
            match plan_here:
                case Data():
                    pending += self._fields(current, plan_here, trail, names)
                case Maybe(inner=inner):
                    if current is not None:
                        pending.append((some_value(current), inner, trail, names))
                case Items():
                    pending += self._items(current, plan_here, trail, names)
                case Elements():
                    pending += self._elements(current, plan_here, trail, names)
                case Leaf():
                    self._leaf(current, plan_here, trail, names)
        if self._shared and _is_cyclic(value, plan):
            where = self._parameter.span
            raise RunError(CyclicArgument(self._binder.function, self._parameter.name, where))
        if not self._converted and not self._has_lists:
            return value
        return transform(value, plan, lambda v, leaf: self._converted[leaf].get(id(v), v))

    def _fields(
        self, value: Any, plan: Data, trail: Trail, names: Names
    ) -> list[tuple[Any, Plan, Trail, Names]]:
        """Check the leaves directly in a value; give its other parts, the first last."""
        case = plan.cases.get(type(value))
        if case is None:
            self._wrong_class(value, plan, trail, names)
        key = id(value)
        if key in self._seen:
            self._shared = True
            if self._seen[key] is plan:
                return []
            if _is_cyclic(value, plan):
                return []
        self._seen[key] = plan
        self._met.instances.append((value, plan))
        self._lasts = self._lasts and case.lasts
        if case.own:
            names = self._opened(case, plan, names)
        found: list[tuple[Any, Plan, Trail, Names]] = []
        for name, part, inner in zip(case.names, case.read(value), case.plans, strict=True):
            if type(inner) is Leaf:
                if not self._fits(part, inner):
                    self._leaf(part, inner, (trail, name), names)
            else:
                found.append((part, inner, (trail, name), names))
        found.reverse()
        return found

    def _fits(self, value: Any, leaf: Leaf) -> bool:
        """Return whether a leaf certainly is what it should be: a scalar of the right dtype, or an
        integer."""
        if type(value) is int:
            return leaf.scalar is torch.int64 and value in INT_RANGE
        if leaf.scalar is None or not isinstance(value, torch.Tensor):
            return False
        binder = self._binder
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

    def _items(
        self, value: Any, plan: Items, trail: Trail, names: Names
    ) -> list[tuple[Any, Plan, Trail, Names]]:
        if not isinstance(value, tuple | list) or len(value) != len(plan.fields):
            self._binder.wrong(self._at(trail, plan.type, names), value)
        found: list[tuple[Any, Plan, Trail, Names]] = []
        for place, inner in enumerate(plan.fields):
            found.append((value[place], inner, (trail, f"[{place}]"), names))
        found.reverse()
        return found

    def _elements(
        self, value: Any, plan: Elements, trail: Trail, names: Names
    ) -> list[tuple[Any, Plan, Trail, Names]]:
        """Check the leaves directly in a list; give its other elements, the first last."""
        if not isinstance(value, list | List):
            way = "make it a list: `list(xs)`" if hasattr(value, "__iter__") else None
            self._binder.wrong(self._at(trail, plan.type, names), value, way)
        self._has_lists = True
        self._lasts = False
        items: list[Any] = list(value)
        if not isinstance(plan.inner, Leaf):
            found: list[tuple[Any, Plan, Trail, Names]] = []
            found += ((v, plan.inner, (trail, f"[{i}]"), names) for i, v in enumerate(items))
            found.reverse()
            return found
        for i, item in enumerate(items):
            if not self._fits(item, plan.inner):
                self._leaf(item, plan.inner, (trail, f"[{i}]"), names)
        return []

    def _leaf(self, value: Any, plan: Leaf, trail: Trail, names: Names) -> None:
        if plan.own:
            number = next(self._binder.numbers)
            names = names | {n: f"{n}#{number}" for n in plan.own}
        at = Part(trail, self._named(plan.type, names), self._parameter.span, plan.numbers)
        host = self._binder.convert(at, value, at.type)
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

    def _mixed(self, at: Part, device: torch.device) -> MixedDevices:
        """Return the mistake of a part that is on another device than the call."""
        here = str(self._binder.device)
        part = (f"`{at.name}`", at.span, (str(device),))
        rest = ("what comes before it", NOWHERE, (here,))
        return MixedDevices(self._binder.function, (part, rest), here)

    def _named(self, ty: Type, names: Names) -> Type:
        return Substitution({n: Dim.of(m) for n, m in names.items()}, {})(ty) if names else ty

    def _at(self, trail: Trail, ty: Type, names: Names) -> Part:
        return Part(trail, self._named(ty, names), self._parameter.span)

    def _wrong_class(self, value: Any, plan: Data, trail: Trail, names: Names) -> NoReturn:
        way = None
        for cls in plan.cases:
            if cls.__name__ == type(value).__name__:
                way = (
                    f"`{cls.__name__}` is another class now than when this value was made: "
                    "make the value again"
                )
            elif isinstance(value, cls):
                way = f"make it a `{cls.__name__}` itself, not an instance of a subclass"
        self._binder.wrong(self._at(trail, plan.type, names), value, way)


def _remember(
    value: Any, host: Any, plan: Data, met: Plain, leaves: Sequence[torch.Tensor]
) -> None:
    """Remember an instance; where it holds no tensors, all instances inside as well."""
    if not leaves and host is value:
        for instance, own in met.instances:
            own.remembered.add(instance, SETTLED)
        return
    changed = None if host is value else host
    known = Known(changed, tuple(met.scalars), tuple(leaves), leaves[0].device if leaves else None)
    plan.remembered.add(value, known)


def _path(trail: Trail) -> str:
    parts: list[str] = []
    current: Trail | None = trail
    while current is not None:
        current, name = current
        parts.append(name if current is None or name.startswith("[") else f".{name}")
    parts.reverse()
    if len(parts) > 2 * _SHOWN:
        left_out = f" ...({len(parts) - 2 * _SHOWN} more)... "
        parts[_SHOWN:-_SHOWN] = [left_out]
    return "".join(parts)


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
            continue
        if id(current) in inside:
            return True
        parts = list(_parts(current, plan))
        if id(current) in done or not parts:
            continue
        inside.add(id(current))
        pending.append((current, plan, True))
        pending += ((p, q, False) for p, q in parts)
    return False


def _parts(value: Any, plan: Plan) -> Iterator[tuple[Any, Plan]]:
    """Return the parts of a value that are no leaves."""
    while isinstance(plan, Maybe):
        value, plan = some_value(value), plan.inner
    parts: Sequence[Any] = ()
    plans: Sequence[Plan] = ()
    if isinstance(plan, Items):
        parts, plans = value or (), plan.fields
    elif isinstance(plan, Elements) and value is not None:
        parts = list(value)
        plans = (plan.inner,) * len(parts)
    elif isinstance(plan, Data) and type(value) in plan.cases:
        case = plan.cases[type(value)]
        parts, plans = case.read(value), case.plans
    yield from ((v, p) for v, p in zip(parts, plans, strict=False) if not isinstance(p, Leaf))
