"""The debugger that `breakpoint()` in a relay function starts."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pdb import Pdb
from types import FrameType, TracebackType
from typing import Any, Final, TypeAlias

PACKAGE: Final = __name__.partition(".")[0]
_Stack: TypeAlias = list[tuple[FrameType, int]]


def debugger() -> Callable[[], Any]:
    """Return the debugger hook that stops the function that calls it: the user's own hook, if there
    is one, else a pdb that shows and enters no frames of the compiler."""
    is_chosen = sys.breakpointhook is not sys.__breakpointhook__
    if is_chosen or os.environ.get("PYTHONBREAKPOINT"):
        return sys.breakpointhook
    return _Debugger().set_trace


class _Debugger(Pdb):
    def __init__(self) -> None:
        super().__init__(skip=["torch.*"])

    def stop_here(self, frame: FrameType) -> bool:
        """Return whether to stop in a frame: in none of the compiler, nor of what it calls."""
        return not _is_for_the_compiler(frame) and super().stop_here(frame)

    def get_stack(self, f: FrameType | None, t: TracebackType | None) -> tuple[_Stack, int]:
        """Return the stack without the frames of the compiler, and the place of a frame in it."""
        return _visible(*super().get_stack(f, t))


def hide_frames() -> None:
    """Have the pdb that runs the script, if one does, show no frames of the compiler between those
    of the script."""
    tracing = getattr(sys.gettrace(), "__self__", None)
    if not isinstance(tracing, Pdb) or isinstance(tracing, _Debugger):
        return
    whole = type(tracing).get_stack
    vars(tracing)["get_stack"] = lambda f, t: _visible(*whole(tracing, f, t))


def _visible(stack: _Stack, place: int) -> tuple[_Stack, int]:
    """Return a stack without the frames of the compiler, and the place of a frame in it; the whole
    stack if that frame is one of the compiler."""
    if place < len(stack) and _is_internal(stack[place][0]):
        return stack, place
    kept = [i for i, (frame, _) in enumerate(stack) if i == place or not _is_internal(frame)]
    return [stack[i] for i in kept], kept.index(place) if place in kept else len(kept) - 1


def _is_for_the_compiler(frame: FrameType) -> bool:
    """Return whether a frame is one of the compiler, or of a library that it calls."""
    caller: FrameType | None = frame
    while caller is not None and not _is_internal(caller):
        if "__name__" not in caller.f_globals:
            return False  # generated code
        caller = caller.f_back
    return caller is not None


def _is_internal(frame: FrameType) -> bool:
    """Return whether a frame runs the compiler, or code generated for its prelude."""
    module = str(frame.f_globals.get("__name__", ""))
    return module.partition(".")[0] == PACKAGE or frame.f_code.co_filename.endswith(".relay")
