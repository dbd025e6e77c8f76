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

_LENGTH: Final = 512
"""The length of the rows of a supply that lasts."""

_LENGTHS: Final = range(16, 1025)
"""The lengths of the rows of a supply that ends with its call: each is twice as long as the one
before."""

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
    number that is given to it once the supply is closed."""

    def __init__(self, dtype: torch.dtype, device: torch.device) -> None:
        self.lasts: Final = device.type == "cpu" and dtype is not torch.bfloat16
        """Whether numbers are written at once, as NumPy can, and other calls may use the rest. On
        another device a row belongs to a stream, or to a graph that is captured."""
        self.dtype: Final = dtype
        self._device: Final = device
        self._length = _LENGTH if self.lasts else _LENGTHS[0]
        self._row = torch.empty(0)
        self._numbers: Any = []
        """Where the numbers are put: the memory of the row, or what is copied there."""
        endless = self._endless()
        next(endless)
        self.put: Final = endless.send

    def _endless(self) -> Generator[Any, float, None]:
        tensor = None
        while True:
            tensors = self._renewed()
            numbers = self._numbers
            for place, following in enumerate(tensors):
                numbers[place] = yield tensor
                tensor = following

    def _renewed(self) -> Sequence[torch.Tensor]:
        """Return the elements of the next row. It may outlive this call, so it is one for any mode
        of torch."""
        self.write()
        with torch.inference_mode(mode=False):
            self._row = torch.empty(self._length, dtype=self.dtype, device=self._device)
            with _untracked():
                tensors = self._row.unbind()
        self._numbers = self._row.numpy() if self.lasts else [0.0] * self._length
        if self.lasts and self.dtype is not torch.float16:
            self._numbers = memoryview(self._numbers)  # an item is set in half of the time
        if not self.lasts:
            self._length = min(2 * self._length, _LENGTHS[-1])
        return tensors

    def write(self) -> None:
        """Write the numbers of a supply that ends with its call into their row."""
        if not self.lasts:
            self._row.copy_(torch.tensor(self._numbers, dtype=self.dtype))


Supplies: TypeAlias = dict[torch.dtype, Supply]
"""The supplies of one call, by dtype."""

_SPARE: Final[defaultdict[torch.device, list[Supplies]]] = defaultdict(list)
"""What is left of the supplies of calls, by device."""


def borrowed(device: torch.device) -> Supplies:
    """Return supplies that no other call has now."""
    try:
        return _SPARE[device].pop()
    except IndexError:  # another thread may have been faster than a test of the length
        return {}


def supply_of(supplies: Supplies, dtype: torch.dtype, device: torch.device) -> Supply:
    """Return the supply of tensors of a dtype, which is made if there is none."""
    found = supplies.get(dtype)
    if found is None:
        found = supplies[dtype] = Supply(dtype, device)
    return found


def made_of(
    numbers: Sequence[float], dtype: torch.dtype, device: torch.device
) -> Sequence[torch.Tensor]:
    """Return the tensors that numbers become: a few from a supply, many made at once."""
    if len(numbers) > _FEW:
        return tensors_of(numbers, dtype, device)
    supplies = borrowed(device)
    try:
        return [*map(supply_of(supplies, dtype, device).put, numbers)]
    finally:
        returned(supplies, device)


def returned(supplies: Supplies, device: torch.device) -> None:
    """End a call that has borrowed supplies."""
    for supply in [s for s in supplies.values() if not s.lasts]:
        supply.write()
        del supplies[supply.dtype]
    _SPARE[device].append(supplies)
