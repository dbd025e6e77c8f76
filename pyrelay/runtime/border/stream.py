"""Iterables of a script while compiled code reads them.

The caller's iterator runs as it would in the script: under the script's grad mode, and with its
exceptions passed on as they are. Every element is checked and converted as an argument is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import lru_cache
from typing import Any, Final, TypeAlias, TypeVar, final

import torch

from ...diagnostics.diagnostic import RunError
from ...ir.dims import Dim
from ...ir.types import Type, show
from ...operators.host.stream import ElementError, element_type
from ..values.structure import tensors
from ..values.text import describe

T = TypeVar("T")

Bind: TypeAlias = Callable[[torch.device, Type, Any], Any]
"""The host value of an element of a type on a device. Raises RunError."""


class CallerRaised(BaseException):
    """Carries an exception of the caller's iterator out of the compiled code, which would take any
    other for a failure of its own."""

    def __init__(self, error: Exception) -> None:
        super().__init__(error)
        self.error = error


def as_raised(run: Callable[[Sequence[Any]], T], values: Sequence[Any]) -> T:
    """Return the value of `run`; an exception of the caller's iterator is raised as it was."""
    try:
        return run(values)
    except CallerRaised as raised:
        error = raised.error
    raise error  # outside of the handler, which would become its context


@final
class Stream:
    """The host value of a parameter that is an iterable."""

    def __init__(self, items: Iterable[Any], bind: Bind) -> None:
        self._bind: Final = bind
        self.storages: Final[set[int]] = set()
        """Where the elements given so far lay, so that no result shares memory with them."""
        self._items: Final = items
        self._has_grad: Final = torch.is_grad_enabled()

    def start(self) -> Elements:
        """Begin to iterate."""
        return Elements(self, self.in_script(lambda: iter(self._items)))

    def bound(self, device: torch.device, ty: Type, value: Any) -> Any:
        """Return the host value of an element. Raises RunError."""
        return self._bind(device, ty, value)

    def in_script(self, step: Callable[[], T]) -> T:
        """Run code of the caller's. Raises CallerRaised."""
        try:
            with torch.set_grad_enabled(self._has_grad):
                return step()
        except Exception as error:
            raise CallerRaised(error) from None

    def is_detached(self, found: torch.Tensor) -> bool:
        """Return whether a tensor gets no gradient that would be lost in compiled code."""
        return not (self._has_grad and found.requires_grad)


@final
class Elements:
    """An iterator, and the element it took last."""

    def __init__(self, stream: Stream, items: Iterator[Any]) -> None:
        self._stream: Final = stream
        self._items: Final = items
        self._current: Any = None
        self._position = -1

    def advance(self) -> bool:
        """Take the next element; return whether there was one."""
        self._current = self._stream.in_script(lambda: next(self._items, _END))
        self._position += 1
        return self._current is not _END

    def element(self, device: torch.device, description: tuple[Any, ...]) -> Any:
        """Return the element as a host value. Raises ElementError if it is not as described."""
        ty = _type(description)
        try:
            found = self._stream.bound(device, ty, self._current)
        except RunError as error:
            raise self._mistake(ty, error.diagnostics[0].help) from None
        for tensor in tensors(found):
            if tensor.device != device:
                raise self._mistake(ty, f"move it: x.to({str(device)!r})", f" on {tensor.device}")
            if not self._stream.is_detached(tensor):
                way = "give x.detach(): no gradient goes back into an iterable"
                raise self._mistake(ty, way, " that requires grad")
            self._stream.storages.add(tensor.untyped_storage().data_ptr())
        return found

    def _mistake(self, ty: Type, way: str | None, state: str = "") -> ElementError:
        return ElementError(self._position, show(ty), describe(self._current) + state, way)


_END: Final = object()


@lru_cache(maxsize=1024)
def _type(description: tuple[Any, ...]) -> Type:
    return element_type(description, Dim.of)
