"""A region made ready for the shapes and strides of its arguments.

The text of a region depends on the forms of the operands of its kernels and not on sizes: sizes,
strides, and the places of values in the arena are integers that are passed.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Mapping, Sequence
from math import prod
from typing import Any, Final, final

import torch

from ...dataclass import dataclass
from ...ir.dims import Dim
from ...ir.expr import type_of
from ...ir.types import DType, TensorType, is_float
from ...kernels.arena import Allocation, placed
from ...kernels.backend import KernelFunction
from ...kernels.calling import Form, Layout, Size, Sizes, Stride
from ...kernels.operands import WIDE, form_of, is_number, unit_of
from ...kernels.tape import KernelStep, SizeStep, Tape
from ..building import Library, LibrarySource, build_or_notify
from ..kernel import LIBRARY, OWN, Route
from ..regions import Integer, Offset, Piece, RegionText, alone
from .routes import RouteChoice
from .texts import text_of


@final
@dataclass(frozen=True, slots=True)
class Built:
    """A region, and what has been built of it, by the layouts of the operands of its kernels."""

    name: str
    tape: Tape
    kernels: Mapping[str, KernelFunction]
    texts: dict[tuple[Layout, ...], tuple[RegionText, Library] | None]
    identity: str | None
    """As of `RegionFunction`."""

    def text(self, layouts: Mapping[int, Layout]) -> tuple[RegionText, Library] | None:
        """Return the text of the region and its library; None if it has no kernels in C, or cannot
        be built."""
        key = tuple(layouts.values())
        if key not in self.texts:
            self.texts[key] = self._build(layouts)
        return self.texts[key]

    def _build(self, layouts: Mapping[int, Layout]) -> tuple[RegionText, Library] | None:
        text = text_of(self.tape, self.kernels, layouts, self.identity)
        if not text.pieces:
            return None
        libraries = build_or_notify([LibrarySource(text.texts, self.name)])
        return None if libraries is None else (text, libraries[0])


@final
@dataclass(frozen=True, slots=True)
class Shaped:
    """A tensor that a region makes: its shape and dtype. It lies row by row."""

    shape: tuple[int, ...]
    dtype: torch.dtype

    @property
    def bytes(self) -> int:
        """The bytes that its elements fill."""
        return prod(self.shape) * self.dtype.itemsize


@final
@dataclass(frozen=True, slots=True)
class Prepared:
    """A region at certain shapes: its C functions by the step that they begin at, the integers that
    they get, and the numbers among the values, with whether each is a float.

    `made` are the values that C makes, and views of them; `offsets` where those begin that lie in
    the arena, which has `arena` bytes. `sizes` computes the sizes that steps ask for.
    """

    text: RegionText
    functions: Mapping[int, tuple[Piece, Any]]
    integers: tuple[int, ...]
    numbers: tuple[tuple[int, bool], ...]
    made: Mapping[int, Shaped]
    offsets: Mapping[int, int]
    arena: int
    size: Callable[[Dim], int]


def prepare(built: Built, args: Sequence[Any]) -> Prepared | None:
    """Return a region made ready for its arguments; None where it is left to torch."""
    preparing = _Preparing(built.tape, built.kernels, args)
    try:
        preparing.find_values()
    except KeyError:
        return None  # a size is known only when torch has computed a value
    found = built.text(preparing.layouts())
    return None if found is None else preparing.prepared(*found)


@final
class _Preparing:
    """The preparation of a region for the arguments of a call."""

    def __init__(
        self, tape: Tape, kernels: Mapping[str, KernelFunction], args: Sequence[Any]
    ) -> None:
        self._tape: Final = tape
        self._kernels: Final = kernels
        self._sizes: Final = Sizes(zip(tape.types[: tape.params], args, strict=True))
        self._values: Final[dict[int, Any]] = dict(enumerate(args))
        self._own_sizes: Final[dict[int, Sizes]] = {}

    def find_values(self) -> None:
        """Find the shapes of values, and the integers among them. Raises KeyError."""
        for number, ty in enumerate(self._tape.types):
            if number not in self._values and isinstance(ty, TensorType):
                assert isinstance(ty.dtype, DType)
                shape = tuple(map(self._sizes.value, ty.shape))
                self._values[number] = Shaped(shape, getattr(torch, ty.dtype.name))
        for step in self._tape.steps:
            if isinstance(step, SizeStep):
                self._values[step.result] = self._sizes.value(step.dim)

    def layouts(self) -> dict[int, Layout]:
        """Return how the operands of each kernel step lie in memory."""
        steps = enumerate(self._tape.steps)
        return {n: self._layout(s) for n, s in steps if isinstance(s, KernelStep)}

    def _layout(self, step: KernelStep) -> Layout:
        operands = [self._values[o] for o in step.operands]
        shapes = [self._values[v].shape for v in step.results]
        shapes += [o.shape for o in operands if not is_number(o)]
        is_wide = any(prod(shape) >= WIDE for shape in shapes)
        forms = tuple(Form.CONTIGUOUS if isinstance(o, Shaped) else form_of(o) for o in operands)
        if Form.STRIDED not in forms:
            return Layout(forms, is_wide)
        units = (None if isinstance(o, Shaped) else unit_of(o) for o in operands)
        return Layout(forms, is_wide, tuple(units))

    def prepared(self, text: RegionText, library: Library) -> Prepared:
        """Return the region with its C."""
        steps = self._tape.steps
        in_c = (s for p in text.pieces for n in p.steps if isinstance(s := steps[n], KernelStep))
        stored = (v for step in in_c for v in step.results)
        made = {v: self._values[v] for v in (*stored, *self._tape.viewed)}
        routes = self._routes(text, library)
        offsets, arena = self._places(text, routes)
        functions = {
            p.steps[0]: (p, library.function(p.name, [ctypes.c_void_p], ctypes.c_int64))
            for p in text.pieces
        }
        return Prepared(
            text,
            functions,
            self._integers(text, routes, offsets),
            tuple((n, self._is_float(n)) for n in text.numbers),
            made,
            offsets,
            arena,
            self._sizes.value,
        )

    def _places(self, text: RegionText, routes: Mapping[int, int]) -> tuple[dict[int, int], int]:
        """Return where values and scratch begin in the arena, and its bytes."""
        blocks = {v: Allocation(self._values[v].bytes, *self._tape.lives[v]) for v in text.in_arena}
        blocks |= self._scratch(text, routes)
        begins, arena = placed(tuple(blocks.values()))
        return dict(zip(blocks, begins, strict=True)), arena

    def _integers(
        self, text: RegionText, routes: Mapping[int, int], offsets: Mapping[int, int]
    ) -> tuple[int, ...]:
        """Return the integers of a call."""
        found: list[int] = []
        for integer in text.integers:
            if isinstance(integer, Offset):
                found.append(offsets[integer.value])
            elif isinstance(integer.argument, Route):
                found.append(routes[integer.step])
            else:
                found.append(self._integer(integer.step, integer.argument))
        return tuple(found)

    def _routes(self, text: RegionText, library: Library) -> dict[int, int]:
        """Return the route of each step that has several."""
        asked = [
            (i.step, i.argument)
            for i in text.integers
            if isinstance(i, Integer) and isinstance(i.argument, Route)
        ]
        if not asked:
            return {}
        both = dict.fromkeys((step for step, _ in asked), LIBRARY)
        offsets, room = self._places(text, {})
        of = RouteChoice(self._values, offsets, text.viewed, room, len(text.numbers), library)
        found: dict[int, int] = {}
        for number, route in asked:
            step = self._tape.steps[number]
            assert isinstance(step, KernelStep)
            sizes = [self._integer(number, Size(d)) for d in (*route.shape, *route.summed)]
            ways = [self._integers(text, {**both, number: way}, offsets) for way in (OWN, LIBRARY)]
            kernel = self._kernels[step.name]
            found[number] = of.chosen(kernel, route, sizes, ways, alone(number).name, step)
        return found

    def _is_float(self, value: int) -> bool:
        ty = self._tape.types[value]
        return isinstance(ty, TensorType) and is_float(ty.dtype)

    def _scratch(self, text: RegionText, routes: Mapping[int, int]) -> dict[int, Allocation]:
        """Return the scratch of steps, each of which needs its own alone: that of the step's route,
        or of both where none is chosen."""
        kernels = [n for n, s in enumerate(self._tape.steps) if isinstance(s, KernelStep)]
        times = {step: time for time, step in enumerate(kernels)}
        found: dict[int, Allocation] = {}
        for number, made in enumerate(text.scratch):
            room = made.target.dtype.bits // 8
            for dim in made.target.shape:
                room *= self._integer(made.step, Size(dim))
            if made.target.way not in {None, routes.get(made.step, made.target.way)}:
                room = 0
            found[len(self._tape.types) + number] = Allocation(
                room, times[made.step], times[made.step]
            )
        return found

    def _integer(self, number: int, argument: Size | Stride) -> int:
        """Return an integer of a step."""
        step = self._tape.steps[number]
        assert isinstance(step, KernelStep)
        operands = [self._values[o] for o in step.operands]
        if isinstance(argument, Stride):
            return operands[argument.operand].stride()[argument.axis]
        if number not in self._own_sizes:
            params = self._kernels[step.name].function.params
            self._own_sizes[number] = Sizes(zip(map(type_of, params), operands, strict=True))
        return self._own_sizes[number].value(argument.dim)
