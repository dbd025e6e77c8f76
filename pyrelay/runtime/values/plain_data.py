"""Instances that compiled code takes as they are, found by a quick walk."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, final

import torch

from ...ir.types import STR
from ..calls.remembered import SETTLED
from .schema import INT_RANGE, Data, Leaf, Plan


@final
@dataclass(frozen=True, slots=True, eq=False)
class Plain:
    """What a quick walk met: instances that were not remembered, and tensors with their dtypes."""

    instances: list[tuple[Any, Data]] = field(default_factory=list[tuple[Any, Data]])
    scalars: list[tuple[torch.Tensor, torch.dtype]] = field(
        default_factory=list[tuple[torch.Tensor, torch.dtype]]
    )


def plain_data(value: Any, plan: Data, device: torch.device) -> Plain | None:
    """Return what is in an instance that fits and stays as it is in every part; None where a part
    is to be converted, compared or refused, or where one instance stands in two places."""
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
        found.instances.append((current, here))
        for part, inner in zip(case.read(current), case.plans, strict=True):
            if type(inner) is not Leaf:
                pending.append((part, inner))
            elif (
                type(part) is not int or inner.scalar is not torch.int64 or part not in INT_RANGE
            ) and not _fits(part, inner, device, found):
                return None
    return found


def _fits(part: Any, leaf: Leaf, device: torch.device, found: Plain) -> bool:
    """Return whether a leaf is a text, or a tensor of rank 0, that stays as it is."""
    if not isinstance(part, torch.Tensor):
        return type(part) is str and leaf.type == STR
    found.scalars.append((part, part.dtype))
    return part.dtype is leaf.scalar and not part.dim() and part.device == device
