"""Tiles of the transposed result, for few rows.

Where both operands of a product lie along what is summed, one of them has to be packed. Vectors of
a tile lie along its columns, so columns are packed, which costs as much as some rows of products.
Where there are fewer rows, as in a layer of a network for a small batch, these are packed instead:
vectors lie along the rows, the columns (the weights) are read where they are, and the sums of each
tile are transposed before anything is made of them.
"""

from __future__ import annotations

from typing import Final, final

from ...dataclass import dataclass
from ...ir.dims import Dim
from ...kernels.plans.text import Text
from ..math import Target
from ..products.tiles import registers
from .sides import FEW, Side

IS_TRANSPOSED: Final = "is_transposed"
"""The name of whether a call computes tiles of the transposed result."""

COLUMNS: Final = 64
"""The columns of a tile: a multiple of all lanes."""


@final
@dataclass(frozen=True, slots=True)
class Transposed:
    """The shape of the tiles: `vectors` of rows in registers, by so many columns at once."""

    columns: int
    vectors: int
    lanes: int

    @property
    def width(self) -> int:
        """The rows of a tile."""
        return self.vectors * self.lanes

    @property
    def most_columns(self) -> int:
        """The columns for which all steps of a tile store sums; the last step may pass the tile's
        own columns."""
        return -(-COLUMNS // self.columns) * self.columns


def transposed_shape(target: Target, lanes: int) -> Transposed:
    """Return the shape of tiles of the transposed result."""
    columns = 8 if registers(target) == 32 else 6
    return Transposed(columns, 2, lanes)


def may_transpose(columns: Side | None, count: Dim, shape: Transposed) -> bool:
    """Return whether a call may compute the transposed result of a product with `count` columns."""
    if columns is None or columns.kind != "turned":
        return False
    return count.constant is None or count.constant > FEW + shape.width


def is_transposed(rows: Text, columns: Text, shape: Transposed) -> str:
    """Return the condition under which a call does: the packed rows have to fit where the packed
    columns would be."""
    return f"{rows} >= {FEW} && {rows.inside(6)} + {shape.width} <= {columns}"
