"""The threads that generated code runs in: those of torch's own pool.

torch's library depends on an OpenMP library, whose functions are passed to C as pointers. Where it
has others than those of GCC, loops run in the thread that calls.
"""

from __future__ import annotations

import ctypes
from functools import cache
from pathlib import Path

import torch

_FUNCTIONS = ("GOMP_parallel", "omp_get_max_threads")
_LIBRARIES = ("libtorch_cpu.so", "libtorch_cpu.dylib")


@cache
def thread_functions() -> tuple[int, int]:
    """Return the addresses of the function that runs another in each thread, and of the one that
    returns how many threads there are; 0 and 0 if torch has no such functions."""
    folder = Path(torch.__file__).parent / "lib"
    for name in _LIBRARIES:
        try:
            # A symbol is searched in what a library depends on, too.
            library = ctypes.CDLL(str(folder / name))
            parallel, most = (ctypes.cast(library[f], ctypes.c_void_p).value for f in _FUNCTIONS)
        except (OSError, AttributeError):
            continue
        if parallel and most:
            return parallel, most
    return 0, 0
