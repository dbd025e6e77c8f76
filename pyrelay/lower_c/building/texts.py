"""From C text to functions: looked up in the cache on disk, else built, several at once."""

from __future__ import annotations

import json
import logging
import os
import tempfile
import threading
from collections.abc import Generator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Final, final

from ...config import current
from ...cpu import cpu
from ...dataclass import dataclass
from ...disk_cache import DiskCache
from ...notices import announced
from ...version import __version__
from .compiler import CannotBuild, Compiler, find_compiler
from .library import Library

_LOGGER: Final = logging.getLogger("pyrelay.building")

FLAGS: Final = (
    "-std=gnu11",
    "-O3",
    "-fPIC",
    "-fno-math-errno",
    "-fno-trapping-math",
    "-ffp-contract=off",
    "-fwrapv",
    "-w",
)
"""None of them changes a value: NaN, infinities, signed zeros and the order of sums stay."""

CACHE: Final = DiskCache("built", limit=512 << 20)
"""Shared objects by what they were built from, by which compiler and for which processor."""

_NOTICE: Final = (
    "torch runs what would be C, with the same values: %s; PYRELAY_LOWERING=torch asks for no C"
)

_notified = threading.Event()
_refused: Final[dict[str, CannotBuild]] = {}
"""Texts that the compiler has refused, by key: it is not asked twice."""


@final
@dataclass(frozen=True, slots=True)
class LibrarySource:
    """The C texts of one library, with a name for messages and flags beside those that every text
    has. Several texts are compiled in parallel, and linked."""

    texts: tuple[str, ...]
    name: str = "a program"
    flags: tuple[str, ...] = ()


def build(text: str, *, name: str = "a program", flags: Sequence[str] = ()) -> Library:
    """Return a C text as a loaded library. Raises CannotBuild."""
    (library,) = build_all([LibrarySource((text,), name, tuple(flags))])
    return library


def build_all(sources: Sequence[LibrarySource]) -> tuple[Library, ...]:
    """Return loaded libraries; those that are not in the cache are built in parallel. Raises
    CannotBuild if one of them cannot be built."""
    compiler = find_compiler()
    keys = [_key(compiler, source) for source in sources]
    found = {key: CACHE.find(key) for key in keys}
    missing = {k: s for k, s in zip(keys, sources, strict=True) if found[k] is None}
    if missing:
        found.update(_built(compiler, missing))
    libraries = {key: _loaded(content) for key, content in found.items()}
    return tuple(libraries[key] for key in keys)


def build_or_notify(sources: Sequence[LibrarySource]) -> tuple[Library, ...] | None:
    """Return loaded libraries, or None where they cannot be built. The first time in a
    process that this happens the user gets a notice."""
    try:
        return build_all(sources)
    except CannotBuild as error:
        _notify(error)
        return None


def can_build() -> bool:
    """Return whether there is a C compiler. The user gets the same notice where there is none."""
    try:
        find_compiler()
    except CannotBuild as error:
        _notify(error)
        return False
    return True


def _notify(error: CannotBuild) -> None:
    if not _notified.is_set():
        _notified.set()
        _LOGGER.warning(_NOTICE, error)


def _key(compiler: Compiler, source: LibrarySource) -> str:
    facts = [__version__, compiler.command, compiler.version, cpu().key, _flags(source)]
    return json.dumps([*facts, *source.texts])


def _flags(source: LibrarySource) -> tuple[str, ...]:
    return (*FLAGS, *cpu().flags, *source.flags)


def _loaded(content: bytes | None) -> Library:
    assert content is not None  # what was not found has been built
    return Library(content)


def _built(compiler: Compiler, missing: dict[str, LibrarySource]) -> dict[str, bytes]:
    """Return the shared objects of libraries by key, and keep them."""
    for key in missing:
        if key in _refused:
            raise _refused[key]
    count = sum(len(source.texts) for source in missing.values())
    workers = min(count, os.cpu_count() or 1)
    names = ", ".join(dict.fromkeys(source.name for source in missing.values()))
    contents: dict[str, bytes] = {}
    with announced(_notice(names), _LOGGER), ThreadPoolExecutor(workers, "pyrelay-build") as pool:
        futures = {
            key: [pool.submit(_compiled, compiler, source, text) for text in source.texts]
            for key, source in missing.items()
        }
        for key, parts in futures.items():
            try:
                objects = [part.result() for part in parts]
                contents[key] = _linked(compiler, missing[key], objects)
            except CannotBuild as error:
                _refused[key] = error
                raise
            CACHE.keep(key, contents[key])
    return contents


def _compiled(compiler: Compiler, source: LibrarySource, text: str) -> bytes:
    """Return the shared object of a text, or an object if its library has more texts."""
    kind = "-shared" if len(source.texts) == 1 else "-c"
    with _folder() as folder:
        return compiler.compile(text, (*_flags(source), kind), folder)


def _linked(compiler: Compiler, source: LibrarySource, objects: Sequence[bytes]) -> bytes:
    """Return the shared object of a library, of whose texts there are objects."""
    if len(objects) == 1:
        return objects[0]
    with _folder() as folder:
        return compiler.link(objects, (*_flags(source), "-shared"), folder)


@contextmanager
def _folder() -> Generator[Path, None, None]:
    try:
        with tempfile.TemporaryDirectory(prefix="pyrelay-") as folder:
            yield Path(folder)
    except OSError as error:
        raise CannotBuild(f"there is no room for temporary files: {error}") from error


def _notice(names: str) -> str:
    """Return the notice of a build that takes long."""
    text = f"C is being built for {names}"
    return f"{text}; the result is kept in {CACHE.folder}" if current().cache else text
