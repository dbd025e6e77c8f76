"""Whether C or host code runs a function that multiplies matrices, for the shapes of a call.

C multiplies by its own loops; the regions of host code may use a library, which is faster for large
matrices. Where a call takes long, both are timed, and what is faster is kept on disk.
"""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Callable
from time import perf_counter
from typing import Any, Final

from ...autotuning.measurements import keep, key_of, recall
from ...autotuning.timing import fastest
from ...config import current
from .program import CText

_LOGGER: Final = logging.getLogger("pyrelay.runtime")
_LONG: Final = 0.02
"""Seconds that a call takes at least for which building the regions of host code can pay."""

_known: Final[dict[str, str]] = {}
"""The winners that this process has looked up or found."""

_notes: Final[dict[str, dict[str, None]]] = {}
"""The shapes for which the host runs functions, by the digest of the C."""

_MOST_NOTES: Final = 4096


def notes_of(text: CText) -> tuple[str, ...]:
    """Return the shapes for which host code has run a function, for `explain`."""
    return tuple(_notes.get(_digest(text), ())) if _notes else ()


def is_for_host(
    text: CText, shapes: str, in_c: Callable[[], Any], on_host: Callable[[], Any]
) -> bool:
    """Return whether host code is the faster way of a call with such shapes."""
    if not text.multiplies or not current().measure or current().products == "own":
        return False
    digest = _digest(text)
    key = key_of("functions", digest, shapes)
    found = _known.get(key) or recall(key) or _measured(key, text.name, in_c, on_host)
    _known[key] = found
    if found == "c":
        return False
    if len(_notes) >= _MOST_NOTES:
        _notes.clear()
    _notes.setdefault(digest, {})[shapes] = None
    return True


def _measured(key: str, name: str, in_c: Callable[[], Any], on_host: Callable[[], Any]) -> str:
    """Return the faster way, which is kept if others did not disturb the measurement."""
    in_c()
    start = perf_counter()
    in_c()
    if perf_counter() - start < _LONG:
        return "c"
    for _ in range(2):  # what repeats is built at its second call
        on_host()
    found = fastest({"c": in_c, "host": on_host}, ())
    if found.is_sure:
        keep(key, found.name)
    times = ", ".join(f"{way} {1e3 * t:.1f} ms" for way, t in found.times.items())
    _LOGGER.info("%s: %s (%s)", name, found.name, times)
    return found.name


def _digest(text: CText) -> str:
    return hashlib.sha256("\n".join(text.texts).encode()).hexdigest()
