"""Whether tensors are still as they were: their classes, dtypes, shapes, strides and devices;
whether they require gradients; and whether torch casts, transforms, traces or shows to a mode what
is done with them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final, TypeAlias, final

import torch

_torch: Any = torch
_Guards: Final = _torch._C._dynamo.guards.TensorGuards  # noqa: SLF001  it has no public name
"""Compares tensors in a fifth of the time that reading them in Python takes."""


Alike: TypeAlias = Callable[..., bool]
"""Returns whether as many tensors have the properties of others."""


def alike(tensors: Sequence[torch.Tensor]) -> Alike:
    """Return the comparison with tensors, none of which it keeps. They lie in memory in the same
    way then: what may read some may read the others. It is `never` where a tensor is there twice,
    which the comparison does not allow."""
    guards = _Guards(*tensors, dynamic_dims_sizes=None, dynamic_dims_strides=None)
    check: Alike = guards.check
    return check if check(*tensors) else never


def never(*_: torch.Tensor) -> bool:
    """Return False: no tensors are alike."""
    return False


@final
class Likeness:
    """The properties of some tensors, none of which it keeps. A copy, as of a model, has those of
    no tensors yet."""

    __slots__ = ("_check",)

    def __init__(self, tensors: Sequence[torch.Tensor] = ()) -> None:
        self._check: Callable[..., bool] | None = None
        if tensors:
            guards = _Guards(*tensors, dynamic_dims_sizes=None, dynamic_dims_strides=None)
            self._check = guards.check

    def __reduce__(self) -> tuple[type[Likeness], tuple[()]]:
        return Likeness, ()

    def holds(self, tensors: Sequence[torch.Tensor]) -> bool:
        """Return whether as many tensors have the same properties."""
        return not tensors if self._check is None else self._check(*tensors)
