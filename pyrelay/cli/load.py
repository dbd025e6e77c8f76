"""Programs in files: importing Python and finding the compiled functions in it, reading texts.

A file inside a package is imported under its dotted name, so that its relative imports work; any
other under its own name, with its folder on the path as Python does for scripts. What stands below
`if __name__ == "__main__":` does not run, and what the rest prints goes to stderr.
"""

from __future__ import annotations

import importlib
import importlib.util
import linecache
import os
import sys
import traceback
from collections.abc import Generator, Mapping
from contextlib import contextmanager, redirect_stdout
from pathlib import Path
from types import ModuleType, TracebackType
from typing import TYPE_CHECKING, Final

from ..decorators import RelayFunction
from ..diagnostics.diagnostic import RelayError
from ..diagnostics.misspelt import nearest

if TYPE_CHECKING:
    from ..runtime.texts.text_module import RelayModule

SUFFIXES: Final = (".relay", ".rly", ".json")
"""How the names of files end that contain programs as text or JSON."""


class LoadError(Exception):
    """A file cannot be imported, or has no function of that name; the message says which."""


def load(file: Path) -> ModuleType:
    """Import a file. Raises LoadError, and CheckError where a decorator found a mistake."""
    path = _existing(file)
    root, name = _root_and_name(path)
    if str(root) not in sys.path:
        sys.path.insert(0, str(root))
    is_in_package = (path.parent / "__init__.py").is_file()
    try:
        with _stdout_to_stderr():
            return importlib.import_module(name) if is_in_package else _script(path, name)
    except (RelayError, LoadError):
        raise
    except (Exception, SystemExit) as error:
        lines = traceback.format_exception(error.with_traceback(_of_the_user(error, path)))
        raise LoadError("".join(lines) + f"{file} could not be imported") from None


@contextmanager
def _stdout_to_stderr() -> Generator[None]:
    """Send to stderr what a script prints, and what the processes that it starts print: it is no
    part of what a command prints."""
    kept = os.dup(1)
    os.dup2(2, 1)
    try:
        with redirect_stdout(sys.stderr):
            yield
    finally:
        if sys.__stdout__ is not None:
            sys.__stdout__.flush()
        os.dup2(kept, 1)
        os.close(kept)


def forget(file: Path) -> None:
    """Let a file be imported anew: it has changed."""
    path = str(file.resolve())
    for name, module in list(sys.modules.items()):
        if getattr(module, "__file__", None) == path:
            del sys.modules[name]
    # Bytecode counts as current if its source has the same size and was written in the same second.
    Path(importlib.util.cache_from_source(path)).unlink(missing_ok=True)
    linecache.checkcache(path)


def functions(module: ModuleType) -> Mapping[str, RelayFunction[..., object]]:
    """Return the compiled functions and models among a module's names, each object once."""
    found: dict[str, RelayFunction[..., object]] = {}
    seen: set[int] = set()
    for name, value in vars(module).items():
        if isinstance(value, RelayFunction) and id(value) not in seen:
            seen.add(id(value))
            found[name] = value
    return found


def function(target: str) -> RelayFunction[..., object]:
    """Return the function that `FILE:NAME` means. Raises LoadError."""
    file, _, name = target.rpartition(":")
    if not file:
        file, name = target.rstrip(":"), ""
    if not file:
        raise LoadError("say which function: FILE:NAME")
    found = functions(load(Path(file)))
    if name in found:
        return found[name]
    if not name and found:
        raise LoadError(f"say which function: {', '.join(f'{file}:{n}' for n in found)}")
    near = nearest(name, found)
    known = f"did you mean {near}?" if near else f"it has {', '.join(found) or 'none'}"
    named = f" {name}" if name else ""
    raise LoadError(f"{file} has no @relay or @relay_model function{named}; {known}")


def _existing(file: Path) -> Path:
    try:
        path = file.resolve()
    except (OSError, RuntimeError) as error:  # a link to itself
        raise LoadError(f"{file} cannot be read: {error}") from None
    if path.is_dir():
        raise LoadError(f"{file} is a folder; name a file in it")
    if not path.is_file():
        raise LoadError(f"there is no file {file}")
    return path


def _root_and_name(path: Path) -> tuple[Path, str]:
    """Return the folder to import from, and the module's dotted name there."""
    parts = [path.stem]
    folder = path.parent
    while (folder / "__init__.py").is_file():
        parts.insert(0, folder.name)
        folder = folder.parent
    if parts[-1] == "__init__":
        parts.pop()
    return folder, ".".join(parts)


def _script(path: Path, name: str) -> ModuleType:
    """Import a file that is in no package, even where its name is taken by another module."""
    loaded = sys.modules.get(name)
    if loaded is not None:
        if getattr(loaded, "__file__", None) == str(path):
            return loaded
        name = f"{name}__checked"
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise LoadError(f"{path} is not a Python file")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # dataclasses look their module up while it is being made
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[name]
        raise
    return module


def _of_the_user(error: BaseException, path: Path) -> TracebackType | None:
    """Return the part of a traceback that starts in the user's file; nothing if none does, as where
    the file is no Python."""
    frame = error.__traceback__
    while frame is not None and frame.tb_frame.f_code.co_filename != str(path):
        frame = frame.tb_next
    return frame


def is_text(file: str | Path) -> bool:
    """Return whether a file is read as text instead of imported."""
    return str(file).endswith(SUFFIXES)


def load_text(file: Path) -> RelayModule:
    """Return the module in a file. Raises LoadError and CheckError."""
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
