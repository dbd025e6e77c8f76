"""Where the operands of sums of products lie."""

from __future__ import annotations

from typing import Final, final

from ...dataclass import dataclass
from ...kernels.plans.text import Text

FEW: Final = 16
"""With fewer rows columns that lie along what is summed are not packed."""

LONG: Final = 256
"""Rows that lie across what is summed are packed where it has more places: their elements for one
tile lie in as many lines of memory, which a cache would have to keep."""

_MORE: Final = 512
"""With fewer rows columns that lie one behind the other are not packed."""


@final
@dataclass(frozen=True, slots=True)
class Side:
    """An operand of a sum in memory: the text of its address for a place of the batch, how far its
    rows (or columns), and what is summed, lie apart, and the number of the operand of the kernel;
    -1 for one that the kernel computes."""

    pointer: str
    batch: Text
    own: Text
    along: Text
    operand: int = -1

    @property
    def kind(self) -> str:
        """The kind of function for tiles of columns that are read where they lie: `turned` where
        these lie along what is summed."""
        return "edge" if self.own.text == "1" else "turned"

    @property
    def is_across(self) -> bool:
        """Whether rows lie across what is summed, one behind the other, as in the gradient of
        weights."""
        return self.own.text == "1" and self.along.text != "1"

    def at(self, batch: str, place: str) -> str:
        """Return the address of a row or column for a place of the batch."""
        return f"{self.pointer} + {batch} * {self.batch.inside(7)} + {place} * {self.own.inside(7)}"


@final
@dataclass(frozen=True, slots=True)
class Rows:
    """The rows of a sum: where they lie, and where a call packs them, tile by tile, if they do not
    lie along what is summed and `packs` is true. If `slots` is not 0, each thread packs panels for
    itself, and has room for so many."""

    side: Side
    packed: str = ""
    packs: str = ""
    slots: str = ""

    def panel(self, function: str, shared: str, last: str) -> str:
        """Return the address of the panel of a tile, for a kernel: `shared` is where all threads
        have it, `last` the number behind those that may be packed with it."""
        if not self.slots:
            return shared
        part = f"{function}_part_{self.packed}"
        own = f"relay_packed(&relay_own_rows, {part}, given, tile.row, {last})"
        return f"{self.slots} ? {own} : {shared}"


@final
@dataclass(frozen=True, slots=True)
class Columns:
    """The columns of a sum: where they lie, if one behind the other, and where they are packed: in
    panels as wide as a tile, row by row. If `slots` is not 0, each thread packs panels for itself,
    and has room for so many."""

    packed: str
    side: Side | None
    slots: str = ""

    def panel(self, function: str, number: str, size: str, batch: str, panels: str) -> str:
        """Return the address of a panel by its number in a place of the batch, for a kernel."""
        shared = f"{self.packed} + ({batch} * {panels} + {number}) * {size}"
        if not self.slots:
            return shared
        part = f"{function}_part_{self.packed}"
        own = f"relay_packed(&relay_own_columns, {part}, given, {number}, {number} + 1)"
        return f"{self.slots} ? {own} : {shared}"


def is_readable(rows: Side, columns: Side) -> bool:
    """Return whether columns can be read where they lie: one behind the other, or along what is
    summed as the rows do."""
    return columns.own.text == "1" or (columns.along.text == "1" and rows.along.text == "1")


def fewest_packed(columns: Side) -> int:
    """Return with how many rows columns are packed."""
    return _MORE if columns.own.text == "1" else FEW
