"""The interface of the expansion of transforms to those that carry them out."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Protocol, final

from ...dataclass import dataclass
from ...ir.expr import Differentiation, Function, Options, Rule, Var

if TYPE_CHECKING:
    from ...diagnostics.diagnostic import Problem
    from ...diagnostics.source import Span


@final
@dataclass(frozen=True, slots=True)
class Wanted:
    """A transform of a global first-order function that reaches no other transforms. The first
    `captures` parameters of the function stay in front, as they are; the options count from the one
    after."""

    rule: Rule
    function: str
    captures: int
    options: Options
    policy: tuple[str, ...] = ()

    @property
    def differentiation(self) -> Differentiation:
        """The options of a transform that differentiates."""
        assert isinstance(self.options, Differentiation)
        return self.options


class Deriver(Protocol):
    """Defines the functions that transforms of some rules stand for, in a store.

    It is asked for a function after those that this one calls.
    """

    problems: list[Problem]
    """The obstacles found while functions were defined."""

    def obstacles(self, wanted: Wanted, place: Span) -> Iterator[Problem]:
        """Return the obstacles that show before the function is made first-order."""
        ...

    def name(self, wanted: Wanted) -> str:
        """Return the name of the function that a transform stands for, defined once. Raises
        GrowingType."""
        ...


def own_params(function: Function, wanted: Wanted) -> tuple[Var, ...]:
    """Return the parameters of a function that options count."""
    return function.params[wanted.captures :]


def plain_name(name: str) -> str:
    """Return the name of a lifted function as the user knows it."""
    return name.rpartition(".")[2]
