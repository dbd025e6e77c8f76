"""Types that nothing in a program tells. Codes RL200 to RL299, with `types`."""

from __future__ import annotations

from dataclasses import dataclass

from ..diagnostic import Diagnostic, Label
from ..source import Span


@dataclass(frozen=True, slots=True)
class CannotInfer:
    """The program does not say enough for the type of an expression to be found."""

    span: Span
    what: str

    def diagnostic(self) -> Diagnostic:
        """Give the mistake as data."""
        return Diagnostic(
            code="RL209",
            title=f"the type of {self.what} cannot be found",
            primary=Label(self.span, "its type depends on something that is never fixed"),
            help="annotate a parameter of the function around it",
        )


@dataclass(frozen=True, slots=True)
class UntoldParameter:
    """A parameter has no annotation, or one that leaves its type open, and its uses do not tell it.

    What is done with it is right for several types, and the function is not called where the types
    of its arguments are known.
    """

    span: Span
    parameter: str
    function: str
    declared: Span

    def diagnostic(self) -> Diagnostic:
        """Give the mistake as data."""
        is_open = ":" in self.declared.text
        annotation = "an annotation that leaves it open" if is_open else "no annotation"
        return Diagnostic(
            code="RL221",
            title=f"nothing tells the type of `{self.parameter}`",
            primary=Label(self.span, "this is right for several types"),
            secondary=(Label(self.declared, f"this has {annotation}"),),
            help=f"annotate `{self.parameter}`, or call `{self.function}` in a function where the "
            "types of the arguments are known",
        )


@dataclass(frozen=True, slots=True)
class UntoldResult:
    """A function gives something whose type nothing tells.

    It is right for several types, such as a local function, and is not used where one is wanted;
    or the function calls itself on every path.
    """

    span: Span
    function: str
    is_recursive: bool

    def diagnostic(self) -> Diagnostic:
        """Give the mistake as data."""
        advice = (
            f"annotate what `{self.function}` gives, and give it a path that does not call it again"
            if self.is_recursive
            else f"annotate what this is computed from, or use what `{self.function}` gives where "
            "one type is wanted"
        )
        return Diagnostic(
            code="RL222",
            title=f"nothing tells the type of what `{self.function}` gives",
            primary=Label(self.span, "this is right for several types"),
            help=advice,
        )
