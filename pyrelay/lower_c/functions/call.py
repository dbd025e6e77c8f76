"""A function of a program in C as a Python callable."""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache
from typing import Any, Final, TypeAlias, final

import torch

from ...autotuning.methods import is_transformed
from ...config import current, may_compile
from ...ir.expr import type_of
from ...ir.types import (
    SizeType,
    TensorType,
    TupleType,
    Type,
    bool_,
    int32,
    int64,
    is_float,
    known_dtype,
)
from ...kernels.backend import FailedInside, ProgramFunction, Run
from ...kernels.calling import Sizes
from ..building import Source, build_or_notify
from ..launching.frames import CPU, is_plain
from ..launching.threads import thread_functions
from .c_types import NotInC, leaves_of, number_dtype
from .program import CText, c_text

FLAGS: Final = ("-fwrapv", "-ffp-contract=off", "-pthread", "-Wno-psabi")
"""Integers wrap around where no check stops the program, and floats are rounded as torch's are."""

STACK: Final = 1 << 30
"""The bytes of the stack on which calls wait that have no room on Python's; what is not used takes
no memory."""

_HEAD: Final = struct.Struct("=7q4q")
"""`relay_call` in C."""

_DEEP, _STOPPED = -1, -2
_MOST_SHAPES: Final = 256

_Shapes: TypeAlias = tuple[tuple[int, ...], tuple[tuple[int, ...], ...]]
"""The sizes that are passed, and the shapes of the tensors that are results."""


@final
class FunctionCall:
    """A function that C runs whole. It is built when it is first called."""

    def __init__(self, function: ProgramFunction, fallback: Run) -> None:
        """`fallback` is the host code of the function, which runs where C cannot."""
        self._function: Final = function
        self._fallback: Final = fallback
        self._count: Final = len(function.function.params)
        self._built: _Built | None = None
        self._is_tried = False

    def __call__(self, *args: Any) -> Any:
        """Return the result. Raises FailedInside."""
        if not self._is_tried:
            if not may_compile():
                return self._fallback(*args)
            self._built = _built(self._function)
            self._is_tried = True  # an interrupt of the build leaves it to the next call
        built = self._built
        if built is None or is_transformed():
            return self._fallback(*args)
        try:
            found = built.run(args[: self._count])
        except _Unfit:
            return self._fallback(*args)
        return self._fallback(*args) if found is None else found[0]


class _Unfit(Exception):  # noqa: N818  the host takes the argument
    """An argument is nothing that C can take."""


@final
class _Built:
    """The C of a function, loaded."""

    def __init__(self, text: CText, function: Callable[..., int]) -> None:
        self.text: Final = text
        self._function: Final = function
        self._params: Final = [t for p in text.params for _, t in leaves_of(p)]
        results = [t for _, t in leaves_of(text.result)]
        self._tensors: Final = [t for t in results if isinstance(t, TensorType) and t.shape]
        numbers = _formats(t for t in results if number_dtype(t) is not None)
        given = "q" * len(text.sizes) + _formats(self._params) + _formats(self._tensors)
        self._packed: Final = struct.Struct(_HEAD.format + given)
        self._unpacked: Final = struct.Struct("=" + numbers)
        self._room: Final = ctypes.c_char * (self._packed.size + max(8, self._unpacked.size))
        self._shapes: Final[dict[tuple[Any, ...], _Shapes]] = {}
        self._is_flat: Final = not any(isinstance(t, TupleType) for t in text.params)
        self._is_integer: Final = self._unpacked.format == "=q" and number_dtype(text.result) in (
            int64,
            int32,
        )
        self._stack = 0

    def run(self, args: Sequence[Any]) -> tuple[Any] | None:
        """Return the result in a tuple; None where the host is to run it: there is no room for the
        calls that wait, or a kernel failed. Raises FailedInside and _Unfit."""
        leaves = args if self._is_flat else _leaves(self.text.params, args)
        kept = [
            v if type(v) is int else _taken(ty, v)
            for ty, v in zip(self._params, leaves, strict=True)
        ]
        sizes, shapes = self._sized(kept) if self.text.sizes or self._tensors else ((), ())
        made = [
            torch.empty(shape, dtype=_torch_dtype(ty), device=CPU)
            for ty, shape in zip(self._tensors, shapes, strict=True)
        ]
        given = (*sizes, *map(_cell, kept), *[t.data_ptr() for t in made])
        most_waiting = current().max_depth
        while True:
            room = self._room()
            head = (most_waiting, self._stack, *_addresses(), 0, 0, 0, 0)
            self._packed.pack_into(room, 0, *head, *given)
            status = self._function(room)
            if not status:
                numbers = self._unpacked.unpack_from(room, self._packed.size)
                if self._is_integer:
                    return numbers
                return (_value(self.text.result, iter(numbers), iter(made)),)
            if status > 0:
                raise self._failure(status, bytes(room[: _HEAD.size]))
            if status != _DEEP or self._stack:
                return None
            self._stack = STACK

    def _sized(self, kept: Sequence[Any]) -> _Shapes:
        key = tuple([v.shape if isinstance(v, torch.Tensor) else v for v in self._sizing(kept)])
        found = self._shapes.get(key)
        if found is None:
            sizes = Sizes(zip(self._params, kept, strict=True))
            try:
                shapes = (tuple(map(sizes.value, t.shape)) for t in self._tensors)
                found = tuple(map(sizes.value, self.text.sizes)), tuple(shapes)
            except KeyError:
                raise _Unfit from None  # a size that no argument shows
            if len(self._shapes) >= _MOST_SHAPES:
                self._shapes.clear()
            self._shapes[key] = found
        return found

    def _sizing(self, kept: Sequence[Any]) -> Iterator[Any]:
        """Yield the arguments that show sizes."""
        for ty, value in zip(self._params, kept, strict=True):
            if isinstance(ty, SizeType) or isinstance(value, torch.Tensor):
                yield value

    def _failure(self, site: int, head: bytes) -> FailedInside:
        call = self.text.sites[site - 1]
        types = [t for t in map(type_of, call.args) if number_dtype(t) is not None][:4]
        values = struct.unpack_from("=" + _formats(types), head, _HEAD.size - 32)
        return FailedInside(call, values)


def _built(function: ProgramFunction) -> _Built | None:
    try:
        text = c_text(function.module, function.name)
    except NotInC:
        return None
    found = build_or_notify([Source(text.texts, text.name.removeprefix("relay_"), FLAGS)])
    if found is None:
        return None
    # C keeps the GIL while it runs; it checks for signals itself.
    kind = ctypes.PYFUNCTYPE(ctypes.c_int64, ctypes.c_void_p)
    return _Built(text, kind(found[0].address(text.name)))


@cache
def _addresses() -> tuple[int, ...]:
    """Return the addresses of what C calls: of Python a look at signals, and its lock released and
    acquired; what runs loops of kernels in threads."""
    api = ctypes.pythonapi
    functions = (api.PyErr_CheckSignals, api.PyEval_SaveThread, api.PyEval_RestoreThread)
    own = (ctypes.cast(f, ctypes.c_void_p).value or 0 for f in functions)
    return (*own, *thread_functions())


def _formats(types: Iterable[Type]) -> str:
    """Return the formats of cells."""
    dtypes = map(number_dtype, types)
    return "".join("d" if d is not None and is_float(d) else "q" for d in dtypes)


def _leaves(types: Sequence[Type], values: Sequence[Any]) -> Iterator[Any]:
    for ty, value in zip(types, values, strict=True):
        if isinstance(ty, TupleType):
            yield from _leaves(ty.fields, value)
        else:
            yield value


def _taken(ty: Type, value: Any) -> Any:
    """Return a number, or a tensor whose elements lie row by row. Raises _Unfit."""
    if isinstance(value, int | float):
        return value
    if not isinstance(value, torch.Tensor) or not is_plain(value):
        raise _Unfit
    if value.device.type != "cpu" or value.layout is not torch.strided:
        raise _Unfit
    return value.item() if number_dtype(ty) is not None else value.contiguous()


def _cell(value: Any) -> Any:
    return value.data_ptr() if isinstance(value, torch.Tensor) else value


def _value(ty: Type, numbers: Iterator[Any], tensors: Iterator[torch.Tensor]) -> Any:
    """Return a value of a type from the numbers and tensors in it, as host code has it."""
    if isinstance(ty, TupleType):
        return tuple(_value(t, numbers, tensors) for t in ty.fields)
    dtype = number_dtype(ty)
    if dtype is None:
        return next(tensors)
    number = next(numbers)
    if is_float(dtype):
        return torch.scalar_tensor(number, dtype=getattr(torch, dtype.name), device=CPU)
    return bool(number) if dtype == bool_ else number


def _torch_dtype(ty: TensorType) -> torch.dtype:
    return getattr(torch, known_dtype(ty).name)
