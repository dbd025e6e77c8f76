"""Instances of data types that were found to fit, remembered while they live.

A frozen instance whose parts are frozen too, down to numbers, texts and tensors, fits for good: the
next call that gets it need not walk over it. What can change in place is compared again: the shape,
dtype and device of its tensors, and the length and the elements of its lists, by identity.
Instances with a size of the call in their types are never remembered, but those with sizes of their
own. Nor are those inside of another without data in them, which are checked in the time that it
takes to look them up.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from operator import attrgetter, is_
from typing import TYPE_CHECKING, Any, Final, TypeAlias, final
from weakref import ref

from ..values.likeness import Likeness

if TYPE_CHECKING:
    import torch

Seen: TypeAlias = tuple[list[Any], tuple[Any, ...]]
"""A list in an instance, with the elements that it had when the instance was walked over."""

_FEW: Final = 1000
"""How many entries may be of instances that are gone, if no more are of living ones."""


def are_same(items: Sequence[Any], seen: Sequence[Any]) -> bool:
    """Return whether a list has the elements that it had."""
    return len(items) == len(seen) and all(map(is_, items, seen))


_REQUIRES_GRAD: Final = attrgetter("requires_grad")


@final
class Known:
    """The result of the walk over an argument.

    `host` is what compiled code takes in its place, None for the argument itself; `tensors` are all
    that are in the host value, on `device`; `given` are those of the script, each once, which are
    compared if the argument `is_kept` for other calls; `lists` are the lists in it.
    """

    __slots__ = (
        "_ids",
        "_likeness",
        "_requires_grad",
        "device",
        "given",
        "host",
        "lists",
        "tensors",
    )

    def __init__(
        self,
        host: Any = None,
        tensors: Sequence[torch.Tensor] = (),
        device: torch.device | None = None,
        given: Sequence[torch.Tensor] = (),
        lists: Sequence[Seen] = (),
        *,
        is_kept: bool = False,
    ) -> None:
        self.host: Final = host
        self.tensors: Final = tensors
        self.device: Final = device
        self.given: Final = given
        self.lists: Final = lists
        self._ids: frozenset[int] | None = None
        self._requires_grad: bool | None = None if given else False
        self._likeness: Final = Likeness(given) if given and is_kept else None

    @property
    def ids(self) -> frozenset[int]:
        """The identities of the tensors in the host value."""
        if self._ids is None:
            self._ids = frozenset(map(id, self.tensors))
        return self._ids

    def fits(self, device: torch.device) -> bool:
        """Return whether the argument fits a call on a device, as its tensors and lists are now."""
        if self.device is not None and self.device != device:
            return False
        for items, seen in self.lists:
            if not are_same(items, seen):
                return False
        return self._likeness is None or self._likeness.holds(self.given)

    @property
    def requires_grad(self) -> bool:
        """Whether a tensor of the script requires a gradient. If one that did not does now, the
        argument is no longer one that `fits`."""
        if self._requires_grad is None:
            self._requires_grad = any(map(_REQUIRES_GRAD, self.given))
        return self._requires_grad


SETTLED: Final = Known()
"""The entry of an instance without tensors that needs no conversion."""


PLAIN: Final = frozenset({list, tuple})
"""The classes of lists that are remembered by their elements."""


@final
class LastList:
    """The last list of numbers that was given for a type, by its elements; whether the last list of
    instances had large ones."""

    __slots__ = ("_elements", "_known", "has_large")

    def __init__(self) -> None:
        self._elements: Sequence[Any] = ()
        self._known: Known | None = None
        self.has_large = False

    def get(self, values: Sequence[Any]) -> Known | None:
        """Return what is known of a list; None if it is not the last one, as it was."""
        known = self._known
        if known is None or type(values) not in PLAIN or not are_same(values, self._elements):
            return None
        return known

    def set(self, values: Sequence[Any], known: Known) -> None:
        """Remember a list in the place of the last one."""
        self._known = None  # a thread may stop in between
        self._elements = tuple(values)
        self._known = known


class _Entry(ref[Any]):
    """A weak reference to an instance, with its identity and what is known of it."""

    __slots__ = ("key", "known")

    key: int
    known: Known


@final
class Remembered:
    """The entries of the instances of one type, by identity."""

    def __init__(self) -> None:
        self.settled: Final[dict[int, ref[Any]]] = {}
        """The instances that are `SETTLED`. Those of instances that are gone are removed now and
        then: a callback for each would cost more than all else that is done for it."""
        self._most = _FEW
        self._found: Final[dict[int, _Entry]] = {}
        self._callback: Final = self._forget  # not bound for each entry

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
        entry = _Entry(value, self._callback)
        key = entry.key = id(value)
        entry.known = known
        self._found[key] = entry

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
