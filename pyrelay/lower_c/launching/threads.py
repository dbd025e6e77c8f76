"""The threads that generated code runs in: those of torch's own pool.

torch's library depends on an OpenMP library; its `GOMP_parallel` is passed to C as a pointer. Where
there is none of that name, loops run in the thread that calls.
"""

from __future__ import annotations

import ctypes
from functools import cache
from pathlib import Path

import torch


@cache
def parallel_address() -> int:
    """Return the address of `GOMP_parallel` in the library that torch has loaded, 0 where there is
    none."""
    folder = Path(torch.__file__).parent / "lib"
    for name in ("libtorch_cpu.so", "libtorch_cpu.dylib"):
        try:
            # A symbol is searched in what a library depends on, too.
            found = ctypes.CDLL(str(folder / name)).GOMP_parallel
        except (OSError, AttributeError):
            continue
        return ctypes.cast(found, ctypes.c_void_p).value or 0
    return 0
