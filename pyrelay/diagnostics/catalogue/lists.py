"""Lists: elements of one type, and `append`. Codes RL170 to RL179."""

from __future__ import annotations

from ...dataclass import dataclass
from ..diagnostic import Diagnostic, Label
from ..source import Span


@dataclass(frozen=True, slots=True)
class SharedList:
    """A list is changed that may have an alias.

    `xs.append(x)` gives the name `xs` a longer list and leaves every other value alone, and so do
    `pop`, `insert` and the other methods that change a list. Where another name, a tuple or another
    list may hold the same list, Python would change that one as well, so the program has to say
    what it means.
    """

    span: Span
    name: str
    holder: Span
    why: str
    change: str = "an element is appended here"
    instead: str | None = None

    def diagnostic(self) -> Diagnostic:
        """Return the mistake as data."""
        return Diagnostic(
            code="RL170",
            title=f"the list in `{self.name}` may have an alias",
            primary=Label(self.span, self.change),
            secondary=(Label(self.holder, self.why),),
            help=self.instead
            or f"write `{self.name} = {self.name} + [x]`, which changes nothing but this name",
        )


@dataclass(frozen=True, slots=True)
class NotGrown:
    """A list that is changed is not the function's own.

    Only the list of a local name that the function itself has given one can be changed, by `append`
    and the like: what a caller passes, or a function around holds, never changes.
    """

    span: Span
    name: str
    why: str
    instead: str
    change: str = "an element is appended here"

    def diagnostic(self) -> Diagnostic:
        """Return the mistake as data."""
        return Diagnostic(
            code="RL171",
            title=f"the list `{self.name}` cannot be changed: {self.why}",
            primary=Label(self.span, self.change),
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
        """Return the mistake as data."""
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
        """Return the mistake as data."""
        return Diagnostic(
            code="RL173",
            title=f"{self.first_type} and {self.second_type} make no list",
            primary=Label(self.second, f"this is {self.second_type}"),
            secondary=(Label(self.first, f"this is {self.first_type}"),),
            help=self.instead,
        )


@dataclass(frozen=True, slots=True)
class SharedParts:
    """An item of an item is assigned, where the outer item may have an alias.

    `table[i][j] = x` makes `table` a new value with another row. Python changes the row itself, in
    every place that has it: in other rows of `[[0] * n] * m`, or under another name. In the same
    way torch's `xs[i] += e` changes the tensor that is an item of `xs`.
    """

    span: Span
    name: str
    indices: str
    assignment: str
    """The assignment of a new item, where the item may be a tensor; empty for a list."""
    holder: Span
    why: str

    def diagnostic(self) -> Diagnostic:
        """Return the mistake as data."""
        name = self.name
        rows = (
            f"make a list of rows of its own, `{name} = [list(row) for row in {name}]`, and "
            f"read its rows by index; of a tensor write `{name}[{self.indices}]`"
        )
        new = f"assign a new item: `{self.assignment}`"
        return Diagnostic(
            code="RL174",
            title=f"an item of `{name}` may have an alias",
            primary=Label(self.span, "an item in it is assigned here"),
            secondary=(Label(self.holder, self.why),),
            help=new if self.assignment else rows,
        )


@dataclass(frozen=True, slots=True)
class ElementMismatch:
    """The elements of a list are of another type than what they are used for."""

    span: Span
    actual: str
    wanted: str
    why: str

    def diagnostic(self) -> Diagnostic:
        """Return the mistake as data."""
        return Diagnostic(
            code="RL175",
            title=f"elements that are {self.actual} are used as {self.wanted}",
            primary=Label(self.span, f"this has elements that are {self.actual}"),
            notes=(self.why,),
        )
