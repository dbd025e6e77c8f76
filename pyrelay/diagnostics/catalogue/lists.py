"""Lists: elements of one type, and `append`. Codes RL170 to RL179."""

from __future__ import annotations

from dataclasses import dataclass

from ..diagnostic import Diagnostic, Label
from ..source import Span


@dataclass(frozen=True, slots=True)
class SharedList:
    """An element is appended to a list that something else may hold too.

    `xs.append(x)` gives the name `xs` a longer list and leaves every other value alone. Where
    another name, a tuple or another list may hold the same list, Python would make that one longer
    as well, so the program has to say what it means.
    """

    span: Span
    name: str
    holder: Span
    why: str

    def diagnostic(self) -> Diagnostic:
        """Give the mistake as data."""
        return Diagnostic(
            code="RL170",
            title=f"the list in `{self.name}` may also be held elsewhere",
            primary=Label(self.span, "an element is appended here"),
            secondary=(Label(self.holder, self.why),),
            help=f"write `{self.name} = {self.name} + [x]`, which changes nothing but this name",
        )


@dataclass(frozen=True, slots=True)
class NotGrown:
    """An element is appended to what is no list of the function's own.

    Only a local name that the function itself has given a list can be appended to: what a caller
    passes, or a function around holds, never changes.
    """

    span: Span
    name: str
    why: str
    instead: str

    def diagnostic(self) -> Diagnostic:
        """Give the mistake as data."""
        return Diagnostic(
            code="RL171",
            title=f"nothing can be appended to `{self.name}`: {self.why}",
            primary=Label(self.span, "an element is appended here"),
            help=self.instead,
        )


@dataclass(frozen=True, slots=True)
class MixedElements:
    """The elements of one list have different types.

    All elements of a list have one type: numbers of one kind, tensors of one shape, values of one
    data type. A tuple holds values of different types.
    """

    span: Span
    actual: str
    other: Span
    wanted: str
    why: str

    def diagnostic(self) -> Diagnostic:
        """Give the mistake as data."""
        return Diagnostic(
            code="RL172",
            title="the elements of a list have one type",
            primary=Label(self.span, f"this is {self.actual}"),
            secondary=(Label(self.other, f"this is {self.wanted}"),),
            notes=(self.why,) if self.why else (),
            help="a tuple holds values of different types",
        )


@dataclass(frozen=True, slots=True)
class MixedLists:
    """Lists are joined whose elements have different types, or a list and what is no list.

    `xs + ys`, `xs += ys` and `[*xs, *ys]` make one list, and all elements of a list have one type.
    """

    span: Span
    first: Span
    first_type: str
    second: Span
    second_type: str
    instead: str

    def diagnostic(self) -> Diagnostic:
        """Give the mistake as data."""
        return Diagnostic(
            code="RL173",
            title=f"{self.first_type} and {self.second_type} make no list",
            primary=Label(self.second, f"this is {self.second_type}"),
            secondary=(Label(self.first, f"this is {self.first_type}"),),
            help=self.instead,
        )
