"""Types that cannot be inferred. Codes RL200 to RL299, with `types`."""

from __future__ import annotations

from ...dataclass import dataclass
from ..diagnostic import Diagnostic, Label
from ..source import Span


@dataclass(frozen=True, slots=True)
class CannotInfer:
    """The type of an expression cannot be inferred from the program."""

    span: Span
    what: str

    def diagnostic(self) -> Diagnostic:
        """Return the mistake as data."""
        return Diagnostic(
            code="RL209",
            title=f"the type of {self.what} cannot be inferred",
            primary=Label(self.span, "its type depends on something that is never fixed"),
            help="annotate a parameter of the function around it",
        )


@dataclass(frozen=True, slots=True)
class TypeTooLarge:
    """A type is larger than any that a person writes.

    `x = (x, 1.0)` in a hundred lines nests tuples a hundred deep, and `x = (x, x)` in forty has a
    million million parts. Values of a data type, and lists, have one type however large they are.
    """

    span: Span
    deepest: int
    largest: int
    is_deep: bool

    def diagnostic(self) -> Diagnostic:
        """Return the mistake as data."""
        deep = f"types nest at most {self.deepest} deep"
        compared = "deeper" if self.is_deep else "larger"
        return Diagnostic(
            code="RL237",
            title=deep if self.is_deep else f"a type has at most {self.largest} parts",
            primary=Label(self.span, f"the type of this is {compared}"),
            help="keep the values in a list, or in frozen dataclasses that mention themselves",
        )


@dataclass(frozen=True, slots=True)
class UndeterminedParameter:
    """The type of a parameter cannot be inferred: it has no annotation, or an open one.

    Its uses are valid for several types, and the function is not called where the types of its
    arguments are known.
    """

    span: Span
    parameter: str
    function: str
    declared: Span

    def diagnostic(self) -> Diagnostic:
        """Return the mistake as data."""
        is_open = ":" in self.declared.text
        annotation = "an annotation that leaves it open" if is_open else "no annotation"
        return Diagnostic(
            code="RL221",
            title=f"the type of `{self.parameter}` cannot be inferred",
            primary=Label(self.span, "several types are possible here"),
            secondary=(Label(self.declared, f"this has {annotation}"),),
            help=f"annotate `{self.parameter}`, or call `{self.function}` in a function where the "
            "types of the arguments are known",
        )


@dataclass(frozen=True, slots=True)
class UndeterminedResult:
    """The result type of a function cannot be inferred.

    Several types are possible, as for a local function that is returned; or the function calls
    itself on every path.
    """

    span: Span
    function: str
    is_recursive: bool

    def diagnostic(self) -> Diagnostic:
        """Return the mistake as data."""
        advice = (
            f"annotate the result of `{self.function}`, and return on a path that does not call it "
            "again"
            if self.is_recursive
            else f"annotate what this is computed from, or use the result of `{self.function}` "
            "where one type is expected"
        )
        return Diagnostic(
            code="RL222",
            title=f"the result type of `{self.function}` cannot be inferred",
            primary=Label(self.span, "several types are possible here"),
            help=advice,
        )
