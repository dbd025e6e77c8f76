"""Mistakes of functions mapped over a batch, found before anything runs (RL320 to RL339)."""

from __future__ import annotations

from dataclasses import dataclass

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
    """A branch that differs between the elements of a batch gives data.

    Batched data have one structure, of which the tensors are batched; elements that take different
    arms would have different ones. Return tensors from the arms, or make the data after them.
    """

    span: Span
    actual: str

    def diagnostic(self) -> Diagnostic:
        """Return the mistake as data."""
        return Diagnostic(
            code="RL321",
            title="elements of a batch would have data of different structure",
            primary=Label(self.span, f"elements take different arms, which give {self.actual}"),
            help="give tensors or tuples of them here, and make the data afterwards",
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
