"""Programs as text files on the command line: which files they are, and how they are read."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

from ..diagnostics.misspelt import nearest
from .load import LoadError

if TYPE_CHECKING:
    from ..runtime.texts.text_module import RelayModule

SUFFIXES: Final = (".relay", ".rly", ".json")
"""How the names of files end that hold programs as text or JSON."""


def is_text(file: str | Path) -> bool:
    """Return whether a file is read as text instead of imported."""
    return str(file).endswith(SUFFIXES)


def load_text(file: Path) -> RelayModule:
    """Return the module that a file holds. Raises LoadError and CheckError."""
    from ..api import parse  # brings in the runtime

    if file.suffix == ".py":
        raise LoadError(f"{file} is Python; this command takes a text, such as FILE.relay")
    try:
        return parse(file)
    except OSError as error:
        raise LoadError(f"{file} cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise LoadError(f"{file} cannot be read: it is no text in UTF-8") from None


def entry_of(module: RelayModule, name: str | None) -> str:
    """Return the function that a command means: the one named, else `main`, else the first.

    Raises LoadError for a name that the module has not, or a module without functions.
    """
    if name is None:
        name = "main" if "main" in module else next(iter(module), None)
    if name is None:
        raise LoadError("the module has no function")
    if name not in module:
        near = nearest(name, module)
        known = f"did you mean {near}?" if near else f"it has {', '.join(module)}"
        raise LoadError(f"the module has no function {name}; {known}")
    return name
