"""A kernel as data: its text, what it is called with, and on which grid.

Making one needs neither torch nor triton; `build` compiles the text and `launch` calls it.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, TypeAlias, final

if TYPE_CHECKING:
    from ..ir.dims import Dim
    from ..ir.types import DType


class NoKernel(Exception):  # noqa: N818  the caller decides what it means
    """A group that no text is made for; says why."""


class Form(Enum):
    """How an operand comes, as far as the text of a kernel depends on it."""

    CONTIGUOUS = "a tensor whose elements lie row by row"
    STRIDED = "a tensor with any strides"
    NUMBER = "a Python number"


@final
@dataclass(frozen=True, slots=True)
class Layout:
    """What the text of a group's kernels depends on besides the group: the form of each operand,
    and whether places need 64 bits (some tensor has 2**31 elements or more)."""

    operands: tuple[Form, ...]
    is_wide: bool = False
    is_tf32: bool = False
    """Whether products of float32 may have the 10 bits of tf32."""
    is_interpreted: bool = False
    """Whether Triton's interpreter runs the text, which multiplies blocks of bfloat16 wrongly."""
    units: tuple[int | None, ...] = ()
    """For each operand with any strides the dim along which its elements lie one behind the other,
    if there is one; empty if nothing is known of any."""
    processors: int = 1
    """How many processors of the device may share the work of one program, a power of two."""
    has_double_blocks: bool = True
    """Whether the device multiplies blocks of float64; else products are made one by one."""

    def lies_along(self, operand: int, axis: int) -> bool:
        """Return whether the elements of an operand with any strides are known to lie one behind
        the other along a dim."""
        return bool(self.units) and self.units[operand] == axis


@final
@dataclass(frozen=True, slots=True)
class Read:
    """The address of an operand of the group, by its position."""

    operand: int
    dtype: DType


@final
@dataclass(frozen=True, slots=True)
class Stride:
    """The stride, in elements, of one dim of an operand."""

    operand: int
    axis: int


@final
@dataclass(frozen=True, slots=True)
class Written:
    """The address of a result of the group, by its position, in new storage; or of the storage of
    an operand that the group overwrites, numbered after the results. `starts_zero` asks for zeros
    to add to."""

    result: int
    dtype: DType
    shape: tuple[Dim, ...]
    overwrites: int | None = None
    starts_zero: bool = False


@final
@dataclass(frozen=True, slots=True)
class Scratch:
    """The address of storage that lives while the group runs, by number."""

    number: int
    dtype: DType
    shape: tuple[Dim, ...]
    starts_zero: bool = False


@final
@dataclass(frozen=True, slots=True)
class Size:
    """An integer that the sizes of the operands tell."""

    dim: Dim


@final
@dataclass(frozen=True, slots=True)
class Number:
    """An operand that is a Python number, passed by value; its position."""

    operand: int
    dtype: DType


Argument: TypeAlias = Read | Stride | Written | Scratch | Size | Number


@final
@dataclass(frozen=True, slots=True)
class Config:
    """Numbers fixed when a kernel is compiled, such as block sizes, and how wide it runs: a program
    has `num_warps` on each of `num_ctas` processors."""

    constants: tuple[tuple[str, int], ...]
    num_warps: int
    num_stages: int
    num_ctas: int = 1


@final
@dataclass(frozen=True, slots=True)
class Tiles:
    """How many blocks of the constant `block` cover `dim`; a dim without a block is a count."""

    dim: Dim
    block: str | None


@final
@dataclass(frozen=True, slots=True)
class Parts:
    """As many programs as several tilings have together, one tiling after another."""

    tiles: tuple[Tiles, ...]


@final
@dataclass(frozen=True, slots=True)
class Kernel:
    """One kernel: a Triton function and how it is called.

    `arguments` go with the names in `names`, in the order of the function's parameters, before its
    constants. Each axis of the grid, of at most three, is the product of its parts. `configs` are
    tried in order of what the cost model expects; all give the same values.
    """

    name: str
    text: str
    names: tuple[str, ...]
    arguments: tuple[Argument, ...]
    grid: tuple[tuple[Tiles | Parts, ...], ...]
    configs: tuple[Config, ...]


@final
@dataclass(frozen=True, slots=True)
class Lowered:
    """All kernels of a group, run one after another.

    They are right where each dim in `limits` is at most its number; else `otherwise` is.
    """

    kernels: tuple[Kernel, ...]
    limits: tuple[tuple[Dim, int], ...] = ()
    otherwise: Lowered | None = None
