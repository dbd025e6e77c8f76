"""Mistakes of sizes, found before anything runs (RL200 to RL299)."""

from __future__ import annotations

from ...dataclass import dataclass
from ..diagnostic import Diagnostic, Label
from ..source import Span


@dataclass(frozen=True, slots=True)
class SizeOfEachRun:
    """A size that the program finds is another one each time this runs.

    But a type says that it is always the same: that of the elements of a list, or of what a local
    function gives wherever it is called.
    """

    span: Span
    why: str

    def diagnostic(self) -> Diagnostic:
        """Return the mistake as data."""
        return Diagnostic(
            code="RL223",
            title="a size is not the same each time",
            primary=Label(self.span, "each time this runs it may give another size"),
            notes=(f"{self.why}, and one type holds for all runs",),
            help="annotate the list, `xs: list[Tensor[Float, (Any,)]] = []`, or put the tensor "
            "into a function annotated with `Any` for the size of its result",
        )


@dataclass(frozen=True, slots=True)
class DimsMismatch:
    """Two sizes that the program needs to be equal cannot be."""

    span: Span
    why: str

    def diagnostic(self) -> Diagnostic:
        """Return the mistake as data."""
        return Diagnostic(
            code="RL213",
            title="two sizes that must be equal are not",
            primary=Label(self.span, self.why),
        )


@dataclass(frozen=True, slots=True)
class SizesUnsolved:
    """Nothing determines the sizes that a call needs.

    The sizes of a function are solved from the arguments of each call. That takes one equation for
    each of them, in one power of it: `N*N + N == M` has no such solution, nor has `N*N == M` where
    `M` is no square by its name.
    """

    span: Span
    equation: str

    def diagnostic(self) -> Diagnostic:
        """Return the mistake as data."""
        return Diagnostic(
            code="RL227",
            title="the sizes of this call cannot be determined",
            primary=Label(self.span, f"nothing solves {self.equation}"),
            help='take one of the sizes as a parameter, `n: Annotated[int, Dim("N")]`',
        )


@dataclass(frozen=True, slots=True)
class AssumptionRefused:
    """In strict mode, an equation between sizes that the types do not prove."""

    span: Span
    equation: str

    def diagnostic(self) -> Diagnostic:
        """Return the mistake as data."""
        return Diagnostic(
            code="RL214",
            title=f"the program needs {self.equation}, which its types do not say",
            primary=Label(self.span, "needed here"),
            help="use one Dim for both sizes in the annotations",
        )


@dataclass(frozen=True, slots=True)
class ShapeMismatch:
    """A tensor is declared with `...` in its shape, and its dtype or its other sizes differ.

    `...` stands for any number of sizes; those written beside it must be there.
    """

    span: Span
    name: str | None
    declared: str
    actual: str

    def diagnostic(self) -> Diagnostic:
        """Return the mistake as data."""
        what = "the result" if self.name is None else f"`{self.name}`"
        return Diagnostic(
            code="RL229",
            title=f"{what} is annotated as {self.declared}",
            primary=Label(self.span, f"this is {self.actual}"),
        )
