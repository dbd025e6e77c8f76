"""Shared objects loaded into this process."""

from __future__ import annotations

import ctypes
import os
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final, final

from .compiler import CannotBuild


@final
class Library:
    """A shared object that stays loaded as long as the process runs."""

    def __init__(self, content: bytes) -> None:
        """Load the bytes of a shared object. Raises CannotBuild if the system cannot."""
        self._loaded: Final = _load(content)

    def function(self, name: str, parameters: Sequence[Any], result: Any = None) -> Any:
        """Return a function as a callable, with the types of ctypes. It releases the lock of the
        interpreter while it runs. Raises AttributeError if there is none of this name."""
        found = self._loaded[name]
        found.argtypes = list(parameters)
        found.restype = result
        return found

    def address(self, name: str) -> int:
        """Return the address of a function, for C to call. Raises AttributeError as above."""
        found = ctypes.cast(self._loaded[name], ctypes.c_void_p).value
        assert found is not None  # a function that there is has an address
        return found


def _load(content: bytes) -> ctypes.CDLL:
    """Load a copy that only this process sees, so that nobody changes it under us."""
    try:
        handle, name = tempfile.mkstemp(prefix="pyrelay-", suffix=".so")
    except OSError as error:
        raise CannotBuild(f"no temporary file can be written: {error}") from error
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
        return ctypes.CDLL(name)
    except OSError as error:
        raise CannotBuild(f"a shared object cannot be loaded: {error}") from error
    finally:
        _remove(Path(name))


def _remove(path: Path) -> None:
    """Remove the file of a library; what is loaded stays."""
    try:
        path.unlink()
    except OSError:  # Windows keeps the files of loaded libraries
        return
