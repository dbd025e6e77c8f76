"""Functions whose program is known already: what `relay.specialise` returns, functions of texts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field
from typing import TypeAlias, final

from ...dataclass import dataclass
from ...ir.expr import Constant, Function
from ...ir.module import Module

Made: TypeAlias = Sequence[tuple[type, tuple[str, ...]]]
"""The classes of the constructors of a data type, with the names of their fields."""


@final
@dataclass(frozen=True, slots=True, eq=False)
class Residual:
    """A function with a program of its own, which programs that mention it take over.

    `classes` are the users' classes of its data types. `fixed` are the arguments for its last
    parameters, None for one that a program cannot contain. `made` are the classes that were made
    for the data types of a text.
    """

    name: str
    module: Module
    entry: str
    classes: Mapping[str, Sequence[type]]
    fixed: tuple[Constant | None, ...]
    made: Mapping[str, Made] = field(default_factory=dict[str, Made])

    @property
    def function(self) -> Function:
        """The entry of the program."""
        return self.module.functions[self.entry]

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the parameters that calls pass."""
        params = self.function.params
        return tuple(p.name for p in params[: len(params) - len(self.fixed)])
