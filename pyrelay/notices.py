"""Notices of what takes long, for a user who waits."""

from __future__ import annotations

import logging
import threading
from collections.abc import Generator
from contextlib import AbstractContextManager, contextmanager
from typing import Final

_COMPILING: Final = logging.getLogger("pyrelay.compiling")

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


def compiling(name: str) -> AbstractContextManager[None]:
    """Log that a function is being compiled, if a `with` block takes longer than two seconds."""
    return announced(f"`{name}` is being compiled", _COMPILING)
