"""The memory that C functions have used, which each thread keeps for its next calls of any."""

from __future__ import annotations

import ctypes
import threading
from typing import Final, final


@final
class _Spare:
    """The chunks that a thread keeps (`relay_spare` in C): the first one, and their bytes. They go
    when the thread ends."""

    def __init__(self) -> None:
        self._cells: Final = (ctypes.c_int64 * 2)()
        self.address: Final = ctypes.addressof(self._cells)
        self._free: Final = ctypes.CDLL(None).free
        self._free.argtypes = [ctypes.c_void_p]

    def __del__(self) -> None:
        chunk = self._cells[0]
        while chunk:
            following = ctypes.c_int64.from_address(chunk).value
            self._free(chunk)
            chunk = following


@final
class _Kept(threading.local):
    """The state of each thread."""

    def __init__(self) -> None:
        self.spare: Final = _Spare()


_KEPT: Final = _Kept()


def spare() -> int:
    """Return the address of what this thread keeps."""
    return _KEPT.spare.address
