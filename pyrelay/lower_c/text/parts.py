"""Kernels in parts: texts that are compiled in parallel, and linked with the text that calls them.

A compiler takes more than twice as long for twice the text, and uses one core for a file; so the
kernels of a large text are divided. A part has whole kernels. They see each other's functions, and
no other library does (`KERNEL` in the text).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, final

from ...dataclass import dataclass
from ..kernel import Kernel
from ..math import Target, preamble
from .support import RUN

MOST_LINES: Final = 800
"""The kernels of one part have so many lines, if they are more than one."""

_LINKED: Final = '#define KERNEL __attribute__((weak, visibility("hidden")))\n'
"""Of what is defined in several parts one is taken."""


@final
@dataclass(frozen=True, slots=True)
class Parts:
    """`prefix` is the beginning of the text that calls kernels, `beside` are the texts that are
    linked with it."""

    prefix: str
    beside: tuple[str, ...]


def in_parts(kernels: Iterable[Kernel], target: Target, head: str = "") -> Parts:
    """Return kernels divided into parts of about the same size; `head` is what all of them need."""
    divided = _divided(list(kernels))
    if len(divided) < 2:
        return Parts(_with_preamble([head, *(k.text for p in divided for k in p)], target), ())
    declared = (f"KERNEL {kernel.head};" for part in divided for kernel in part)
    prefix = _with_preamble([head, *declared, ""], target)
    beside = (_with_preamble([head, *(k.text for k in part)], target) for part in divided)
    return Parts(_LINKED + prefix, tuple(_LINKED + text for text in beside))


def _with_preamble(texts: Iterable[str], target: Target) -> str:
    body = "\n".join((RUN, *texts))
    return "\n".join((preamble(body, target), body))


def _divided(kernels: list[Kernel]) -> list[list[Kernel]]:
    """Return kernels in parts, the longest first, each in the part that is the shortest by then."""
    lines = {kernel: kernel.text.count("\n") for kernel in kernels}
    count = -(-sum(lines.values()) // MOST_LINES)
    parts: list[list[Kernel]] = [[] for _ in range(max(1, count))]
    room = [0] * len(parts)
    for kernel in sorted(kernels, key=lines.__getitem__, reverse=True):
        place = room.index(min(room))
        parts[place].append(kernel)
        room[place] += lines[kernel]
    order = {kernel: number for number, kernel in enumerate(kernels)}
    return [sorted(part, key=order.__getitem__) for part in parts if part]
