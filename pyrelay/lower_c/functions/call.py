"""A function of a program in C as a Python callable."""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from typing import Any, Final, final

import torch

from ...autotuning.methods import is_transformed
from ...config import may_compile
from ...ir.expr import type_of
from ...ir.types import SizeType, TensorType, TupleType, Type, is_float
from ...kernels.backend import Direct, FailedInside, ProgramFunction, Run
from ...kernels.calling import Sizes
from ..building import LibrarySource, build_or_notify
from ..launching.threads import thread_functions
from .c_text import CText, c_text
from .c_types import NotInC, leaves_of, number_dtype
from .code import HEAD, STACK_CELL, FunctionFrame, Unfit, Ways, call_of, number, row_by_row
from .routing import Routing

FLAGS: Final = ("-fwrapv", "-ffp-contract=off", "-pthread", "-Wno-psabi")
"""Integers wrap around where no check stops the program, and floats are rounded as torch's are."""

STACK: Final = 1 << 30
"""The bytes of the stack on which calls wait that have no room on Python's; what is not used takes
no memory."""

_DEEP: Final = -1
_MOST_SHAPES: Final = 256


@final
class FunctionCall:
    """A function that C runs whole. It is built when it is first called."""

    def __init__(self, function: ProgramFunction, fallback: Run) -> None:
        """`fallback` is the host code of the function, which runs where C cannot."""
        self._function: Final = function
        self._fallback: Final = fallback
        self._count: Final = len(function.function.params)
        self._built: _Built | None = None
        self._calls: _Calls | None = None
        self._is_tried = False
        self._building: Final = threading.RLock()

    def __call__(self, *args: Any) -> Any:
        """Return the result. Raises FailedInside."""
        if not self._is_tried:
            if not may_compile():
                return self._fallback(*args)
            with self._building:
                self._try()
        calls = self._calls
        if calls is None or is_transformed():
            return self._fallback(*args)
        try:
            return calls.latest(*args[: self._count])
        except Unfit:
            return self._fallback(*args)

    def _try(self) -> None:
        """Build it, unless another thread has done so in the meantime."""
        if self._is_tried:
            return
        self._built = _built(self._function)
        self._calls = self._built and _Calls(self._built, _raise_unfit)
        self._is_tried = True  # an interrupt of the build leaves it to the next call

    def direct(self, fallback: Run) -> Direct | None:
        """Return what does calls that torch neither records nor transforms; `fallback` does those
        that C does not. None before C is built, and where it cannot be."""
        return None if self._built is None else _Calls(self._built, fallback)


def _raise_unfit(*_: Any) -> Any:
    raise Unfit  # host code of what may wait for itself takes more arguments than C


@final
class _Calls:
    """Calls of a function in C, with what makes the results that C does not."""

    def __init__(self, built: _Built, fallback: Run) -> None:
        self._built: Final = built
        self._is_flat: Final = not any(isinstance(t, TupleType) for t in built.text.params)
        self._ways: Final = Ways(
            built.function, self._looked_up, self._given_back, built.again, built.frame
        )
        self._fallback: Final = fallback
        self._known: Final[dict[tuple[Any, ...], Callable[..., Any]]] = {}
        self._of_leaves: Callable[..., Any] = self._looked_up
        self.latest: Callable[..., Any] = self._looked_up if self._is_flat else self._flattened

    def _flattened(self, *args: Any) -> Any:
        return self._of_leaves(*_leaves(self._built.text.params, args))

    def _looked_up(self, *leaves: Any) -> Any:
        """Return the result by the function for the shapes of the arguments."""
        built = self._built
        try:
            kept = [
                row_by_row(v) if number_dtype(ty) is None else number(v)
                for ty, v in zip(built.params, leaves, strict=True)
            ]
            key = built.guarded(kept)
            call = self._known.get(key)
            if call is None:
                call = built.call(self._ways, kept, key)
                if len(self._known) >= _MOST_SHAPES:
                    self._known.clear()
                self._known[key] = call
        except Unfit:
            return self._given_back(*leaves)
        self._of_leaves = call
        if self._is_flat:
            self.latest = call
        return call(*kept)

    def _given_back(self, *leaves: Any) -> Any:
        """Return the result of the fallback."""
        left = iter(leaves)
        return self._fallback(*[_whole(ty, left) for ty in self._built.text.params])


@final
class _Built:
    """The C of a function, loaded."""

    def __init__(
        self, text: CText, function: Callable[[int], int], routing: Routing | None
    ) -> None:
        self.text: Final = text
        self.function: Final = function
        self._routing: Final = routing
        self.params: Final = [t for p in text.params for _, t in leaves_of(p)]
        results = [t for _, t in leaves_of(text.result)]
        self._tensors: Final = [t for t in results if isinstance(t, TensorType) and t.shape]
        self._count: Final = len(text.sizes) + len(self.params) + len(self._tensors) + len(results)
        dims = {*text.sizes, *(d for t in self._tensors for d in t.shape)}
        shown = {n for d in dims for n in d.names()}
        if shown:  # sizes may follow from others
            shown.update(n for t in self.params if isinstance(t, TensorType) for n in _names(t))
        self._is_guarded: Final = [not shown.isdisjoint(_names(t)) for t in self.params]
        self._frames: Final[list[FunctionFrame]] = []
        self._stack = 0

    def guarded(self, leaves: Sequence[Any]) -> tuple[Any, ...]:
        """Return the facts about arguments that sizes depend on: the shape of each tensor, or the
        number; None for any other."""
        return tuple(
            [
                (v.shape if isinstance(v, torch.Tensor) else v) if is_guarded else None
                for v, is_guarded in zip(leaves, self._is_guarded, strict=True)
            ]
        )

    def call(self, ways: Ways, leaves: Sequence[Any], guarded: Sequence[Any]) -> Callable[..., Any]:
        """Return the Python function for arguments like these. Raises Unfit."""
        sizes = Sizes(zip(self.params, leaves, strict=True))
        try:
            given = [sizes.value(d) for d in self.text.sizes]
            shapes = [tuple(map(sizes.value, t.shape)) for t in self._tensors]
        except KeyError:
            raise Unfit from None  # a size that no argument shows
        return call_of(self.text, ways, self._frames, shapes, guarded, given)

    def frame(self) -> FunctionFrame:
        """Return a new frame."""
        routes = 0 if self._routing is None else self._routing.address
        return FunctionFrame((0, self._stack, *_addresses(), routes, 0, 0, 0, 0, 0, 0), self._count)

    def again(self, status: int, frame: FunctionFrame) -> bool:
        """Return whether a call that ended with a status ends well on a stack of its own; the host
        is to run it where not, or where a kernel failed. Raises FailedInside."""
        if status == _DEEP and not frame.ints[STACK_CELL]:
            frame.ints[STACK_CELL] = self._stack = STACK
            status = self.function(frame.address)
        if status > 0:
            raise self._failure(status, frame)
        return not status

    def _failure(self, site: int, frame: FunctionFrame) -> FailedInside:
        call = self.text.sites[site - 1]
        dtypes = [d for d in map(number_dtype, map(type_of, call.args)) if d is not None][:4]
        cells = [frame.floats if is_float(d) else frame.ints for d in dtypes]
        return FailedInside(call, [c[HEAD - 4 + place] for place, c in enumerate(cells)])


def _names(ty: Type) -> frozenset[str]:
    """Return the names of the sizes in the type of a number or a tensor."""
    match ty:
        case SizeType(dim):
            return dim.names()
        case TensorType(shape):
            return frozenset(name for dim in shape for name in dim.names())
        case _:
            return frozenset()


def _leaves(types: Sequence[Type], values: Sequence[Any]) -> Iterator[Any]:
    """Yield the numbers and tensors in values."""
    for ty, value in zip(types, values, strict=True):
        if isinstance(ty, TupleType):
            yield from _leaves(ty.fields, value)
        else:
            yield value


def _whole(ty: Type, leaves: Iterator[Any]) -> Any:
    """Return a value of a type from the numbers and tensors in it."""
    if isinstance(ty, TupleType):
        return tuple(_whole(t, leaves) for t in ty.fields)
    return next(leaves)


def _built(function: ProgramFunction) -> _Built | None:
    try:
        text = c_text(function.module, function.name)
    except NotInC:
        return None
    found = build_or_notify([LibrarySource(text.texts, text.name.removeprefix("relay_"), FLAGS)])
    if found is None:
        return None
    # C keeps the GIL while it runs; it checks for signals itself.
    kind = ctypes.PYFUNCTYPE(ctypes.c_int64, ctypes.c_void_p)
    routing = Routing(found[0], text.routed) if text.routed else None
    return _Built(text, kind(found[0].address(text.name)), routing)


@cache
def _addresses() -> tuple[int, ...]:
    """Return the addresses of what C calls: of Python a look at signals, and its lock released and
    acquired; what runs loops of kernels in threads."""
    api = ctypes.pythonapi
    functions = (api.PyErr_CheckSignals, api.PyEval_SaveThread, api.PyEval_RestoreThread)
    own = (ctypes.cast(f, ctypes.c_void_p).value or 0 for f in functions)
    return (*own, *thread_functions())
