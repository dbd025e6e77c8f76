"""Instances of data types that were found to fit, remembered while they live.

A frozen instance whose parts are frozen too, down to numbers, texts and tensors, fits for good: the
next call that gets it need not walk over it. Tensors are compared again, since their shape, dtype
and device can change in place. Instances with a list in them, or a size of the call in their types,
are never remembered. Nor are those inside of another without data in them, which are checked in the
time that it takes to look them up.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, final
from weakref import ref

if TYPE_CHECKING:
    from collections.abc import Sequence

    import torch


@final
@dataclass(frozen=True, slots=True, eq=False)
class Known:
    """The result of the walk over an instance.

    `host` is what compiled code takes in its place, None for the instance itself; `given` are the
    tensors of rank 0 in the instance with the dtypes they must have; `leaves` all tensors of the
    host value.
    """

    host: Any = None
    given: tuple[tuple[torch.Tensor, torch.dtype], ...] = ()
    leaves: Sequence[torch.Tensor] = ()
    device: torch.device | None = None

    def fits(self, device: torch.device) -> bool:
        """Return whether the instance fits a call on a device, as its tensors are now."""
        if self.device is not None and self.device != device:
            return False
        for tensor, dtype in self.given:
            if tensor.dtype is not dtype or tensor.dim() or tensor.device != device:
                return False
        return True


SETTLED: Final = Known()
"""The entry of an instance without tensors that needs no conversion."""


class _Entry(ref[Any]):
    """A weak reference to an instance, with its identity and what is known of it."""

    __slots__ = ("key", "known")

    key: int
    known: Known


@final
class Remembered:
    """The entries of the instances of one type, by identity."""

    def __init__(self) -> None:
        self._found: Final[dict[int, _Entry]] = {}

    def __len__(self) -> int:
        return len(self._found)

    def get(self, value: object) -> Known | None:
        """Return what is known of an instance."""
        found = self._found.get(id(value))
        return found.known if found is not None and found() is value else None

    def add(self, value: object, known: Known) -> None:
        """Remember an instance, whose class must allow weak references."""
        entry = _Entry(value, self._forget)
        entry.key, entry.known = id(value), known
        self._found[entry.key] = entry

    def _forget(self, entry: ref[Any]) -> None:
        assert isinstance(entry, _Entry)
        if self._found.get(entry.key) is entry:
            del self._found[entry.key]
