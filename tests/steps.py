"""Counting the work of a function without a clock: the calls that it makes.

Calls of Python functions, of builtins and resumptions of generators are counted. The number is the
same on a busy machine as on an idle one, so tests compare how it grows with the size of the input.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import FrameType
from typing import Any


def calls_of(run: Callable[[], object]) -> int:
    """Return the number of calls that a function makes, directly and indirectly."""
    count = 0

    def profile(_frame: FrameType, event: str, _argument: Any) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    before = sys.getprofile()
    sys.setprofile(profile)
    try:
        run()
    finally:
        sys.setprofile(before)
    return count
