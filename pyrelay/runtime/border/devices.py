"""Where values are, and where programs run: on one device, which is really there."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, final

import torch

from ... import annotations
from ...dataclass import dataclass
from ...diagnostics.catalogue.call import MixedDevices, NoDevice
from ...diagnostics.diagnostic import RunError
from ...diagnostics.misspelt import nearest
from ...diagnostics.source import NOWHERE, Span
from ...translate.source.scope import is_frozen
from ..values.structure import distinct, distinct_tensors, parts
from ..values.values import Cell

CPU: Final = torch.device("cpu")


@final
@dataclass(frozen=True, slots=True)
class Holder:
    """An argument with tensors, as an error names it, and where it is declared."""

    name: str
    declared: Span = NOWHERE


def one_device(function: str, holders: Sequence[Holder], values: Sequence[Any]) -> torch.device:
    """Return the one device of all tensors among (nested) values, one for each holder; cpu if there
    is none. Raises RunError when there are several."""
    found = _devices(values)
    if len(found) > 1:
        raise RunError(_mixed(function, holders, values))
    return next(iter(found.values()), CPU)


def common_device(values: Sequence[Any]) -> torch.device | None:
    """Return the device of all tensors among (nested) values; None if there are none, or
    several."""
    found = _devices(values)
    return next(iter(found.values())) if len(found) == 1 else None


def _devices(values: Sequence[Any]) -> dict[str, torch.device]:
    found = (v.device for v in distinct(values, _opened) if isinstance(v, torch.Tensor))
    return {str(device): device for device in found}


def _opened(value: Any) -> Sequence[Any]:
    if isinstance(value, annotations.Ref | Cell):
        return (value.value,)
    if not is_frozen(value):
        return parts(value) if isinstance(value, tuple | list) else ()
    # Of data the first tensor decides; the others are compared when they are checked.
    first = next(distinct_tensors([value]), None)
    return () if first is None else (first,)


def _mixed(function: str, holders: Sequence[Holder], values: Sequence[Any]) -> MixedDevices:
    pairs = zip(holders, values, strict=True)
    placed = [(h.name, h.declared, tuple(sorted(_devices([v])))) for h, v in pairs]
    names = sorted({d for _, _, found in placed for d in found})
    # The target is a GPU where one takes part at all.
    target = next((d for d in names if d not in ("cpu", "meta")), names[0])
    return MixedDevices(function, tuple(dict.fromkeys(p for p in placed if p[2])), target)


def device_named(given: str | torch.device) -> torch.device:
    """Return a device by its name, if tensors can be put there. Raises RunError if they cannot:
    it is never replaced by another device."""
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
