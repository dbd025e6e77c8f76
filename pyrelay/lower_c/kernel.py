"""A kernel in C, before it is called: its functions and the arguments of the one that runs it."""

from __future__ import annotations

from typing import Final, final

from ..dataclass import dataclass
from ..ir.dims import Dim
from ..ir.types import DType
from ..kernels.calling import Argument

OWN: Final = 0
"""The way in which a kernel computes its sums of products by its own loops."""

LIBRARY: Final = 1
"""The way in which a library of matrix products computes them."""

LEAST: Final = 1 << 15
"""Fewer products are not worth the call of a library."""


@final
@dataclass(frozen=True, slots=True)
class Route:
    """The two ways in which a kernel may compute its sums of products, `OWN` and `LIBRARY`.

    `shape` is the size of the batch, the rows and the columns, `summed` how many products each sum
    has, `forms` how their operands lie.
    """

    dtype: DType
    shape: tuple[Dim, Dim, Dim]
    summed: tuple[Dim, ...]
    forms: tuple[str, ...]


@final
@dataclass(frozen=True, slots=True)
class Kept:
    """Scratch, by its number, in which a kernel packs one of its operands and nothing else."""

    scratch: int
    operand: int


@final
@dataclass(frozen=True, slots=True)
class Kernel:
    """One kernel: a C function `name` that runs all its loops, in the threads that there are.

    `head` declares it, `text` defines it. `arguments` follow the run in its parameters, and behind
    them are the number of its route, if it has several, and whether what it has `kept` is still
    there from a call with the same operands, if it keeps anything. Of what has `starts_zero` the
    caller makes zeros. With `may_fail` it notes in the run that an index is out of range or a
    divisor 0, and what it stores is then unspecified.
    """

    name: str
    head: str
    text: str
    arguments: tuple[Argument, ...]
    may_fail: bool = False
    route: Route | None = None
    kept: tuple[Kept, ...] = ()
