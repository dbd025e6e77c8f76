"""Data types that users define: dataclasses, the unions that join them, and values of them.

Codes RL150 to RL169. Everything here is found while Python becomes IR.
"""

from __future__ import annotations

from ...dataclass import dataclass
from ..diagnostic import Diagnostic, Label
from ..misspelt import did_you_mean, nearest
from ..source import Span


def _defined(name: str, place: Span | None) -> tuple[Label, ...]:
    return () if place is None else (Label(place, f"`{name}` is defined here"),)


@dataclass(frozen=True, slots=True)
class NotADataType:
    """A class stands where a data type is wanted, and is none.

    A data type is a frozen dataclass, or several joined by a union. Its values never change, and
    compiled code makes and reads them without running code of the class.
    """

    span: Span
    name: str
    why: str
    instead: str
    place: Span | None = None

    def diagnostic(self) -> Diagnostic:
        """Return the mistake as data."""
        return Diagnostic(
            code="RL150",
            title=f"`{self.name}` is not a data type: {self.why}",
            primary=Label(self.span, "used here"),
            secondary=_defined(self.name, self.place),
            help=self.instead,
        )


@dataclass(frozen=True, slots=True)
class NoEquality:
    """Values that have no equality are passed to a function that compares values of any type.

    Functions and cells are not compared, and neither is what holds them.
    """

    span: Span
    function: str
    passed: str

    def diagnostic(self) -> Diagnostic:
        """Return the mistake as data."""
        return Diagnostic(
            code="RL161",
            title=f"`{self.function}` compares what is passed here, and {self.passed} has no "
            "equality",
            primary=Label(self.span, "functions and cells are not compared"),
            help="pass the parts that are tensors, numbers, strings or data of these",
        )


@dataclass(frozen=True, slots=True)
class TwoUnions:
    """A dataclass is a member of two unions.

    A value knows its class, and the class must say which data type the value is of.
    """

    span: Span
    name: str
    first: str
    second: str
    place: Span | None = None

    def diagnostic(self) -> Diagnostic:
        """Return the mistake as data."""
        return Diagnostic(
            code="RL151",
            title=f"`{self.name}` is in two unions: {self.first} and {self.second}",
            primary=Label(self.span, "the name is ambiguous here"),
            secondary=_defined(self.name, self.place),
            help="a dataclass belongs to at most one union: wrap it in a dataclass of its own "
            f"for the other one, with a field for the `{self.name}`",
        )


@dataclass(frozen=True, slots=True)
class UnnamedUnion:
    """A union of dataclasses has no name.

    The name of a union is what the data type is called, and where functions find it again.
    """

    span: Span
    text: str
    example: str

    def diagnostic(self) -> Diagnostic:
        """Return the mistake as data."""
        return Diagnostic(
            code="RL152",
            title=f"the union `{self.text}` has no name",
            primary=Label(self.span, "used here"),
            help=f"give it one beside the classes, and use that: `{self.example}`",
        )


@dataclass(frozen=True, slots=True)
class BadUnion:
    """A union cannot be a data type."""

    span: Span
    name: str
    why: str
    instead: str

    def diagnostic(self) -> Diagnostic:
        """Return the mistake as data."""
        return Diagnostic(
            code="RL153",
            title=f"the union `{self.name}` is not a data type: {self.why}",
            primary=Label(self.span, "used here"),
            help=self.instead,
        )


@dataclass(frozen=True, slots=True)
class BadField:
    """The annotation of a field does not name a type of the language."""

    span: Span
    owner: str
    field: str
    why: str
    instead: str | None
    place: Span | None = None

    def diagnostic(self) -> Diagnostic:
        """Return the mistake as data."""
        place = () if self.place is None else (Label(self.place, "the field"),)
        return Diagnostic(
            code="RL154",
            title=f"the type of the field `{self.owner}.{self.field}` cannot be read: {self.why}",
            primary=Label(self.span, f"`{self.owner}` is used here"),
            secondary=place,
            help=self.instead,
        )


@dataclass(frozen=True, slots=True)
class NoSuchField:
    """A value does not have the field, or only some of the values of its type have it."""

    span: Span
    field: str
    owner: str
    fields: tuple[str, ...]
    holders: tuple[str, ...]

    def diagnostic(self) -> Diagnostic:
        """Return the mistake as data."""
        names = ", ".join(f"`{f}`" for f in self.fields)
        near = did_you_mean(nearest(self.field, self.fields))
        way = near or (f"its fields are {names}" if self.fields else None)
        if self.holders:
            some = " and ".join(f"`{h}`" for h in self.holders)
            verb = "has" if len(self.holders) == 1 else "have"
            way = (
                f"only {some} {verb} it: take the value apart with `match`, or test "
                f"`isinstance(x, {self.holders[0]})` first"
            )
        return Diagnostic(
            code="RL157",
            title=f"{self.owner} has no field `{self.field}`",
            primary=Label(self.span, f"a field of {self.owner} is read here"),
            help=way,
        )


@dataclass(frozen=True, slots=True)
class NoSuchMethod:
    """A method is called, or a property read, of a value that does not have it.

    A value of a union is of any of its classes, so each of them defines the method, or a test says
    before which class the value is of. A method in compiled code is a function that the class, or a
    base of it that is no dataclass, defines with `def`.
    """

    span: Span
    name: str
    owner: str
    used: str
    """The type of the value."""
    instead: str | None
    place: Span | None = None
    kind: str = "method"

    def diagnostic(self) -> Diagnostic:
        """Return the mistake as data."""
        place = () if self.place is None else (Label(self.place, "it is not defined here"),)
        return Diagnostic(
            code="RL162",
            title=f"{self.owner} has no {self.kind} `{self.name}`",
            primary=Label(self.span, f"used here of {self.used}"),
            secondary=place,
            help=self.instead,
        )


@dataclass(frozen=True, slots=True)
class SizeNotShown:
    """A size is needed when the program runs, and no value determines it.

    A value of a data type need not hold a tensor of that size, so the size cannot be read off it.
    A size that stands inside a larger one, such as `N` in `2*N + 1`, is computed from it. That
    takes one equation for each unknown size: `N*K` alone determines neither `N` nor `K`, and
    `N // 2` rounds.
    """

    span: Span
    name: str
    holder: str
    inside: str
    place: Span

    def diagnostic(self) -> Diagnostic:
        """Return the mistake as data."""
        where = f"`{self.holder}` has it only in its type"
        if self.inside:
            where = f"`{self.holder}` shows only `{self.inside}`"
        return Diagnostic(
            code="RL158",
            title=f"nothing shows the size `{self.name}` when the program runs",
            primary=Label(self.span, "its value is needed here"),
            secondary=(Label(self.place, where),) if self.holder else (),
            help=f"take the size as a parameter, `{self.name.lower()}: Annotated[int, "
            f'Dim("{self.name}")]`, or read it off a tensor that has it',
        )


@dataclass(frozen=True, slots=True)
class RedefinedClass:
    """A name now means another class than the one that is used.

    This happens where a cell or a file is run again: what was made before, such as a union or a
    value, still belongs to the class of before.
    """

    span: Span
    name: str
    owner: str

    def diagnostic(self) -> Diagnostic:
        """Return the mistake as data."""
        return Diagnostic(
            code="RL155",
            title=f"`{self.name}` was defined anew; {self.owner} still names the class of before",
            primary=Label(self.span, "used here"),
            help=f"run the definition of {self.owner} again",
        )
