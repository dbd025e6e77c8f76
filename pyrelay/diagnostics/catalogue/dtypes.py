"""Mistakes of dtypes, found before anything runs.

Codes RL200 to RL299, with `types`.
"""

from __future__ import annotations

from ...dataclass import dataclass
from ..diagnostic import Diagnostic, Fix, Label
from ..source import Span


@dataclass(frozen=True, slots=True)
class Cast:
    """A way out: an operand, as written, cast to a dtype; `place` is where it stands, if known."""

    operand: str
    dtype: str
    place: Span | None

    @property
    def text(self) -> str:
        """The cast operand."""
        return f"relay.cast({self.operand}, relay.{self.dtype})"

    @property
    def help(self) -> str:
        """The suggested text."""
        return f"cast it: {self.text}"

    @property
    def fix(self) -> Fix | None:
        """The cast in the place of the operand."""
        return None if self.place is None else Fix(self.place, self.text)


@dataclass(frozen=True, slots=True)
class MixedWidths:
    """Two tensors of one kind but different widths meet, such as float32 and float64.

    Nothing is converted silently: say which width you want.
    """

    span: Span
    operator: str
    labels: tuple[Label, ...]
    wider: str
    operand: str
    place: Span | None
    """Where the narrower operand stands, if that is known."""

    def diagnostic(self) -> Diagnostic:
        """Return the mistake as data."""
        cast = Cast(self.operand, self.wider, self.place)
        return Diagnostic(
            code="RL210",
            title=f"`{self.operator}` mixes two dtypes of one kind",
            primary=Label(self.span, ""),
            secondary=self.labels,
            help=f"cast one of them: {cast.text}",
            fix=cast.fix,
        )


@dataclass(frozen=True, slots=True)
class NarrowedNumber:
    """A number would have to be cast to a dtype in which it loses its fraction or its range.

    A name that starts from a number literal has the dtype that its other values bring. Where it is
    also used as a number of another dtype, only you can say which of the two is wrong.
    """

    span: Span
    actual: str
    wanted: str

    def diagnostic(self) -> Diagnostic:
        """Return the mistake as data."""
        return Diagnostic(
            code="RL226",
            title=f"{self.actual} does not become {self.wanted} by itself",
            primary=Label(self.span, f"this is {self.actual}, and used as {self.wanted}"),
            help="start the names that it is made of from literals of the dtype that they shall "
            f"have, such as `0.0`, or cast: relay.cast(x, relay.{self.wanted})",
        )


@dataclass(frozen=True, slots=True)
class NumberOutOfRange:
    """A number that the program states is none of the integers of its dtype.

    A literal takes the dtype of the tensor that it meets, and is an `Int` of 64 bits alone.
    """

    span: Span
    value: int
    dtype: str

    def diagnostic(self) -> Diagnostic:
        """Return the mistake as data."""
        return Diagnostic(
            code="RL228",
            title=f"{self.value} is no integer of {self.dtype}",
            primary=Label(self.span, f"this is used as {self.dtype}"),
            help="write a float, such as `1e20`, or cast what it meets to a wider dtype",
        )
