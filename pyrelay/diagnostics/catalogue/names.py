"""Names that mean nothing where they stand, and assignments that would reach outside.

Codes RL100 to RL149, with `language`.
"""

from __future__ import annotations

from typing import Final

from ...dataclass import dataclass
from ..diagnostic import Diagnostic, Fix, Label
from ..misspelt import did_you_mean
from ..source import Span


@dataclass(frozen=True, slots=True)
class UndefinedName:
    """A name is not defined anywhere: no parameter, local, enclosing or global name, no builtin."""

    span: Span
    name: str
    near: str | None = None

    def diagnostic(self) -> Diagnostic:
        """Return the mistake as data."""
        return Diagnostic(
            code="RL101",
            title=f"`{self.name}` is not defined",
            primary=Label(self.span, "no such name here"),
            help=f"import it: `{_IMPORTS[self.name]}`"
            if self.name in _IMPORTS
            else did_you_mean(self.near),
            fix=None if self.near is None or self.name in _IMPORTS else Fix(self.span, self.near),
        )


_IMPORTS: Final = {
    "List": "from pyrelay.prelude import List",
    "Literal": "from typing import Literal",
    "Option": "from pyrelay.prelude import Option",
    "assert_never": "from typing import assert_never",
    "math": "import math",
    "np": "import numpy as np",
    "torch": "import torch",
}
"""Names that programs use and files forget to import."""


@dataclass(frozen=True, slots=True)
class UnboundName:
    """A local name is used where it has no value on some path that leads there."""

    span: Span
    name: str
    place: Span
    path: str
    is_outer: bool = False
    """Whether the function around has a name like this, which the assignment does not mean."""

    def diagnostic(self) -> Diagnostic:
        """Return the mistake as data."""
        before = f"give `{self.name}` a value before"
        apart = (
            f"assigning makes `{self.name}` a name of this function alone: return the new value, "
            "or keep it in `relay.ref(v)`"
        )
        return Diagnostic(
            code="RL105",
            title=f"`{self.name}` is not bound on every path",
            primary=Label(self.span, "used here"),
            secondary=(Label(self.place, self.path),),
            help=apart if self.is_outer else before,
        )


@dataclass(frozen=True, slots=True)
class UnknownAttribute:
    """A value, a module or the `relay` namespace has no attribute or method of that name."""

    span: Span
    owner: str
    name: str
    near: str | None = None
    instead: str | None = None

    def diagnostic(self) -> Diagnostic:
        """Return the mistake as data."""
        return Diagnostic(
            code="RL111",
            title=f"{self.owner} has no `{self.name}`",
            primary=Label(self.span, ""),
            help=self.instead or did_you_mean(self.near),
        )


@dataclass(frozen=True, slots=True)
class OuterAssignment:
    """A function assigns to a name or an object that it captures."""

    span: Span
    name: str

    def diagnostic(self) -> Diagnostic:
        """Return the mistake as data."""
        return Diagnostic(
            code="RL112",
            title=f"`{self.name}` belongs to the outside, and cannot be assigned here",
            primary=Label(self.span, ""),
            help="return the new value, or keep it in a cell: `cell = relay.ref(v)`, "
            "`cell.value = e`",
        )


@dataclass(frozen=True, slots=True)
class SharedItem:
    """An item is assigned in a tensor that may have an alias.

    `x[i] = e` makes `x` a new value and leaves every other value alone. Where another name may hold
    the same tensor, Python would change that one too, so the program has to say what it means.
    """

    span: Span
    name: str
    index: str
    value: str
    holder: Span
    why: str

    def diagnostic(self) -> Diagnostic:
        """Return the mistake as data."""
        return Diagnostic(
            code="RL114",
            title=f"the tensor in `{self.name}` may have an alias",
            primary=Label(self.span, "an item is assigned here"),
            secondary=(Label(self.holder, self.why),),
            help=f"write `{self.name} = relay.set_at({self.name}, {self.index}, {self.value})`, "
            "which changes nothing but this name",
        )


@dataclass(frozen=True, slots=True)
class CaptureInLoop:
    """A function that outlives a round of a loop has captured a name that each round assigns.

    It does so in a list, or under a name that the loop carries. In Python such functions see the
    value of the last round; a compiled closure holds the value it was made with.
    """

    span: Span
    name: str
    loop: Span

    def diagnostic(self) -> Diagnostic:
        """Return the mistake as data."""
        return Diagnostic(
            code="RL125",
            title=f"each round gives `{self.name}` another value, and a function that is kept has "
            "captured it",
            primary=Label(self.span, f"captures `{self.name}`"),
            secondary=(Label(self.loop, f"assigns `{self.name}` in each round"),),
            help=f"make it in a function that takes the value: `def make({self.name}): ...`",
        )


@dataclass(frozen=True, slots=True)
class CaptureReassigned:
    """A name that a closure has captured is assigned again.

    Python's closures see the new value, a compiled closure holds the value it was made with.
    """

    span: Span
    name: str
    closure: Span

    def diagnostic(self) -> Diagnostic:
        """Return the mistake as data."""
        return Diagnostic(
            code="RL119",
            title=f"`{self.name}` is assigned again after a function has captured it",
            primary=Label(self.span, "assigned again here"),
            secondary=(Label(self.closure, f"captures `{self.name}`"),),
            help=f"use another name for the new value, or pass `{self.name}` as an argument",
        )
