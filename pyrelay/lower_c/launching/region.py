"""Region functions as Python callables.

What follows from the shapes and strides of arguments is prepared once (`prepare`), and becomes a
Python function (`code`) that calls C. A call tries the function of the call before it, which looks
whether its arguments have the shapes that it is for.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Final, TypeAlias, final

from ...config import may_compile
from ...interrupts import uninterrupted
from ...ir.types import Type
from ...kernels.backend import KernelFunction
from ...kernels.calling import Layout
from ...kernels.operands import key_of, tensors_in
from ...kernels.tape import KernelStep, Tape
from ...lazy import LazyModule
from ..building import Library
from ..policy import Policy
from .frames import is_plain

if TYPE_CHECKING:
    from ..regions import RegionText
    from . import code, prepare
else:
    code = LazyModule("pyrelay.lower_c.launching.code")
    prepare = LazyModule("pyrelay.lower_c.launching.prepare")

_MOST_SHAPES: Final = 256
"""A region keeps what follows from so many combinations of shapes and strides at most."""

Callee: TypeAlias = Callable[..., Any]


class _FirstCall(threading.local):
    """Whether the region that a thread runs is called for the first time: its kernels are going to
    be built with it, so that none is built alone because it stands there twice."""

    is_first = False


_FIRST_CALL: Final = _FirstCall()


@final
class RegionCall:
    """A region function of a program on a CPU.

    `callee` returns the kernels and functions that it calls, `plain` does the same as calls of
    these: where a parameter that the region writes to lies in the storage of another, where C
    cannot be built, and where a kernel failed, so that torch raises the error.
    """

    def __init__(
        self,
        name: str,
        tape: Tape,
        kernels: Mapping[str, KernelFunction],
        written: Sequence[int],
        callee: Callable[[str], Callee],
        plain: Callee,
        policy: Policy = Policy.AT_ONCE,
        identity: str | None = None,
    ) -> None:
        """`written` are the positions of the parameters that it writes to; `identity` is that of
        `RegionFunction`."""
        self._name: Final = name
        self._tape: Final = tape
        self._kernels: Final = kernels
        self._written: Final = tuple(written)
        self._identity: Final = identity
        self._callee: Final = callee
        self._plain: Final = plain
        self._types: Final[tuple[Type, ...]] = tape.types[: tape.params]
        self._built: Final[dict[tuple[Layout, ...], tuple[RegionText, Library] | None]] = {}
        self._calls: Final[dict[tuple[Any, ...], code.ShapedCall | None]] = {}
        """The functions by the shapes and strides of the arguments; None where torch runs it."""
        self._preparing: Final = threading.RLock()
        self._latest: Callee = self._looked_up if policy is Policy.AT_ONCE else self._first

    def __call__(self, *args: Any) -> Any:
        """Return the result of the region."""
        return self._latest(*args)

    def _first(self, *args: Any) -> Any:
        """Return the result of the first call, which builds nothing."""
        if _FIRST_CALL.is_first:
            return self._plain(*args)
        self._latest = self._looked_up
        _FIRST_CALL.is_first = True
        try:
            return self._plain(*args)
        finally:
            _FIRST_CALL.is_first = False

    def _looked_up(self, *args: Any) -> Any:
        """Return the result by the function for the shapes of the arguments."""
        if not all(map(is_plain, tensors_in(args))):
            return self._plain(*args)
        call = self._for(args)
        if call is None:
            return self._plain(*args)
        self._latest = call.guarded
        return call.run(*args)

    def settled(self, args: Sequence[Any]) -> Callee | None:
        """Return the function for arguments of the classes, shapes and strides of these, of which
        torch need not record anything; None where there is none yet."""
        call = self._calls.get(key_of(args, self._types))
        return call.run if call is not None and call.is_alone else None

    def _for(self, args: Sequence[Any]) -> code.ShapedCall | None:
        key, calls = key_of(args, self._types), self._calls
        if key not in calls and may_compile():
            with self._preparing:  # threads that call it at once build it once
                if key not in calls:
                    made = self._prepared(args)
                    if len(calls) >= _MOST_SHAPES:
                        del calls[next(iter(calls))]
                    calls[key] = made
                return calls[key]
        return calls.get(key)

    def _prepared(self, args: Sequence[Any]) -> code.ShapedCall | None:
        built = prepare.Built(self._name, self._tape, self._kernels, self._built, self._identity)
        prepared = prepare.prepare(built, args)
        if prepared is None:
            return None
        ways = (self._callee, self._plain, self._looked_up, self._written)
        call = code.call_of(prepared, self._tape, args, *ways)
        if self._writes_at_once(prepared.text):
            return call
        guarded, run = partial(uninterrupted, call.guarded), partial(uninterrupted, call.run)
        return code.ShapedCall(guarded, run, call.is_alone)

    def _writes_at_once(self, text: RegionText) -> bool:
        """Return whether one call of C writes to all parameters, which no interrupt divides."""
        steps = enumerate(self._tape.steps)
        kernels = ((n, self._kernels[s.name]) for n, s in steps if isinstance(s, KernelStep))
        writing = {n for n, kernel in kernels if kernel.overwritten}
        return not writing or any(writing.issubset(piece.steps) for piece in text.pieces)
