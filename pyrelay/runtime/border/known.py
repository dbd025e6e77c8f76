"""The first look at an argument that is data or a list, and what is remembered of it.

Instances are remembered while they live. Lists have no weak references, so of these two things are
remembered: the instances in them, each by itself, where the look at one takes longer than to
remember it; and of lists of numbers alone the last one, if it is not long, as its elements and the
tensors made of them stay alive.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from itertools import chain, islice
from typing import TYPE_CHECKING, Any, Final, cast

from ...garbage import uncollected
from ..values.structure import chained
from .plain import Plain, are_numbers, plain_data, tensors_of
from .remembered import Known, Leaves
from .schema import Data, Elements, Leaf, Plan, Schema, Whole, has_instances

if TYPE_CHECKING:
    import torch

_LARGE: Final = 4
"""How many instances an element of a list must be made of, for each to be remembered by itself:
that takes as long as to look at so many."""

_MOST: Final = 10_000
"""How many numbers a list that is remembered may have."""


def known_value(value: Any, plan: Plan, schema: Schema, device: torch.device) -> Known | None:
    """Return what is known of an argument, which is looked at if it is not remembered as it is;
    None where the careful walk must say."""
    if type(plan) is Data:
        return _known_instance(value, plan, device)
    return _known_list(value, plan, schema, device) if type(plan) is Elements else None


def _known_instance(value: Any, plan: Data, device: torch.device) -> Known | None:
    known = plan.remembered.get(value)
    if known is not None and known.fits(device):
        return known
    with uncollected():
        met = plain_data(value, plan, device)
        if met is None:
            return None
        host, leaves = met.converted(value, plan, _made(met.floats, device))
        return met.remember(value, host, leaves, plan)


def _made(
    floats: Mapping[Leaf, Sequence[float]], device: torch.device
) -> Mapping[Leaf, Sequence[torch.Tensor]]:
    """Return the tensors that numbers become."""
    return {leaf: tensors_of(values, leaf, device) for leaf, values in floats.items() if values}


def _known_list(value: Any, plan: Elements, schema: Schema, device: torch.device) -> Known | None:
    is_plain = type(value) is list or type(value) is tuple
    last = plan.last.get(value, device) if is_plain else None
    if last is not None:
        return last
    with uncollected():
        if is_plain and value and type(plan.inner) is Leaf:
            found = _numbers(value, plan, plan.inner, device)
        elif is_plain and type(plan.inner) is Data and plan.last.has_large:
            found = _known_elements(value, plan.inner, device)
        else:
            found = None
        return _whole(value, plan, schema, device) if found is None else found


def _numbers(
    values: Sequence[Any], plan: Elements, leaf: Leaf, device: torch.device
) -> Known | None:
    """Return a list of numbers as compiled code takes it, which is no walk."""
    cls = are_numbers(values, leaf)
    if cls is None:
        return None
    if cls is int:
        known = Known(chained(*values))
    else:
        made = tensors_of(values, leaf, device)
        known = Known(chained(*made), leaves=Leaves.of(made), device=device)
    if len(values) <= _MOST:
        plan.last.set(values, known)
    return known


def _known_elements(values: Sequence[Any], plan: Data, device: torch.device) -> Known | None:
    """Return a list of instances, each of which is remembered."""
    found: list[Known | Plain] = []
    floats = defaultdict[Leaf, list[float]](list)
    for value in values:
        known = plan.remembered.get(value)
        if known is None or not known.fits(device):
            known = plain_data(value, plan, device)
        if known is None:
            return None
        found.append(known)
        for leaf, numbers in known.floats.items() if type(known) is Plain else ():
            floats[leaf] += numbers
    rest = {leaf: iter(tensors) for leaf, tensors in _made(floats, device).items()}
    for n, (value, met) in enumerate(zip(values, found, strict=True)):
        if type(met) is Plain:
            mine = {p: [*islice(rest[p], len(x))] for p, x in met.floats.items() if x}
            found[n] = met.remember(value, *met.converted(value, plan, mine), plan)
    return _joined(values, cast("list[Known]", found), device)


def _joined(values: Sequence[Any], found: Sequence[Known], device: torch.device) -> Known:
    """Return a list of which each element is known."""
    hosts = [v if k.host is None else k.host for v, k in zip(values, found, strict=True)]
    given = tuple(chain.from_iterable(k.given for k in found))
    tensors = tuple(chain.from_iterable(k.leaves.tensors for k in found))
    ids = frozenset[int]().union(*(k.leaves.ids for k in found))
    return Known(chained(*hosts), given, leaves=Leaves(tensors, ids), device=device)


def _whole(value: Any, plan: Elements, schema: Schema, device: torch.device) -> Known | None:
    """Return a list that is walked over with all that is in it."""
    inside = schema.whole(plan)
    if inside is None:
        return None
    whole = Whole(value)
    met = plain_data(whole, inside, device)
    if met is None:
        return None
    host, leaves = met.converted(whole, inside, _made(met.floats, device))
    given = tuple(tensor for tensor, _, _ in met.tensors)
    lists = tuple(seen for seen in met.lists if seen[0] is not value)
    known = Known(host, given, lists=lists, leaves=Leaves.of(leaves), device=device)
    if not given and not has_instances(plan):
        if len(value) + len(leaves) + sum(len(seen) for _, seen in lists) <= _MOST:
            plan.last.set(value, known)
    elif isinstance(plan.inner, Data):
        plan.last.has_large = sum(map(len, met.instances.values())) > _LARGE * len(value)
    return known
