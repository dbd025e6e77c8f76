"""Functions of the libraries that torch has loaded, which generated code calls by pointer.

Loops run in the threads of torch's own pool: its library depends on an OpenMP library. Where that
has other functions than those of GCC, loops run in the thread that calls.
"""

from __future__ import annotations

import ctypes
from functools import cache
from pathlib import Path
from typing import Final

import torch

PRODUCTS: Final = ("sgemm_", "dgemm_")
"""The functions of BLAS that multiply matrices, of float32 and of float64."""

_THREADS: Final = ("GOMP_parallel", "omp_get_max_threads", "omp_get_thread_num")

_LIBRARIES = ("libtorch_cpu.so", "libtorch_cpu.dylib")


def thread_functions() -> tuple[int, ...]:
    """Return the addresses of the function that runs another in each thread, of the one that
    returns how many threads there are, and of the one that returns the number of the thread that
    calls it; zeros if torch has no such functions."""
    return torch_functions(*_THREADS) or (0,) * len(_THREADS)


@cache
def torch_functions(*names: str) -> tuple[int, ...] | None:
    """Return the addresses of functions that torch's library, or one that it depends on, exports;
    None unless it exports all."""
    folder = Path(torch.__file__).parent / "lib"
    for name in _LIBRARIES:
        try:
            library = ctypes.CDLL(str(folder / name))
            found = [ctypes.cast(library[n], ctypes.c_void_p).value for n in names]
        except (OSError, AttributeError):
            continue
        addresses = tuple(address for address in found if address)
        if len(addresses) == len(names):
            return addresses
    return None
