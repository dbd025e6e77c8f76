"""Regions in C, before they are called: their text, and what is passed to it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import final

from ..dataclass import dataclass
from ..kernels.calling import Scratch, Size, Stride
from .kernel import Kernel, Route


@final
@dataclass(frozen=True, slots=True)
class Integer:
    """An integer of a call: a size, the stride of a dim of a value, or a route."""

    step: int
    argument: Size | Stride | Route

    @property
    def is_route(self) -> bool:
        """Whether it is a route."""
        return isinstance(self.argument, Route)


@final
@dataclass(frozen=True, slots=True)
class Offset:
    """The place of a value in the arena, in bytes. Values after those of the tape are scratch."""

    value: int


@final
@dataclass(frozen=True, slots=True)
class Made:
    """Scratch of a step."""

    step: int
    target: Scratch


@final
@dataclass(frozen=True, slots=True)
class Piece:
    """A function of a region: the steps that it runs."""

    name: str
    steps: tuple[int, ...]


def alone(step: int) -> Piece:
    """Return the function that runs one step alone, such as one whose routes are compared."""
    return Piece(f"step_{step}", (step,))


@final
@dataclass(frozen=True, slots=True, eq=False)
class RegionText:
    """A region in C: `texts` make its library, the first of which has its functions, `pieces`,
    whose text is `own`.
    `kernels` are those of the steps that have some, `integers` and `numbers` what is passed to
    them, `scratch` what they need besides values, `in_arena` the values that lie in the arena,
    `viewed` those that C stores, by the views of them; `refused` says why kernels have no C."""

    texts: tuple[str, ...]
    own: str
    kernels: Mapping[int, tuple[Kernel, ...]]
    pieces: tuple[Piece, ...]
    integers: tuple[Integer | Offset, ...]
    numbers: tuple[int, ...]
    scratch: tuple[Made, ...]
    in_arena: tuple[int, ...]
    viewed: Mapping[int, int]
    refused: Mapping[str, str]
