"""Instances of data types that were found to fit, remembered while they live.

A frozen instance whose parts are frozen too, down to numbers, texts and tensors, fits for good: the
next call that gets it need not walk over it. Tensors are compared again, since their shape, dtype
and device can change in place. Instances with a list in them, or a size of the call in their types,
are never remembered. Nor are those inside of another without data in them, which are checked in the
time that it takes to look them up.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, TypeAlias, final
from weakref import ref

if TYPE_CHECKING:
    from collections.abc import Sequence

    import torch

Given: TypeAlias = "tuple[torch.Tensor, torch.dtype, Sequence[int | None]]"
"""A tensor in an instance, with the dtype and the shape that it must have."""

_FEW: Final = 1000
"""How many entries may be of instances that are gone, if no more are of living ones."""


@final
@dataclass(frozen=True, slots=True, eq=False)
class Known:
    """The result of the walk over an instance.

    `host` is what compiled code takes in its place, None for the instance itself; `given` are the
    tensors in the instance; `leaves` all tensors of the host value.
    """

    host: Any = None
    given: tuple[Given, ...] = ()
    leaves: Sequence[torch.Tensor] = ()
    device: torch.device | None = None

    def fits(self, device: torch.device) -> bool:
        """Return whether the instance fits a call on a device, as its tensors are now."""
        if self.device is not None and self.device != device:
            return False
        for tensor, dtype, shape in self.given:
            if tensor.dtype is not dtype or tensor.shape != shape or tensor.device != device:
                return False
        return True


SETTLED: Final = Known()
"""What is known of an instance without tensors that needs no conversion."""


class _Entry(ref[Any]):
    """A weak reference to an instance, with its identity and what is known of it."""

    __slots__ = ("key", "known")

    key: int
    known: Known


@final
class Remembered:
    """What is known of the instances of one type, by identity."""

    def __init__(self) -> None:
        self.settled: Final[dict[int, ref[Any]]] = {}
        """The instances that are `SETTLED`. Those of instances that are gone are removed now and
        then: a callback for each would cost more than all else that is done for it."""
        self._most = _FEW
        self._found: Final[dict[int, _Entry]] = {}

    def __len__(self) -> int:
        self._remove_gone()
        return len(self.settled) + len(self._found)

    def get(self, value: object) -> Known | None:
        """Return what is known of an instance."""
        settled = self.settled.get(id(value))
        if settled is not None and settled() is value:
            return SETTLED
        found = self._found.get(id(value))
        return found.known if found is not None and found() is value else None

    def add(self, value: object, known: Known) -> None:
        """Remember an instance, whose class must allow weak references."""
        if known is SETTLED:
            self.settle({id(value): value})
            return
        entry = _Entry(value, self._forget)
        entry.key, entry.known = id(value), known
        self._found[entry.key] = entry

    def settle(self, values: Mapping[int, object]) -> None:
        """Remember instances, by identity, as `SETTLED`."""
        self.settled.update(zip(values, map(ref, values.values()), strict=True))
        if len(self.settled) > self._most:
            self._remove_gone()
            self._most = 2 * len(self.settled) + _FEW

    def _remove_gone(self) -> None:
        for key, entry in list(self.settled.items()):
            if entry() is None:
                del self.settled[key]

    def _forget(self, entry: ref[Any]) -> None:
        assert isinstance(entry, _Entry)
        if self._found.get(entry.key) is entry:
            del self._found[entry.key]
