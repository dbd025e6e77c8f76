"""Tensors of rank 0 in the place of numbers of Python.

Torch takes over a microsecond for one, and less than half of that for each of many that are made
at once. So they are made in advance, as the elements of a row, into which numbers are written.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Generator, Sequence
from contextlib import AbstractContextManager
from typing import Any, Final, TypeAlias, final

import numpy as np
import torch

_torch: Any = torch
_VIEWS: Final = _torch._C.DispatchKeySet(_torch._C.DispatchKey.ADInplaceOrView)  # noqa: SLF001  it has no public name

_SIZES: Final = range(256, 1025)
"""The lengths of rows: each that a call needs is twice as long as the one before."""

_LEAST: Final = 16
"""The length of the first row of a supply that ends with its call."""

_FEW: Final = 32
"""How many numbers are not worth a row of their own."""


def _untracked() -> AbstractContextManager[object]:
    """Make tensors of which torch does not note that they are views, in a `with` block: a quarter
    of the time of many small ones."""
    return _torch._C._ExcludeDispatchKeyGuard(_VIEWS)  # noqa: SLF001  it has no public name


def tensors_of(
    numbers: Sequence[float], dtype: torch.dtype, device: torch.device
) -> Sequence[torch.Tensor]:
    """Return the tensors that numbers become, made at once."""
    array = torch.from_numpy(np.array(numbers))  # torch.tensor takes three times as long
    row = array.to(device, dtype)
    with _untracked():
        return row.unbind()


@final
class Supply:
    """Tensors of one dtype on one device, without end. `put` returns the next one, which has the
    number that is given to it when the call ends."""

    def __init__(self, dtype: torch.dtype, device: torch.device) -> None:
        self.lasts: Final = device.type == "cpu" and dtype is not torch.bfloat16
        """Whether numbers are written at once, as NumPy can, and other calls may use the rest. On
        another device a row belongs to a stream, or to a graph that is captured."""
        self._dtype: Final = dtype
        self._device: Final = device
        self._size = _SIZES[0] if self.lasts else _LEAST
        self._row = torch.empty(0)
        self._numbers: Any = None
        """Where the numbers are put: the memory of the row, or what is copied there."""
        self._made: Final[list[torch.Tensor]] = []
        endless = self._endless()
        next(endless)
        self.put: Final = endless.send

    def _endless(self) -> Generator[Any, float, None]:
        tensor = None
        while True:
            tensors = self._renewed()
            numbers, note = self._numbers, self._made.append
            for place, following in enumerate(tensors):
                numbers[place] = yield tensor
                note(following)
                tensor = following

    def _renewed(self) -> Sequence[torch.Tensor]:
        """Return the elements of the next row. It may outlive this call, so it is one for any mode
        of torch."""
        self._write()
        with torch.inference_mode(mode=False):
            self._row = torch.empty(self._size, dtype=self._dtype, device=self._device)
            with _untracked():
                tensors = self._row.unbind()
        self._numbers = self._row.numpy() if self.lasts else [0.0] * self._size
        if self.lasts and self._dtype is not torch.float16:
            self._numbers = memoryview(self._numbers)  # an item is set in half of the time
        self._size = min(2 * self._size, _SIZES[-1])
        return tensors

    def _write(self) -> None:
        if isinstance(self._numbers, list):
            self._row.copy_(torch.tensor(self._numbers, dtype=self._dtype))

    def taken(self) -> list[torch.Tensor]:
        """Return the tensors that were taken since the last time, in order."""
        found = self._made[:]
        self._made.clear()
        return found

    def of(self, numbers: Sequence[float]) -> Sequence[torch.Tensor]:
        """Return the tensors that numbers become."""
        if len(numbers) > _FEW:
            return tensors_of(numbers, self._dtype, self._device)
        return [*map(self.put, numbers)]

    def close(self) -> None:
        """End a call."""
        if not self.lasts:
            self._write()
        self._made.clear()
        self._size = _SIZES[0]


Supplies: TypeAlias = dict[torch.dtype, Supply]
"""The supplies of one call, by dtype."""

_SPARE: Final[defaultdict[torch.dtype, list[Supply]]] = defaultdict(list)
"""What is left of the supplies of calls on the CPU."""


def supply_of(supplies: Supplies, dtype: torch.dtype, device: torch.device) -> Supply:
    """Return the supply of a call that has none of a dtype yet."""
    try:
        found = _SPARE[dtype].pop() if device.type == "cpu" else Supply(dtype, device)
    except IndexError:  # another thread may have been faster than a test of the length
        found = Supply(dtype, device)
    supplies[dtype] = found
    return found


def close(supplies: Supplies) -> None:
    """End a call."""
    for dtype, supply in supplies.items():
        supply.close()
        if supply.lasts:
            _SPARE[dtype].append(supply)
