"""A function of a program in C as a Python callable."""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache
from typing import Any, Final, final

import torch

from ...autotuning.methods import is_transformed
from ...config import current
from ...ir.expr import type_of
from ...ir.types import DType, TupleType, Type, bool_, is_float
from ...kernels.backend import FailedInside, ProgramFunction, Run
from ..building import Source, build_or_notify
from .c_types import NotInC, leaves_of, number_dtype
from .program import CText, c_text

FLAGS: Final = ("-fwrapv", "-ffp-contract=off", "-pthread")
"""Integers wrap around where no check stops the program, and floats are rounded as torch's are."""

STACK: Final = 1 << 30
"""The bytes of the stack on which calls wait that have no room on Python's; what is not used takes
no memory."""

_HEAD: Final = struct.Struct("=5q4q")
"""`relay_call` in C."""

_DEEP, _STOPPED = -1, -2


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
            self._is_tried = True
            self._built = _built(self._function)
        built = self._built
        if built is None or is_transformed():
            return self._fallback(*args)
        try:
            flat = list(built.flat(args[: self._count]))
        except _Unfit:
            return self._fallback(*args)
        found = built.run(flat)
        return self._fallback(*args) if found is None else found[0]


class _Unfit(Exception):  # noqa: N818  the host takes the argument
    """An argument is no number that C can take."""


@final
class _Built:
    """The C of a function, loaded."""

    def __init__(self, text: CText, function: Callable[..., int]) -> None:
        self._text: Final = text
        self._function: Final = function
        self._params: Final = [_cells(t) for t in text.params]
        self._results: Final = _cells(text.result)
        count = max(sum(map(len, self._params)), len(self._results))
        self._room: Final = ctypes.c_char * (_HEAD.size + 8 * max(1, count))
        self._packed: Final = struct.Struct(_HEAD.format + "".join(map(_formats, self._params)))
        self._unpacked: Final = struct.Struct("=" + _formats(self._results))
        self._stack = 0

    def flat(self, args: Sequence[Any]) -> Iterator[Any]:
        """Yield the numbers in arguments. Raises _Unfit."""
        for ty, value in zip(self._text.params, args, strict=True):
            if number_dtype(ty) is not None:
                yield _number(value)
            else:
                yield from map(_number, _leaves(ty, value))

    def run(self, flat: Sequence[Any]) -> tuple[Any] | None:
        """Return the result in a tuple; None where there is no room for the calls that wait.
        Raises FailedInside."""
        most_waiting = current().max_depth
        while True:
            room = self._room()
            head = (most_waiting, self._stack, *_python(), 0, 0, 0, 0)
            self._packed.pack_into(room, 0, *head, *flat)
            status = self._function(room)
            if not status:
                values = iter(self._unpacked.unpack_from(room, _HEAD.size))
                return (_value(self._text.result, values),)
            if status > 0:
                raise self._failure(status, bytes(room[: _HEAD.size]))
            if status == _DEEP and not self._stack:
                self._stack = STACK
                continue
            return None

    def _failure(self, site: int, head: bytes) -> FailedInside:
        call = self._text.sites[site - 1]
        dtypes = [number_dtype(type_of(a)) for a in call.args]
        kept = [d for d in dtypes if d is not None]
        cells = head[_HEAD.size - 32 :]
        count = min(4, len(kept))
        values = struct.unpack_from("=" + _formats(kept[:count]), cells)
        return FailedInside(call, values)


def _built(function: ProgramFunction) -> _Built | None:
    try:
        text = c_text(function.module, function.name)
    except NotInC:
        return None
    found = build_or_notify([Source(text.text, text.name.removeprefix("relay_"), FLAGS)])
    if found is None:
        return None
    # Python's lock is held while C runs, which looks at signals itself.
    kind = ctypes.PYFUNCTYPE(ctypes.c_int64, ctypes.c_void_p)
    return _Built(text, kind(found[0].address(text.name)))


@cache
def _python() -> tuple[int, int, int]:
    """Return the addresses of what C calls of Python: a look at signals, and its lock released and
    acquired."""
    api = ctypes.pythonapi
    functions = (api.PyErr_CheckSignals, api.PyEval_SaveThread, api.PyEval_RestoreThread)
    addresses = [ctypes.cast(f, ctypes.c_void_p).value or 0 for f in functions]
    return addresses[0], addresses[1], addresses[2]


def _cells(ty: Type) -> list[DType]:
    return [dtype for _, dtype in leaves_of(ty)]


def _formats(dtypes: Iterable[DType]) -> str:
    return "".join("d" if is_float(d) else "q" for d in dtypes)


def _number(value: Any) -> Any:
    if type(value) is torch.Tensor:
        if value.device.type != "cpu":
            raise _Unfit
        return value.item()
    if isinstance(value, int | float):
        return value
    raise _Unfit


def _leaves(ty: Type, value: Any) -> Iterator[Any]:
    if isinstance(ty, TupleType):
        for part, inside in zip(ty.fields, value, strict=True):
            yield from _leaves(part, inside)
    else:
        yield value


def _value(ty: Type, numbers: Iterator[Any]) -> Any:
    """Return a value of a type from the numbers in it, as host code has it."""
    if isinstance(ty, TupleType):
        return tuple(_value(t, numbers) for t in ty.fields)
    dtype = number_dtype(ty)
    assert dtype is not None
    number = next(numbers)
    if is_float(dtype):
        return torch.scalar_tensor(number, dtype=getattr(torch, dtype.name))
    return bool(number) if dtype == bool_ else number
