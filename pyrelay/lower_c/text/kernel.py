"""A kernel in C, before it is called: its functions and the arguments of the one that runs it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

from ...kernels.calling import Argument


@final
@dataclass(frozen=True, slots=True)
class Kernel:
    """One kernel: a C function `name` that runs all its loops, in the threads that there are.

    `arguments` follow the run in its parameters. Of what has `starts_zero` the caller makes zeros.
    With `may_fail` it notes in the run that an index is out of range, and what it stores is then
    unspecified.
    """

    name: str
    text: str
    arguments: tuple[Argument, ...]
    may_fail: bool = False
