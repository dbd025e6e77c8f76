"""Instances of data types that were found to fit, remembered while they live.

A frozen instance whose parts are frozen too, down to numbers, texts and tensors, fits for good: the
next call that gets it need not walk over it. Tensors are compared again, since their shape, dtype
and device can change in place. Instances with a list in them, or a size of the call in their types,
are never remembered.
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


class _Key(ref[Any]):
    """A weak reference that knows the identity of its instance."""

    __slots__ = ("key",)

    key: int


@final
class Remembered:
    """The entries of the instances of one type, by identity."""

    def __init__(self) -> None:
        self._found: Final[dict[int, tuple[_Key, Known]]] = {}

    def __len__(self) -> int:
        return len(self._found)

    def get(self, value: object) -> Known | None:
        """Return what is known of an instance."""
        found = self._found.get(id(value))
        return found[1] if found is not None and found[0]() is value else None

    def add(self, value: object, known: Known) -> None:
        """Remember an instance, whose class must allow weak references."""
        key = _Key(value, self._forget)
        key.key = id(value)
        self._found[key.key] = (key, known)

    def _forget(self, key: ref[Any]) -> None:
        assert isinstance(key, _Key)
        found = self._found.get(key.key)
        if found is not None and found[0] is key:
            del self._found[key.key]
