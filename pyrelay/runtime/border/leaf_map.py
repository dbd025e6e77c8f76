"""Values with their leaves changed, by the plan of their type: arguments on the way in, results on
the way out."""

from __future__ import annotations

import operator
from collections import defaultdict
from collections.abc import Callable
from typing import Any, Final, final

from ...ir.types import UNIT
from ...prelude.values import Present
from .remembered import SETTLED
from .schema import Data, Elements, Leaf, Maybe, Opened, Plan, opened


def map_leaves(
    value: Any, plan: Plan, change: Callable[[Any, Leaf], Any], *, is_given: bool = False
) -> Any:
    """Return a value, given by a script or made by compiled code, with its leaves changed; parts in
    which nothing changed stay the same objects, and what is shared stays shared."""
    return _LeafMap(change, is_given=is_given).value(value, plan)


def finished(value: Any, plan: Plan, change: Callable[[Any, Leaf], Any]) -> Any:
    """Return a result with its leaves changed. Where `change` leaves all as they are, and none is a
    tensor, its instances are remembered, and no later walk looks into them."""
    if not isinstance(plan, Data):
        return map_leaves(value, plan, change)
    lasting = True

    def watched(leaf_value: Any, leaf: Leaf) -> Any:
        nonlocal lasting
        made = change(leaf_value, leaf)
        lasting = lasting and made is leaf_value and type(made) in _LASTING
        return made

    walk = _LeafMap(watched, finishes=True)
    result = walk.value(value, plan)
    if lasting and result is value and not any(isinstance(p, Elements) for p in walk.done):
        walk.remember()
    return result


_LASTING: Final = frozenset({bool, int, str})
"""The classes of leaves that are the same inside and outside."""


@final
class _Frame:
    """A value whose parts are being mapped."""

    __slots__ = ("made", "make", "parts", "plan", "plans", "value")

    def __init__(self, value: Any, plan: Plan, inside: Opened) -> None:
        self.value: Final = value
        self.plan: Final = plan
        self.parts: Final = inside[0]
        self.plans: Final = iter(inside[1])
        self.make: Final = inside[2]
        self.made: Final[list[Any]] = []

    def finished(self) -> Any:
        """Return the value of the mapped parts."""
        is_fixed = not isinstance(self.plan, Elements) and not isinstance(self.value, list)
        same = is_fixed and all(map(operator.is_, self.made, self.parts))
        return self.value if same else self.make(*self.made)


@final
class _LeafMap:
    """One walk over a value; its frames are the values that have been entered and not left."""

    def __init__(
        self, change: Callable[[Any, Leaf], Any], *, finishes: bool = False, is_given: bool = False
    ) -> None:
        self.done: Final[defaultdict[Plan, dict[int, Any]]] = defaultdict(dict)
        self._frames: Final[list[_Frame]] = []
        self._change: Final = change
        self._finishes: Final = finishes
        self._is_given: Final = is_given

    def value(self, value: Any, plan: Plan) -> Any:
        """Return a value with its leaves changed."""
        result = self._enter(value, plan)
        while self._frames:
            frame = self._frames[-1]
            frame.made.append(result)
            count = len(frame.made)
            if count < len(frame.parts):
                result = self._enter(frame.parts[count], next(frame.plans))
            else:
                self._frames.pop()
                result = frame.finished()
                self.done[frame.plan][id(frame.value)] = result
        return result

    def remember(self) -> None:
        """Remember the instances that were walked over, and stayed what they are."""
        for plan, values in self.done.items():
            if not isinstance(plan, Data):
                continue
            for value in values.values():
                if plan.cases[type(value)].lasts:
                    plan.finished.add(value, SETTLED)
                    plan.remembered.add(value, SETTLED)

    def _enter(self, value: Any, plan: Plan) -> Any:
        """Go down to the first leaf or to a value without parts; return its mapped value."""
        while True:
            match plan:
                case Leaf():
                    return self._change(value, plan)
                case Maybe(inner=inner) if not _is_wrapped(value, inner):
                    if value is None:
                        return None
                    plan = inner
                    continue
                case Data():
                    done = self.done[plan]
                    if id(value) in done:
                        return done[id(value)]
                    if self._finishes and plan.finished.get(value) is not None:
                        return value
                case _:
                    pass
            inside = opened(value, plan, is_given=self._is_given)
            if isinstance(plan, Elements) and isinstance(plan.inner, Leaf):
                made = inside[2](*[self._change(item, plan.inner) for item in inside[0]])
                self.done[plan][id(value)] = made
                return made
            if not inside[0]:
                return inside[2]() if isinstance(plan, Elements) else value
            frame = _Frame(value, plan, inside)
            self._frames.append(frame)
            value, plan = frame.parts[0], next(frame.plans)


def _is_wrapped(value: Any, inner: Plan) -> bool:
    """Return whether an optional is none or more than its content: None stands for some content."""
    is_content_none = isinstance(inner, Maybe) or inner.type == UNIT
    return value is not None and (type(value) is Present or is_content_none)
