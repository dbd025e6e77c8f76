"""The binding of each local name of a function at one place of its source.

One table with a log: a branch is translated on the same table and then undone, so the cost of a
program with many branches stays linear.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final, TypeAlias, final

from ...dataclass import dataclass
from ...diagnostics.source import Span
from ...ir.expr import Expr
from ...ir.types import Type
from .model_origins import ModelOrigin
from .models import ModelInstance

if TYPE_CHECKING:
    from ..data.data import DataConstructor


@final
@dataclass(frozen=True, slots=True)
class Static:
    """A Python value known before the program runs.

    `exact` is False for one read from an object that could change without a guard noticing.
    """

    value: Any
    exact: bool = True


@final
@dataclass(frozen=True, slots=True)
class LocalFunction:
    """The signature of a local function: its parameters, and which of them have defaults.

    `node` is the syntax of a nested `def`, for where it is differentiated in a model; None for what
    a transform such as `relay.grad` or `relay.with_params` returns.
    """

    name: str
    params: tuple[str, ...]
    defaults: Mapping[str, Expr]
    node: ast.FunctionDef | None
    of_record: bool = False
    """Whether its first parameter is a record of parameters, of `relay.with_params`."""
    statics: tuple[str, ...] = ()
    """The static parameters of the function that is transformed."""
    made: ast.Call | None = None
    """The call of the transform, for where it is called with static arguments."""


@final
@dataclass(frozen=True, slots=True)
class Alias:
    """Another place that may hold the same tensor as a name."""

    span: Span
    why: str


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Bound:
    """A name that has a value: a variable, or a Python value known before the program runs."""

    atom: Expr | None = None
    static: Static | None = None
    model: ModelInstance | None = None
    places: tuple[ModelOrigin, ...] = ()
    """Where the model may come from."""
    record: ModelInstance | None = None
    """The model of whose parameters the value is a record (or of their gradients)."""
    items: Bound | None = None
    """The binding of the elements of a list of models or of records."""
    function: LocalFunction | None = None
    holder: Alias | None = None
    stream: tuple[Any, ...] | None = None
    """The description of its elements, of an iterable."""
    declared: Type | None = None
    """The type of the value as it is declared elsewhere, as that of a field is."""
    constructor: DataConstructor | None = None
    """Its class, where a test has shown it."""
    parts: Mapping[str, Bound] | None = None
    """The fields of a value whose class a test has shown."""
    narrowed: Mapping[str, Bound] | None = None
    """The parts that tests have narrowed, by field or by index in brackets, where the class is
    unknown."""
    excluded: tuple[DataConstructor, ...] = ()
    """The classes that tests have excluded."""


def either(left: Bound, right: Bound) -> Bound:
    """Return the facts about a name that has one of two values."""
    return Bound(
        model=left.model if left.model == right.model else None,
        places=tuple(dict.fromkeys((*left.places, *right.places))),
        record=left.record if left.record == right.record else None,
        items=left.items if left.items == right.items else None,
        function=left.function if left.function is right.function else None,
        holder=left.holder or right.holder,
        stream=left.stream if left.stream == right.stream else None,
    )


@final
@dataclass(frozen=True, slots=True)
class Unbound:
    """A local name without a value: where it would get one, and why it has none here."""

    place: Span
    path: str
    is_outer: bool = False
    """Whether a function around has a name like this, which has a value."""


Entry: TypeAlias = Bound | Unbound


@final
class Environment:
    """The local names in scope."""

    def __init__(self) -> None:
        self._entries: Final[dict[str, Entry]] = {}
        self._log: Final[list[tuple[str, Entry | None]]] = []
        self.version = 0
        """Grows with every change, so that what was found out of the names can be kept."""

    def find(self, name: str) -> Entry | None:
        """Return the entry of a name; None when it is not local."""
        return self._entries.get(name)

    def set(self, name: str, entry: Entry) -> None:
        """Make a name stand for something else from here on."""
        self._log.append((name, self._entries.get(name)))
        self._entries[name] = entry
        self.version += 1

    def touch(self) -> None:
        """Record facts about a name that were found elsewhere."""
        self.version += 1

    def mark(self) -> int:
        """Return a place in the log to return to."""
        return len(self._log)

    def changed(self, mark: int) -> dict[str, Entry | None]:
        """Return the former entries of the names that have changed since a mark."""
        before: dict[str, Entry | None] = {}
        for name, entry in self._log[mark:]:
            before.setdefault(name, entry)
        return before

    def undo(self, mark: int) -> None:
        """Forget all changes since a mark."""
        self.version += 1
        while len(self._log) > mark:
            name, entry = self._log.pop()
            if entry is None:
                del self._entries[name]
            else:
                self._entries[name] = entry

    def names(self) -> Iterator[str]:
        """Return the local names."""
        return iter(self._entries)
