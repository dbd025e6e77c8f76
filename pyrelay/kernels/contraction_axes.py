"""Sums of products, and the dims of those of two operands by what has them.

Each dim is one of four: of both operands and the result (the batch), of one operand and the result
(rows of the result, or its columns), or of both operands alone (what is summed). The operand whose
own dims come first in the result has the rows.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import lru_cache
from typing import Final, TypeAlias, final

from ..dataclass import dataclass
from ..ir.dims import Dim, product
from ..ir.expr import Call, Expr, Var

Structure: TypeAlias = tuple[tuple[str, Dim], ...]
"""For each dim of a result, which sort it is of, and its size."""

BATCH: Final = "batch"
ROW: Final = "row"
COLUMN: Final = "column"
"""The sorts of the dims of a result."""


@final
@dataclass(frozen=True, slots=True)
class Product:
    """A sum of products: each operand and the result have a letter for each dim, and what is not
    in the result is summed. `sizes` gives the size for a letter."""

    var: Var
    call: Call
    operands: tuple[Expr, ...]
    subscripts: tuple[str, ...]
    result: str
    sizes: Mapping[str, Dim]

    @property
    def summed(self) -> str:
        """The letters that are summed over, in order of mention."""
        seen = dict.fromkeys("".join(self.subscripts))
        return "".join(letter for letter in seen if letter not in self.result)


@final
@dataclass(frozen=True, slots=True)
class Sort:
    """The dims of a sum that are of one sort: their letters, and how many places they have."""

    letters: str
    sizes: tuple[Dim, ...]

    @property
    def count(self) -> Dim:
        """The number of places."""
        return product(self.sizes)


@final
@dataclass(frozen=True, slots=True)
class Sorts:
    """The dims of a sum of two operands, by sort, each in the order of the result; `order` are the
    operands, that with the rows first."""

    batch: Sort
    rows: Sort
    columns: Sort
    summed: Sort
    order: tuple[int, int]
    structure: Structure

    def turned(self) -> Sorts:
        """Return the sorts of the dims with rows and columns exchanged."""
        return replace(self, rows=self.columns, columns=self.rows)


def sorts_of(found: Product) -> Sorts | str:
    """Return the dims of a sum of products by sort; why it is no product of matrices, if it is
    not."""
    return _sorts_of(found.subscripts, found.result, tuple(found.sizes.items()))


@lru_cache(maxsize=1024)
def _sorts_of(
    subscripts: tuple[str, ...], result: str, pairs: tuple[tuple[str, Dim], ...]
) -> Sorts | str:
    sizes = dict(pairs)
    if len(subscripts) != 2:
        return "it is no product of two operands"
    first, second = subscripts
    if any(len(set(s)) != len(s) for s in (first, second)):
        return "it takes a diagonal"
    if not set(first) ^ set(second) <= set(result) <= set(first) | set(second):
        return "it sums what only one operand has"
    single = [c for c in result if (c in first) != (c in second)]
    order = (1, 0) if single and single[0] in second else (0, 1)
    rows, columns = (subscripts[i] for i in order)
    names = {c: COLUMN if c not in rows else BATCH if c in columns else ROW for c in result}
    batch, own, across = (
        _sort(sizes, (c for c in result if names[c] is name)) for name in (BATCH, ROW, COLUMN)
    )
    structure = tuple((names[c], sizes[c]) for c in result)
    return Sorts(
        batch, own, across, _sort(sizes, (c for c in sizes if c not in result)), order, structure
    )


def _sort(sizes: Mapping[str, Dim], letters: Iterable[str]) -> Sort:
    letters = "".join(letters)
    return Sort(letters, tuple(sizes[c] for c in letters))
