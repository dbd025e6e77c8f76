"""A kernel as data: its text, its arguments, and its grid.

Making one needs neither torch nor triton; `build` compiles the text and `launch` calls it.
"""

from __future__ import annotations

from typing import TypeAlias, final

from ..dataclass import dataclass
from ..ir.dims import Dim
from ..kernels.calling import Argument


@final
@dataclass(frozen=True, slots=True)
class Target:
    """The device that a text is for, as far as the text depends on it."""

    is_tf32: bool = False
    """Whether products of float32 may have the 10 bits of tf32."""
    is_interpreted: bool = False
    """Whether Triton's interpreter runs the text, which multiplies blocks of bfloat16 wrongly."""
    processors: int = 1
    """How many processors of the device may share the work of one program, a power of two."""
    has_double_blocks: bool = True
    """Whether the device multiplies blocks of float64; else products are made one by one."""


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


Grid: TypeAlias = tuple[tuple[Tiles | Parts, ...], ...]
"""Each axis of a grid, of at most three, is the product of its parts."""


@final
@dataclass(frozen=True, slots=True)
class Kernel:
    """One kernel: a Triton function and how it is called.

    `arguments` go with the names in `names`, in the order of the function's parameters, before its
    constants. `configs` are tried in order of what the cost model expects; all give the same
    values.
    """

    name: str
    text: str
    names: tuple[str, ...]
    arguments: tuple[Argument, ...]
    grid: Grid
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
