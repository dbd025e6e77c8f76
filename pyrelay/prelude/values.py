"""Data of the prelude as Python objects: what scripts get, give, and take apart with `match`.

A list keeps its elements in one tuple, so a long one is indexed, iterated and freed without
recursion; the rest of a list is a view of the same tuple.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, ClassVar, Final, Generic, NoReturn, TypeVar, final, overload

T_co = TypeVar("T_co", covariant=True)


class List(Generic[T_co]):
    """An immutable list: `Cons(head, tail)` or `Nil()`. In annotations, `List[T]`.

    >>> List.of([1, 2, 3])
    List([1, 2, 3])
    >>> Cons(1, Cons(2, Nil()))[-1]
    2
    """

    __slots__ = ("_items", "_start")
    _items: tuple[T_co, ...]
    _start: int

    def __init__(self, *_: Any) -> None:
        raise TypeError("a list is made by `Cons(head, tail)`, `Nil()` or `List.of(items)`")

    @staticmethod
    def of(items: Iterable[Any]) -> List[Any]:
        """Return the list of elements."""
        return _view(tuple(items), 0)

    def to_list(self) -> list[T_co]:
        """Return the elements as a list of Python's own."""
        return list(self._items[self._start :])

    def __iter__(self) -> Iterator[T_co]:
        items = self._items
        return (items[i] for i in range(self._start, len(items)))

    def __len__(self) -> int:
        return len(self._items) - self._start

    @overload
    def __getitem__(self, index: int) -> T_co: ...
    @overload
    def __getitem__(self, index: slice) -> List[T_co]: ...
    def __getitem__(self, index: int | slice) -> T_co | List[T_co]:
        if isinstance(index, slice):
            return List.of(self._items[self._start :][index])
        count = len(self)
        if not -count <= index < count:
            raise IndexError(f"index {index} of a list of length {count}")
        return self._items[self._start + index % count]

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, List | list):
            return NotImplemented
        others: Any = other
        return len(self) == len(others) and all(map(_is_equal, self, others))

    __hash__: ClassVar[None] = None  # pyright: ignore[reportIncompatibleMethodOverride]

    def __repr__(self) -> str:
        return f"List({self.to_list()!r})"

    def __reduce__(self) -> Any:
        return List.of, (self.to_list(),)

    def __setattr__(self, name: str, value: Any) -> NoReturn:
        raise AttributeError("a list does not change")


@final
class Cons(List[T_co]):
    """A list of at least one element."""

    __slots__ = ()
    __match_args__ = ("head", "tail")

    def __new__(cls, head: Any, tail: Iterable[Any]) -> Cons[Any]:
        """Return the list with an element in front."""
        found = _view((head, *tail), 0)
        assert isinstance(found, Cons)
        return found

    def __init__(self, head: Any, tail: Iterable[Any]) -> None: ...

    @property
    def head(self) -> T_co:
        """The first element."""
        return self._items[self._start]

    @property
    def tail(self) -> List[T_co]:
        """The list after the first element."""
        return _view(self._items, self._start + 1)


@final
class Nil(List[Any]):
    """The empty list."""

    __slots__ = ()
    __match_args__ = ()

    def __new__(cls) -> Nil:
        """Return the empty list."""
        found = _view((), 0)
        assert isinstance(found, Nil)
        return found

    def __init__(self) -> None: ...


@final
class Option(Generic[T_co]):
    """In annotations, `Option[T]`: None or a `T`, as `T | None` is. It may be of an optional, which
    `T | None | None` is not."""

    def __init__(self, *_: Any) -> None:
        raise TypeError("an optional is made by `Some(value)` or `Nothing()`")


@final
class Present:
    """The result of `Some(value)` where the value is None or such an object itself: an optional
    that has it. An optional that has any other value is that value."""

    __slots__ = ("value",)
    __match_args__ = ("value",)

    def __init__(self, value: Any) -> None:
        self.value: Final = value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Present) and _is_equal(self.value, other.value)

    def __hash__(self) -> int:
        return hash((Present, self.value))

    def __repr__(self) -> str:
        return f"Some({self.value!r})"


def some(value: Any) -> Any:
    """Return a value as an optional that has it."""
    return Present(value) if value is None or type(value) is Present else value


def some_value(value: Any) -> Any:
    """Return the value of an optional that has one."""
    return value.value if type(value) is Present else value


@final
@dataclass(frozen=True, slots=True)
class Rose(Generic[T_co]):
    """A tree: a value and any number of trees below it. In annotations, `Tree[T]`."""

    value: T_co
    children: List[Rose[T_co]] | list[Rose[T_co]]


class Nat:
    """A natural number, `Zero()` or `Succ(n)`; `int(n)` is the number."""

    __slots__ = ()

    def __int__(self) -> int:
        count, rest = 0, self
        while isinstance(rest, Succ):
            count, rest = count + 1, rest.less
        return count


@final
@dataclass(frozen=True, slots=True)
class Zero(Nat):
    """The natural number 0."""


@final
@dataclass(frozen=True, slots=True)
class Succ(Nat):
    """The natural number after another."""

    less: Nat


def _view(items: tuple[Any, ...], start: int) -> List[Any]:
    found: List[Any] = object.__new__(Cons if start < len(items) else Nil)
    object.__setattr__(found, "_items", items)
    object.__setattr__(found, "_start", start)
    return found


def _is_equal(left: Any, right: Any) -> bool:
    """Return whether two elements are equal: tensors in shape and every element."""
    if left is right:
        return True
    if getattr(left, "shape", ()) != getattr(right, "shape", ()):
        return False
    same: Any = left == right
    return bool(same.all()) if hasattr(same, "all") else bool(same)
