"""The differences between the versions of Triton that kernels are built with."""

from __future__ import annotations

import warnings
from collections.abc import Generator
from contextlib import contextmanager
from typing import Any, Final

OLDEST: Final = (3, 5)
"""The oldest version of Triton whose language the kernels are written in."""

_INDEXES_ARRAYS: Final = (3, 7)
"""The first Triton whose interpreter takes the number out of an array itself."""

_NEWEST_KNOWN: Final = (3, 9)
"""The newest Triton whose compiled kernels are known to be started as `start.Launch` does."""

MOST_PROCESSORS: Final = 8
"""So many processors share a program at most: more are not in a cluster on every device."""

_CLUSTERED: Final = (3, 9)
"""The first Triton whose reductions across the processors of a cluster were looked at: they came
into it after 3.6."""

_MULTIPLIES_DOUBLES: Final = (3, 9)
"""The first Triton known to multiply blocks of float64 on AMD's GPUs; 3.5 and 3.6 do not."""


def what_is_missing(triton: Any, *, interpreted: bool) -> str | None:
    """Return why this Triton cannot build kernels, or not interpret them, and what to install."""
    if version_of(triton) < OLDEST:
        needed = ".".join(map(str, OLDEST))
        return f"triton {triton.__version__} is too old: pip install 'triton>={needed}'"
    if interpreted and _cannot_loop(triton):
        newer = ".".join(map(str, _INDEXES_ARRAYS))
        return (
            f"the interpreter of triton {triton.__version__} needs an older numpy: "
            f"pip install 'numpy<2.4', or 'triton>={newer}'"
        )
    return None


def starts_as_known(triton: Any) -> bool:
    """Return whether compiled kernels of this Triton may be started without its own
    `__getitem__`."""
    return version_of(triton) <= _NEWEST_KNOWN


@contextmanager
def silent_interpreter() -> Generator[None]:
    """Have Triton's interpreter as silent about infinities as a device is, and old ones about
    asking numpy for the number in an array of one element."""
    import numpy as np  # only the interpreter computes with it

    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        yield


def processors_of(triton: Any, target: Any) -> int:
    """Return how many processors may share a program on a target of Triton's: those of a cluster on
    Hopper and on the Blackwell of data centres, elsewhere there is one."""
    if version_of(triton) < _CLUSTERED or target.backend != "cuda":
        return 1
    return MOST_PROCESSORS if 90 <= target.arch < 120 else 1


def multiplies_doubles(triton: Any, target: Any) -> bool:
    """Return whether blocks of float64 are multiplied on a target of Triton's."""
    return target.backend != "hip" or version_of(triton) >= _MULTIPLIES_DOUBLES


def version_of(triton: Any) -> tuple[int, ...]:
    """Return the first two numbers of Triton's version."""
    return tuple(int(part) for part in triton.__version__.split(".")[:2])


def _cannot_loop(triton: Any) -> bool:
    """Return whether Triton's interpreter asks numpy for what it no longer does: the number in an
    array of one element."""
    if version_of(triton) >= _INDEXES_ARRAYS:
        return False
    import numpy as np

    with warnings.catch_warnings(action="ignore"):
        try:
            int(np.zeros(1, np.int32))
        except TypeError:
            return True
    return False
