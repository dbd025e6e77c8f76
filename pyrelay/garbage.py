"""Pausing Python's garbage collector where many objects are made that stay.

A full collection looks at every object of the process, and torch alone has hundreds of thousands:
collections were a third of the time that imports and compilation took. What these make is freed by
reference counts but for a few cycles, which the next full collection finds: all objects count as
old afterwards, so that the next collections of young ones have little to look at.
"""

from __future__ import annotations

import gc
from typing import final


@final
class _Paused:
    """A context manager, as a class: a generator takes as long as the check of a small argument."""

    __slots__ = ("_was_enabled",)

    def __enter__(self) -> None:
        self._was_enabled = gc.isenabled()
        gc.disable()

    def __exit__(self, *_: object) -> None:
        if not self._was_enabled:
            return
        if not gc.get_freeze_count():  # else the user has frozen objects, which stay so
            gc.freeze()
            gc.unfreeze()
        gc.enable()


def uncollected() -> _Paused:
    """Collect no garbage inside a `with` block, in any thread; afterwards it is as it was.

    >>> with uncollected():
    ...     gc.isenabled()
    False
    """
    return _Paused()
