"""Storage with guards: what nobody wrote is poison, and what is written beside it shows.

Floats are poisoned with NaN and integers with a number that no sample has. Bytes on both sides of a
tensor are all ones, which is NaN for every float; they must be so afterwards too.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import Any, Final, final

import torch

from pyrelay.lower_triton.launching.prepare import Storage
from pyrelay.lower_triton.launching.tape import Slot

WIDTH: Final = int(os.environ.get("KERNELS_GUARD", "256"))
"""Bytes on each side: a power of two, so that what lies between is aligned as it would be; none
where a program looks for accesses out of bounds itself."""

ONES: Final = 0xFF
POISON: Final = 0x5A
"""Every byte of an integer that was not written."""


@final
class Guards:
    """The tensors that were made, and how they are made."""

    def __init__(self) -> None:
        self._made: Final[list[torch.Tensor]] = []

    def empty(self, shape: Sequence[int], dtype: torch.dtype, device: torch.device) -> torch.Tensor:
        """Return a tensor full of poison, between guards."""
        count = torch.Size(shape).numel()
        whole = torch.empty(2 * WIDTH + count * dtype.itemsize, dtype=torch.uint8, device=device)
        whole.fill_(ONES)
        self._made.append(whole)
        inner = whole[WIDTH : WIDTH + count * dtype.itemsize]
        if dtype.is_floating_point:
            return inner.view(dtype).view(shape)  # all ones is NaN
        return inner.fill_(1 if dtype == torch.bool else POISON).view(dtype).view(shape)

    def zeros(self, shape: Sequence[int], dtype: torch.dtype, device: torch.device) -> torch.Tensor:
        """Return zeros between guards."""
        return self.empty(shape, dtype, device).zero_()

    def copy(self, value: Any, device: torch.device) -> Any:
        """Return a tensor with the elements and the strides of another; what lies between elements
        is poison. What is no tensor is given as it is."""
        if not isinstance(value, torch.Tensor):
            return value
        if value.numel() == 0:
            return self.empty((0,), value.dtype, device).as_strided(value.shape, value.stride())
        reach = sum((n - 1) * s for n, s in zip(value.shape, value.stride(), strict=True))
        flat = self.empty((reach + 1,), value.dtype, device)
        taken = torch.arange(reach + 1).as_strided(value.shape, value.stride()).reshape(-1)
        flat[taken.to(device)] = value.reshape(-1).to(device)
        return flat.as_strided(value.shape, value.stride())

    def storage(self, note: Callable[[torch.Tensor], None]) -> Callable[..., torch.Tensor]:
        """Return what makes the storage of a call, in the place of `Storage.make`; what holds
        nothing yet is noted."""

        def make(plan: Storage, device: torch.device) -> torch.Tensor:
            if plan.starts_zero:
                return self.zeros(plan.shape, plan.dtype, device)
            made = self.empty(plan.shape, plan.dtype, device)
            note(made)
            return made

        return make

    def arena(self, count: int, device: torch.device) -> torch.Tensor:
        """Return the arena of a run, in the place of `tape.make_arena`."""
        return self.empty((count,), torch.uint8, device)

    def slot(
        self, slot_of: Callable[..., torch.Tensor], note: Callable[[torch.Tensor], None]
    ) -> Callable[..., torch.Tensor]:
        """Return what gives a value its place in the arena, in the place of `tape.slot_of`: poison,
        so that a value that is still needed there would show."""

        def poisoned(arena: torch.Tensor, slot: Slot) -> torch.Tensor:
            made = slot_of(arena, slot)
            made.copy_(self.empty(made.shape, made.dtype, made.device))
            if not slot.storage.starts_zero:
                note(made)
            return made

        return poisoned

    def check(self) -> None:
        """Fail if something was written beside a tensor; forget those that were made."""
        made = self._made.copy()
        self._made.clear()
        for whole in made:
            sides = torch.cat([whole[:WIDTH], whole[len(whole) - WIDTH :]])
            wrong = (sides != ONES).nonzero().flatten().tolist()
            assert not wrong, f"bytes beside a tensor of {len(whole) - 2 * WIDTH} were written"
