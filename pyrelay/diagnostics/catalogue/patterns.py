"""Patterns that cannot match, and values that no pattern matches.

Codes RL200 to RL299, with `types`.
"""

from __future__ import annotations

from ...dataclass import dataclass
from ..diagnostic import CaseFix, Diagnostic, Label, Severity
from ..source import Span


@dataclass(frozen=True, slots=True)
class PatternMismatch:
    """A pattern can never match the value it is tried on: it is for values of another type.

    Cases distinguish the values of one type: the members of one union, the numbers or
    the strings. A value of a union is never a member of another one.
    """

    span: Span
    wanted: str
    actual: str
    cases: tuple[str, ...] = ()
    way: str | None = None

    def diagnostic(self) -> Diagnostic:
        """Return the mistake as data."""
        known = [f"`{c}`" for c in self.cases]
        listed = ", ".join(known[:-1]) + f" and {known[-1]}" if known[1:] else "".join(known)
        return Diagnostic(
            code="RL215",
            title="this pattern cannot match the value",
            primary=Label(self.span, f"this matches {self.wanted}, the value is {self.actual}"),
            help=f"the cases of {self.actual} are {listed}" if known else self.way,
        )


@dataclass(frozen=True, slots=True)
class PatternArity:
    """A pattern of a constructor has more or fewer parts than the constructor has fields."""

    span: Span
    constructor: str
    fields: int
    given: int

    def diagnostic(self) -> Diagnostic:
        """Return the mistake as data."""
        many = "1 field" if self.fields == 1 else f"{self.fields} fields"
        return Diagnostic(
            code="RL230",
            title=f"`{self.constructor}` has {many}, this pattern has {self.given}",
            primary=Label(self.span, ""),
            help="write `_` for a field that does not matter",
        )


@dataclass(frozen=True, slots=True)
class AlternativesMismatch:
    """The alternatives of a case bind one name to values of different types.

    What follows `|` must bind the same names, and each of them to the same type.
    """

    span: Span
    name: str
    first: str
    second: str

    def diagnostic(self) -> Diagnostic:
        """Return the mistake as data."""
        return Diagnostic(
            code="RL235",
            title=f"`{self.name}` has two types in the alternatives of one case",
            primary=Label(self.span, f"`{self.name}` is {self.first} and {self.second}"),
            help="write a case for each",
        )


@dataclass(frozen=True, slots=True)
class MissingCases:
    """A `match` has no case for some value, so the program could stop there.

    Each case that is listed is a pattern for values that nothing matches. A case with a guard
    does not count: its guard may be False.
    """

    span: Span
    cases: tuple[str, ...]
    more: bool
    named: tuple[str, ...] = ()
    """In Python, patterns for all of them that give fields their names."""
    is_never: bool = False

    def diagnostic(self) -> Diagnostic:
        """Return the mistake as data."""
        first, *others = self.cases
        listed = "\n".join(others) + ("\n..." if self.more else "")
        title, why = f"no case matches `{first}`", "this match must have a case for every value"
        way = f"add `{first} => ...`, or write `match?` if it need not be complete"
        if self.is_never:
            title, why = f"`{first}` comes to `assert_never`", "every case must be done with here"
            way = "test for it before, and return"
        elif self.named:
            way = f"add `case {first}:`, or end with `case _:`"
        return Diagnostic(
            code="RL231",
            title=title,
            primary=Label(self.span, why),
            notes=(f"these are not matched either:\n{listed}",) if others else (),
            help=way,
            fix=CaseFix(self.span, self.named) if self.named and not self.is_never else None,
        )


@dataclass(frozen=True, slots=True)
class TangledCases:
    """The cases of a `match` overlap in so many ways that it is undecided whether one is missing.

    Whether a match is complete is a question that may take exponential time; it is given up after
    a fixed number of steps.
    """

    span: Span

    def diagnostic(self) -> Diagnostic:
        """Return the mistake as data."""
        return Diagnostic(
            code="RL232",
            title="the cases overlap too much to tell whether one is missing",
            primary=Label(self.span, "this match must have a case for every value"),
            help="end with a case that takes everything, or match the parts one after the other",
        )


@dataclass(frozen=True, slots=True)
class UnreachableCase:
    """No value comes to a case: the cases before it match whatever it does. A warning."""

    span: Span
    winners: tuple[Span, ...]

    def diagnostic(self) -> Diagnostic:
        """Return the warning as data."""
        return Diagnostic(
            code="RL233",
            title="this case is never reached",
            primary=Label(self.span, "what it matches has been matched before"),
            secondary=tuple(Label(w, "matched here") for w in self.winners),
            severity=Severity.WARNING,
        )


@dataclass(frozen=True, slots=True)
class CasesNotChecked:
    """The cases of a `match` overlap in so many ways that it is not known whether all are reached.

    A warning: the match is complete, because it has a case that takes everything.
    """

    span: Span

    def diagnostic(self) -> Diagnostic:
        """Return the warning as data."""
        return Diagnostic(
            code="RL234",
            title="the cases overlap too much to tell whether all are reached",
            primary=Label(self.span, "in this match"),
            severity=Severity.WARNING,
        )
