"""Modules that are loaded when they are first used.

A process that finds its programs on disk needs no inference, passes or generators of text, which
are half of the package. Modules at the border of these import them for type checkers alone:

    if TYPE_CHECKING:
        from ... import infer
    else:
        infer = LazyModule("pyrelay.infer")

A test checks that both name the same module.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from importlib import import_module
from typing import Any, Final, TypeVar, final, overload

T = TypeVar("T")


@final
class LazyModule:
    """A module that is loaded when one of its names is first looked up."""

    def __init__(self, name: str) -> None:
        """`name` is the whole name of the module."""
        self._name: Final = name

    def __getattr__(self, name: str) -> Any:
        return getattr(import_module(self._name), name)


@final
class LazySequence(Sequence[T]):
    """A sequence that is made when it is first looked at."""

    def __init__(self, make: Callable[[], Sequence[T]]) -> None:
        self._make: Final = make

    @cached_property
    def _items(self) -> Sequence[T]:
        return self._make()

    @overload
    def __getitem__(self, index: int) -> T: ...

    @overload
    def __getitem__(self, index: slice) -> Sequence[T]: ...

    def __getitem__(self, index: int | slice) -> T | Sequence[T]:
        return self._items[index]

    def __len__(self) -> int:
        return len(self._items)

    def __iter__(self) -> Iterator[T]:
        return iter(self._items)
