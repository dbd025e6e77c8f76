"""Which way kernels compute their sums of products: by their own loops, or by a library.

The library is torch's: its BLAS, whose functions torch's own library exports on some platforms.
Where sizes are met for the first time, both ways of the very kernel are timed, and what is faster
is kept on disk (`autotuning`); a measurement that others disturbed decides for this process alone.
Sizes that are open and close to each other share a measurement.
"""

from __future__ import annotations

import ctypes
from collections.abc import Mapping, Sequence
from functools import partial
from math import prod
from typing import Any, Final, final

import torch

from ...autotuning.measurements import key_of, settle, winner_of
from ...autotuning.methods import rounded
from ...autotuning.timing import Fastest, fastest
from ...config import current
from ...ir.equality import structural_hash
from ...kernels.backend import KernelFunction
from ...kernels.operands import is_number
from ...kernels.tape import KernelStep
from ..building import Library
from ..kernel import LEAST, Route
from .frames import RegionFrame
from .threads import PRODUCTS, torch_functions

WAYS: Final = ("own", "library")

_MOST: Final = 1 << 28
"""Kernels that work on more bytes are not run to be measured."""

_notes: Final[dict[str, dict[str, None]]] = {}
"""How the products of kernels are computed, by the hash of the kernel function."""

_MOST_NOTES: Final = 4096


def notes_of(kernel: KernelFunction) -> tuple[str, ...]:
    """Return how the products of a kernel have been computed, for `explain`."""
    return tuple(_notes.get(structural_hash(kernel.function), ())) if _notes else ()


def note_way(kernel: KernelFunction, sizes: Sequence[int], way: str, why: str) -> None:
    """Note which way the products of a kernel are computed: `sizes` are those of the batch, rows
    and columns, and how many products each sum has."""
    batch, rows, columns, *summed = sizes
    shape = " x ".join(map(str, (*([batch] if batch > 1 else []), rows, summed[0], columns)))
    text = f"{shape} by {'a library' if way == 'library' else 'its own loops'}, {why}"
    if len(_notes) >= _MOST_NOTES:
        _notes.clear()
    _notes.setdefault(structural_hash(kernel.function), {})[text] = None


def use_products(library: Library) -> bool:
    """Let the kernels of a library call torch's BLAS; return whether there is one."""
    functions = torch_functions(*PRODUCTS)
    if functions is None:
        return False
    library.function("relay_use_library", [ctypes.c_void_p] * 2, None)(*functions)
    return True


def key_of_sizes(route: Route, sizes: Sequence[int], *more: str) -> str:
    """Return the key of the measurement for some sizes of a route."""
    dims = (*route.shape, *route.summed)
    shared = [n if d.constant is not None else rounded(n) for n, d in zip(sizes, dims, strict=True)]
    return key_of("products", route.dtype.name, shared, route.forms, *more)


def settle_way(key: str, name: str, found: Fastest) -> str:
    """Keep what a measurement has found for a kernel; return its times for `explain`."""
    settle(key, f"products of {name}", found)
    return found.shown if found.is_sure else f"{found.shown}, while others used the processor"


@final
class RouteChoice:
    """Chooses the routes of the kernels of a region that is made ready for the shapes of a call."""

    def __init__(
        self,
        values: Mapping[int, Any],
        offsets: Mapping[int, int],
        viewed: Mapping[int, int],
        room: int,
        numbers: int,
        library: Library,
    ) -> None:
        """`offsets` are where values begin in an arena of `room` bytes, `viewed` those in whose
        place others lie."""
        self._values: Final = values
        self._offsets: Final = offsets
        self._viewed: Final = viewed
        self._room: Final = room
        self._numbers: Final = numbers
        self._library: Final = library

    def chosen(
        self,
        kernel: KernelFunction,
        route: Route,
        sizes: Sequence[int],
        ways: Sequence[Sequence[int]],
        name: str,
        step: KernelStep,
    ) -> int:
        """Return the route of a step, which the function `name` runs alone. `sizes` are those of
        the route, `ways` the integers of the call by the route."""
        wanted = current().products
        if wanted == "own" or not use_products(self._library):
            return 0
        why = "as the option `products` asks"
        if wanted == "measured":
            wanted, why = self._measured(route, sizes, ways, name, step)
        note_way(kernel, sizes, wanted, why)
        return WAYS.index(wanted)

    def _measured(
        self,
        route: Route,
        sizes: Sequence[int],
        ways: Sequence[Sequence[int]],
        name: str,
        step: KernelStep,
    ) -> tuple[str, str]:
        """Return the faster way, and how that is known."""
        work = prod(sizes[:3]) * sum(sizes[3:])
        if work < LEAST or not current().measure:
            return "own", "which needs no call" if work < LEAST else "unmeasured"
        key = key_of_sizes(route, sizes)
        known = winner_of(key, WAYS)
        if known is not None:
            return known, "as measured before"
        frames = self._frames(ways, step)
        if frames is None:
            return "own", "since its operands cannot be made up"
        run = self._library.function(name, [ctypes.c_void_p], ctypes.c_int64)
        calls = {w: partial(run, f.address) for w, f in zip(WAYS, frames[0], strict=True)}
        found = fastest(calls, ())
        return found.name, settle_way(key, name, found)

    def _frames(
        self, ways: Sequence[Sequence[int]], step: KernelStep
    ) -> tuple[list[RegionFrame], list[torch.Tensor]] | None:
        """Return a frame for each way, over operands that are made up, and what they lie in; None
        where they would be too large, or are no floats."""
        used = (*step.operands, *step.results)
        tensors = {self._viewed.get(v, v): self._values[v] for v in used}
        tensors = {v: t for v, t in tensors.items() if not is_number(t)}
        if any(not t.dtype.is_floating_point for t in tensors.values()):
            return None
        rooms = {0: self._room}
        rooms |= {v + 1: _bytes(t) for v, t in tensors.items() if v not in self._offsets}
        if sum(rooms.values()) > _MOST:
            return None
        lying = {at: torch.full((room // 4 + 16,), 0.5) for at, room in rooms.items()}
        frames: list[RegionFrame] = []
        for integers in ways:
            frame = RegionFrame(max(lying), integers, self._numbers)
            for at, made in lying.items():
                frame.at[at] = made.data_ptr()
            frames.append(frame)
        return frames, list(lying.values())


def _bytes(value: Any) -> int:
    """Return how many bytes a value lies in, from its first element to its last."""
    if not isinstance(value, torch.Tensor):
        return value.bytes
    steps = zip(value.shape, value.stride(), strict=True)
    return (1 + sum((n - 1) * step for n, step in steps if n)) * value.element_size()
