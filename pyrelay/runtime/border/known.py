"""The first look at an argument that is data or a list, and what is remembered of it.

Instances are remembered while they live. Lists have no weak references, so of these two things are
remembered: the instances in them, each by itself, where the look at one takes longer than to
remember it; and of lists of numbers alone the last one, if it is not long, as its elements and the
tensors made of them stay alive.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Sequence
from itertools import chain
from typing import TYPE_CHECKING, Any, Final

from ..values.structure import chained
from .plain import Plain, UnfitError, are_numbers
from .remembered import PLAIN, SETTLED, Known
from .schema import Data, Elements, Leaf, Maybe, Plan, Schema, Whole, has_instances
from .supply import made_of

if TYPE_CHECKING:
    import torch

_LARGE: Final = 2
"""How many instances with others in them an element of a list must be made of, for each to be
remembered by itself: that takes as long as to look at so many."""

_MOST: Final = 10_000
"""How many numbers a list that is remembered may have."""


def known_value(value: Any, plan: Plan, schema: Schema, device: torch.device) -> Known | None:
    """Return what is known of an argument, which is looked at if it is not remembered as it is;
    None where the careful walk must say."""
    known = known_before(plan)(value)
    if known is not None and known.fits(device):
        return known
    return known_now(value, plan, schema, device)


def known_before(plan: Plan) -> Callable[[Any], Known | None]:
    """Return the function that looks for an argument among those that are remembered."""
    match plan:
        case Data():
            return plan.remembered.get
        case Elements():
            return plan.last.get
        case _:
            return _nothing


def _nothing(_: object) -> None:
    return None


def known_now(value: Any, plan: Plan, schema: Schema, device: torch.device) -> Known | None:
    """Look at an argument, and return what is known of it then; None where the careful walk must
    say."""
    if type(plan) is Maybe:
        if value is None:
            return SETTLED
        plan = plan.inner
    if type(plan) is not Data and type(plan) is not Elements:
        return None
    was_enabled = gc.isenabled()
    gc.disable()  # as `uncollected` does, in a third of the time
    try:
        if type(plan) is Elements and type(plan.inner) is Leaf:
            known = _numbers(value, plan, plan.inner, device)
            if known is not None:
                return known
        return _walked(value, plan, schema, device)
    finally:
        if was_enabled:
            gc.enable()


def _walked(
    value: Any, plan: Data | Elements, schema: Schema, device: torch.device
) -> Known | None:
    met = Plain(device)
    try:
        if type(plan) is Data:
            return met.known(value, plan)
        if type(value) in PLAIN and type(plan.inner) is Data and plan.last.has_large:
            return _known_elements(value, plan.inner, met)
        return _whole(value, plan, schema, met)
    except UnfitError:
        return None
    finally:
        met.finish()


def _numbers(
    values: Sequence[Any], plan: Elements, leaf: Leaf, device: torch.device
) -> Known | None:
    """Return a list of numbers as compiled code takes it, which is no walk; None for any other."""
    if type(values) not in PLAIN or not values:
        return None
    cls = are_numbers(values, leaf)
    if cls is None or leaf.scalar is None:
        return None
    if cls is int:
        known = Known(chained(*values))
    else:
        made = made_of(values, leaf.scalar, device)
        known = Known(chained(*made), made, device)
    if len(values) <= _MOST:
        plan.last.set(values, known)
    return known


def _known_elements(values: Sequence[Any], plan: Data, met: Plain) -> Known:
    """Return a list of instances, each of which is remembered."""
    found: list[Known] = []
    for value in values:
        known = plan.remembered.get(value)
        if known is None or not known.fits(met.device):
            known = met.begin().known(value, plan)
        found.append(known)
    hosts = [v if k.host is None else k.host for v, k in zip(values, found, strict=True)]
    given = tuple(chain.from_iterable(k.given for k in found))
    tensors = tuple(chain.from_iterable(k.tensors for k in found))
    return Known(chained(*hosts), tensors, met.device, given)


def _whole(value: Any, plan: Elements, schema: Schema, met: Plain) -> Known | None:
    """Return a list that is walked over with all that is in it."""
    inside = schema.whole(plan)
    if inside is None:
        return None
    host = met.take(Whole(value), inside)
    lists = [seen for seen in met.lists if seen[0] is not value]
    known = Known(host, met.leaves, met.device, met.given, lists)
    if not met.tensors and not has_instances(plan):
        size = len(known.tensors) + sum(len(seen) for _, seen in known.lists)
        if len(value) + size <= _MOST:
            plan.last.set(value, known)
    elif isinstance(plan.inner, Data):
        plan.last.has_large = sum(map(len, met.instances.values())) > _LARGE * len(value)
    return known
