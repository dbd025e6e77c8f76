"""Mistakes of functions mapped over a batch (RL320 to RL339)."""

from __future__ import annotations

from ...dataclass import dataclass
from ..diagnostic import Diagnostic, Label
from ..source import Span


@dataclass(frozen=True, slots=True)
class CannotBatch:
    """A function mapped by `relay.vmap` does something that cannot be done for a batch at once.

    One call of each operator serves all elements, so sizes, strings and what is printed are the
    same for all of them.
    """

    span: Span
    what: str
    why: str
    way: str

    def diagnostic(self) -> Diagnostic:
        """Return the mistake as data."""
        return Diagnostic(
            code="RL320",
            title=f"{self.what} cannot be batched",
            primary=Label(self.span, self.why),
            help=self.way,
        )


@dataclass(frozen=True, slots=True)
class BatchedStructure:
    """A branch that differs between the elements of a batch gives what cannot differ.

    Elements that take different arms may give tensors, tuples and data of them, of any structure.
    Strings, cells, and sizes that a value has of its own, are the same for all elements.
    """

    span: Span
    actual: str
    why: str

    def diagnostic(self) -> Diagnostic:
        """Return the mistake as data."""
        return Diagnostic(
            code="RL321",
            title=f"the elements of a batch cannot differ in {self.actual}",
            primary=Label(self.span, f"elements take different arms; {self.why} the same for all"),
            help="give tensors here, or data of tensors, and the rest where elements agree",
        )


@dataclass(frozen=True, slots=True)
class StructuresOfBatch:
    """The elements of a batch have data of different structure where they need to have one.

    What `relay.vmap` returns, and what an operator such as `relay.stack` takes, is one list or tree
    with batched tensors. In between, elements may have lists of different lengths.
    """

    span: Span

    def diagnostic(self) -> Diagnostic:
        """Return the mistake as data."""
        return Diagnostic(
            code="RL324",
            title="the elements of a batch have data of different structure",
            primary=Label(self.span, "this needs one structure for all elements"),
            help="return what is computed from the data, such as a sum, or call the function in a "
            "loop",
        )


@dataclass(frozen=True, slots=True)
class BatchedResult:
    """The result of a function mapped with `out_axes=None` differs between elements."""

    span: Span
    function: str

    def diagnostic(self) -> Diagnostic:
        """Return the mistake as data."""
        return Diagnostic(
            code="RL322",
            title=f"what `{self.function}` returns differs between elements of the batch",
            primary=Label(self.span, "`out_axes` is None here"),
            help="give the axis of the batch in the result: `out_axes=0`",
        )


@dataclass(frozen=True, slots=True)
class BatchedCell:
    """A cell that is the same for all elements of a batch is written for each of them.

    The function is called once for all elements, so a cell from outside, or one that is written
    where elements take different arms, has one content.
    """

    span: Span
    why: str

    def diagnostic(self) -> Diagnostic:
        """Return the mistake as data."""
        return Diagnostic(
            code="RL323",
            title="a cell cannot hold a value for each element of a batch here",
            primary=Label(self.span, self.why),
            help="return the value instead, and write it outside of `relay.vmap`",
        )
