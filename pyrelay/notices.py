"""Notices of what takes long, for a user who waits."""

from __future__ import annotations

import logging
import threading
from collections.abc import Generator
from contextlib import contextmanager
from typing import Final

_COMPILING: Final = logging.getLogger("pyrelay.compiling")

_ONE_AT_A_TIME: Final = threading.RLock()
"""Compiling is Python code, which several threads do no faster; one that waits finds the result."""

_AFTER: Final = 2.0
"""Seconds after which the user hears of it."""


@contextmanager
def announced(text: str, logger: logging.Logger) -> Generator[None, None, None]:
    """Log a text as a warning if a `with` block takes longer than two seconds, while it runs."""
    timer = threading.Timer(_AFTER, logger.warning, ("%s", text))
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


@contextmanager
def compiling(name: str) -> Generator[None, None, None]:
    """Compile a function in a `with` block, while no other thread compiles; log it if that takes
    longer than two seconds. Whoever enters looks first whether another thread has compiled the same
    in the meantime."""
    with announced(f"`{name}` is being compiled", _COMPILING), _ONE_AT_A_TIME:
        yield
