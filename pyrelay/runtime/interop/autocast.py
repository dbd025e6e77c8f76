"""Compiled code under `torch.autocast`: values have the dtypes that their types say."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, TypeVar

import torch

A = TypeVar("A")
R = TypeVar("R")

_torch: Any = torch
_casts: Final[Callable[[], bool]] = getattr(
    _torch._C,  # noqa: SLF001  it has no public name
    "_is_any_autocast_enabled",
    lambda: any(map(torch.is_autocast_enabled, ("cpu", "cuda"))),
)


def as_typed(function: Callable[[A], R], argument: A) -> R:
    """Return the value of a function, inside of which no operator casts what it is given."""
    if not _casts():
        return function(argument)
    with torch.autocast("cpu", enabled=False), torch.autocast("cuda", enabled=False):
        return function(argument)
