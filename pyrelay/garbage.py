"""Pausing Python's garbage collector where many objects are made that stay.

A full collection looks at every object of the process, and torch alone has hundreds of thousands:
collections were a third of the time that imports and compilation took. What these make is freed by
reference counts but for a few cycles, which the next collection finds.
"""

from __future__ import annotations

import gc
from collections.abc import Generator
from contextlib import contextmanager


@contextmanager
def uncollected() -> Generator[None, None, None]:
    """Collect no garbage inside a `with` block, in any thread; afterwards it is as it was.

    >>> with uncollected():
    ...     gc.isenabled()
    False
    """
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()
