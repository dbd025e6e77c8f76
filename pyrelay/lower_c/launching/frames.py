"""The frame of a call for C: addresses and numbers in a struct, kept from call to call; and the
arena.

A call takes a frame for itself and gives it back, so calls may nest and overlap in threads.
"""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any, Final, final

import torch

from .threads import thread_functions

CPU: Final = torch.device("cpu")
"""Where all of C lies, whatever torch's default device is."""

PLAIN_CLASSES: Final = frozenset((torch.Tensor, torch.nn.Parameter))
"""The classes of tensors whose elements C may read; other classes may have theirs elsewhere."""


@cache
def maker_of(dtype: torch.dtype) -> Callable[[Sequence[int], Sequence[int]], torch.Tensor]:
    """Return the allocator of tensors of a dtype, by shape and strides: it takes two thirds of the
    time of torch.empty, which has several ways to read its arguments."""
    return torch.empty((), dtype=dtype, device=CPU).new_empty_strided


@cache
def filler_of(dtype: torch.dtype) -> Callable[[Sequence[int], float], torch.Tensor]:
    """Return the allocator of tensors of a dtype that are full of a number."""
    return torch.empty((), dtype=dtype, device=CPU).new_full


def is_plain(tensor: torch.Tensor) -> bool:
    """Return whether the elements of a tensor lie in memory as they are: in that of a class of
    torch's own, and not negated, as in the imaginary part of a conjugate."""
    return tensor.__class__ in PLAIN_CLASSES and not tensor.is_neg()


LARGEST_OWN: Final = 1 << 12
"""An arena of no more bytes belongs to a frame."""

_ALIGNMENT: Final = 64

_MOST_KEPT: Final = 256 << 20
"""An arena of more bytes is given back after the call."""


class _Run(ctypes.Structure):
    """The state of the call that C is in: `relay_run` in its text."""

    _fields_ = (
        ("parallel", ctypes.c_void_p),
        ("most_threads", ctypes.c_void_p),
        ("thread", ctypes.c_void_p),
        ("at", ctypes.c_void_p),
        ("size", ctypes.c_void_p),
        ("number", ctypes.c_void_p),
        ("failed", ctypes.c_int64),
    )


@final
class RegionFrame:
    """The struct of a call: `at` are the addresses of the arena and of values, `floats` and `ints`
    the numbers among the operands, which share their storage. It may have an arena of its own."""

    __slots__ = ("_room", "_run", "_size", "address", "apart", "at", "floats", "ints")

    def __init__(self, values: int, integers: Sequence[int], numbers: int, room: int = 0) -> None:
        """`room` are the bytes of its arena."""
        self.at: Any = (ctypes.c_void_p * (values + 1))()
        self._room = ctypes.create_string_buffer(room + _ALIGNMENT) if room else None
        if self._room is not None:
            self.at[0] = -(-ctypes.addressof(self._room) // _ALIGNMENT) * _ALIGNMENT
        self.floats: Any = (ctypes.c_double * numbers)()
        self.ints: Any = (ctypes.c_int64 * numbers).from_buffer(self.floats)
        self._size = (ctypes.c_int64 * len(integers))(*integers)
        places = (ctypes.addressof(a) for a in (self.at, self._size, self.floats))
        self._run = _Run(*thread_functions(), *places, 0)
        self.apart: tuple[int, ...] = ()
        """The addresses of the arguments that were last found to share nothing."""
        self.address: int = ctypes.addressof(self._run)


class _ThreadArena(threading.local):
    """The arena of a thread, which the regions that run in it use one after another."""

    arena: torch.Tensor | None = None


_ARENA: Final = _ThreadArena()


def arena_of(count: int) -> torch.Tensor:
    """Return an arena of at least so many bytes, the thread's own if it is large enough."""
    kept = _ARENA.arena
    if kept is None or kept.numel() < count:
        kept = torch.empty(count, dtype=torch.uint8, device=CPU)
        if count <= _MOST_KEPT:
            _ARENA.arena = kept
    return kept
