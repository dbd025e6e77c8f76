"""Mistakes in implementations of operators, and in registering them (RL580 to RL599)."""

from __future__ import annotations

from ...dataclass import dataclass
from ..diagnostic import Diagnostic, Label
from ..source import Span


@dataclass(frozen=True, slots=True)
class NoOperator:
    """An implementation is registered for something that is no operator.

    Operators are those of `relay`, as they stand or by name, and those that `@relay.operator`
    makes.
    """

    given: str
    near: str | None
    help: str

    def diagnostic(self) -> Diagnostic:
        """Return the mistake as data."""
        suggestion = f"; did you mean `{self.near}`?" if self.near else ""
        return Diagnostic(
            code="RL580",
            title=f"{self.given} is no operator{suggestion}",
            primary=None,
            help=self.help,
        )


@dataclass(frozen=True, slots=True)
class NoKey:
    """A key of an implementation, of `include` or of `exclude` is none.

    Keys are devices, dtypes and classes of dtypes, which have names, and modes, which are made.
    """

    given: str
    near: str | None

    def diagnostic(self) -> Diagnostic:
        """Return the mistake as data."""
        suggestion = f"; did you mean `{self.near}`?" if self.near else ""
        return Diagnostic(
            code="RL581",
            title=f"{self.given} is no key{suggestion}",
            primary=None,
            help="keys are devices ('cpu', 'cuda'), dtypes ('float16'), classes of dtypes "
            "('float', 'half', 'int', 'bool') and modes: Tracing = dispatch.mode('Tracing')",
        )


@dataclass(frozen=True, slots=True)
class BadKeyName:
    """A mode or a device is named with something that is no name."""

    given: str
    kind: str

    def diagnostic(self) -> Diagnostic:
        """Return the mistake as data."""
        ways = {
            "mode": "a mode is named like a variable: dispatch.mode('Tracing')",
            "device": "a device is named by its type alone, without a number: "
            "dispatch.device('cuda')",
        }
        return Diagnostic(
            code="RL582",
            title=f"{self.given} names no {self.kind}",
            primary=None,
            help=ways[self.kind],
        )


@dataclass(frozen=True, slots=True)
class AlreadyRegistered:
    """There is an implementation for exactly these keys of the operator already.

    The table does not choose between the two. Of implementations for different keys
    the one for the keys that are asked first is chosen.
    """

    operator: str
    keys: str
    place: str

    def diagnostic(self) -> Diagnostic:
        """Return the mistake as data."""
        return Diagnostic(
            code="RL583",
            title=f"{self.operator} has an implementation for {self.keys} already",
            primary=None,
            notes=(f"it is {self.place}",),
            help="remove it first, or pass `replace=True`",
        )


@dataclass(frozen=True, slots=True)
class NotRegistered:
    """An implementation that is to be removed is not in the table."""

    operator: str
    keys: str
    others: tuple[str, ...]

    def diagnostic(self) -> Diagnostic:
        """Return the mistake as data."""
        others = " and ".join(self.others)
        return Diagnostic(
            code="RL584",
            title=f"{self.operator} has no implementation for {self.keys}",
            primary=None,
            help=f"it has one for {others}" if others else "dispatch.table() lists them all",
        )


@dataclass(frozen=True, slots=True)
class WrongImplementation:
    """A registered implementation cannot be called with the arguments of the operator.

    An implementation gets the operands by position and the attributes by name, as the operator
    declares them. One that is to see any operator as a call takes one argument: `boxed=True`, or a
    fallback.
    """

    operator: str
    implementation: str
    why: str
    wanted: str

    def diagnostic(self) -> Diagnostic:
        """Return the mistake as data."""
        return Diagnostic(
            code="RL585",
            title=f"{self.implementation} is no implementation of {self.operator}: {self.why}",
            primary=None,
            help=f"it is called as {self.wanted}",
        )


@dataclass(frozen=True, slots=True)
class NothingToRedispatch:
    """`dispatch.redispatch` is called where no implementation runs."""

    def diagnostic(self) -> Diagnostic:
        """Return the mistake as data."""
        return Diagnostic(
            code="RL586",
            title="`dispatch.redispatch` calls the next implementation, and none runs here",
            primary=None,
            help="call it in an implementation, while the operator's call runs",
        )


@dataclass(frozen=True, slots=True)
class WrongResult:
    """An implementation gave something that the operator does not give.

    A program is typed before it runs, and what follows relies on the type, so the result of an
    implementation has the dtype, shape and device of the operator's.
    """

    span: Span
    operator: str
    implementation: str
    place: str
    wanted: str
    actual: str

    def diagnostic(self) -> Diagnostic:
        """Return the mistake as data."""
        return Diagnostic(
            code="RL587",
            title=f"`{self.implementation}`, an implementation of `{self.operator}`, gave "
            f"{self.actual}, not {self.wanted}",
            primary=Label(self.span, f"`{self.operator}` gives {self.wanted}"),
            notes=(f"the implementation is {self.place}",),
        )


@dataclass(frozen=True, slots=True)
class ImplementationFailed:
    """An implementation of an operator stopped while it ran; the note gives its own words."""

    span: Span
    operator: str
    implementation: str
    place: str
    message: str

    def diagnostic(self) -> Diagnostic:
        """Return the mistake as data."""
        return Diagnostic(
            code="RL588",
            title=f"`{self.implementation}`, an implementation of `{self.operator}`, failed",
            primary=Label(self.span, "while this ran"),
            notes=(self.message, f"the implementation is {self.place}"),
        )
