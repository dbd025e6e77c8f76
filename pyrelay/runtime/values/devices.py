"""Where values are, and where programs run: on one device, which is really there."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, final

import torch

from ... import annotations
from ...diagnostics.catalogue.call import MixedDevices, NoDevice
from ...diagnostics.diagnostic import RunError
from ...diagnostics.misspelt import nearest
from ...diagnostics.source import NOWHERE, Span
from ...translate.names.scope import is_frozen
from .structure import first_tensor
from .values import Cell

CPU: Final = torch.device("cpu")


@final
@dataclass(frozen=True, slots=True)
class Holder:
    """What holds tensors in a call, as an error names it, and where it is declared."""

    said: str
    declared: Span = NOWHERE


def one_device(function: str, holders: Sequence[Holder], values: Sequence[Any]) -> torch.device:
    """Return the one device of all tensors among (nested) values, one for each holder; cpu if there
    is none. Raises RunError when there are several."""
    found = _devices(values)
    if len(found) > 1:
        raise RunError(_mixed(function, holders, values))
    return next(iter(found.values()), CPU)


def told_device(values: Sequence[Any]) -> torch.device | None:
    """Return the device of all tensors among (nested) values; None if there are none, or
    several."""
    found = _devices(values)
    return next(iter(found.values())) if len(found) == 1 else None


def _devices(values: Sequence[Any]) -> dict[str, torch.device]:
    found: dict[str, torch.device] = {}
    pending = list(values)
    seen: set[int] = set()  # a value that contains itself is refused later
    while pending:
        value = pending.pop()
        if isinstance(value, torch.Tensor):
            found[str(value.device)] = value.device
        elif isinstance(value, annotations.Ref | Cell | tuple | list):
            if id(value) not in seen:
                seen.add(id(value))
                pending += value if isinstance(value, tuple | list) else (value.value,)
        elif is_frozen(value):
            # Of data the first tensor decides; the others are compared when they are checked.
            first = first_tensor(value)
            pending += () if first is None else (first,)
    return found


def _mixed(function: str, holders: Sequence[Holder], values: Sequence[Any]) -> MixedDevices:
    pairs = zip(holders, values, strict=True)
    placed = [(h.said, h.declared, tuple(sorted(_devices([v])))) for h, v in pairs]
    names = sorted({d for _, _, found in placed for d in found})
    # A GPU is meant where one takes part at all.
    target = next((d for d in names if d not in ("cpu", "meta")), names[0])
    return MixedDevices(function, tuple(dict.fromkeys(p for p in placed if p[2])), target)


def device_named(given: str | torch.device) -> torch.device:
    """Return a device by its name, if tensors can be put there. Raises RunError if they cannot:
    what was asked for is never replaced by another device."""
    try:
        device = torch.device(given)
    except RuntimeError:
        is_gpu = str(given).startswith("gpu")
        near = "cuda" if is_gpu else nearest(str(given), _NAMES)
        raise RunError(NoDevice(str(given), None, near)) from None
    try:
        torch.empty(0, device=device)
    except (AssertionError, RuntimeError) as error:
        why = str(error).splitlines()[0].rstrip(".")
        raise RunError(NoDevice(str(given), why, None)) from None
    return device


_NAMES: Final = ("cpu", "cuda", "cuda:0", "mps", "xpu", "meta")
