"""A cache on disk that processes share: contents by key, in one folder of bounded size.

An entry is one file, at the place that the hash of its key determines. It begins with a digest of
key and content, so a file that is cut, foreign or of another key is not returned. Files are
replaced as a whole. Where the folder cannot be written, nothing is kept; the option `cache` turns
the cache off. An entry that is found counts as used, and the entries that were used longest ago
are removed where the folder grows beyond its limit.
"""

from __future__ import annotations

import hashlib
import logging
import os
import shutil
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final, final

from .config import cache_folder, current
from .dataclass import dataclass
from .files import replace_file

_LOGGER: Final = logging.getLogger("pyrelay.cache")

_MAGIC: Final = b"pyrelay cache 1 "
_TEMPORARY: Final = ".tmp"
_STALE: Final = 3600.0
"""Seconds after which a temporary file belongs to a process that was killed."""

_SHRUNK: Final = 0.8
"""The part of its limit that a folder keeps when entries are removed."""

_BETWEEN: Final = 64
"""How many entries a process adds between two looks at the size of the folder."""


@final
@dataclass(frozen=True, slots=True)
class Usage:
    """The disk space of a cache."""

    entries: int
    size: int
    """In bytes."""


@final
class DiskCache:
    """A folder below the cache folder, with contents by key."""

    def __init__(self, name: str, limit: int) -> None:
        """`limit` is the number of bytes that the folder may occupy."""
        self.name: Final = name
        self.limit: Final = limit
        self._added = 0

    @property
    def folder(self) -> Path:
        """The folder, which may not exist yet."""
        return cache_folder() / self.name

    def find(self, key: str) -> bytes | None:
        """Return the content of a key; None where there is none that can be trusted."""
        if not current().cache:
            return None
        path = self._place(key)
        try:
            found = path.read_bytes()
        except OSError:
            return None
        head, separator, content = found.partition(b"\n")
        if not separator or head != _head(key, content):
            return None
        _touch(path)
        return content

    def has(self, key: str) -> bool:
        """Return whether there is an entry for a key, which may be damaged."""
        return current().cache and self._place(key).exists()

    def keep(self, key: str, content: bytes) -> None:
        """Keep the content of a key, where files can be written at all."""
        if not current().cache:
            return
        path = self._place(key)
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            replace_file(path, _head(key, content) + b"\n" + content)
        except OSError as error:
            _LOGGER.info("nothing was kept in %s: %s", self.folder, error)
            return
        if self._added % _BETWEEN == 0:
            self.shrink()
        self._added += 1

    def usage(self) -> Usage:
        """Return the size of the folder."""
        sizes = [entry.size for entry in self._files()]
        return Usage(len(sizes), sum(sizes))

    def clear(self) -> None:
        """Remove all entries. Raises OSError where files cannot be removed."""
        if self.folder.exists():
            shutil.rmtree(self.folder)

    def shrink(self) -> None:
        """Remove the entries that were used longest ago where there are too many, and what killed
        processes have left behind."""
        now = time.time()
        files = sorted(self._files(), key=lambda file: file.used)
        size = sum(file.size for file in files)
        wanted = self.limit if size <= self.limit else int(_SHRUNK * self.limit)
        for file in files:
            is_left_over = file.path.suffix == _TEMPORARY and now - file.used > _STALE
            if size > wanted or is_left_over:
                size -= file.size
                _remove(file.path)

    def _place(self, key: str) -> Path:
        digest = hashlib.sha256(key.encode()).hexdigest()
        return self.folder / digest[:2] / digest[2:]

    def _files(self) -> Iterator[_File]:
        for folder, _, names in os.walk(self.folder):
            for name in names:
                path = Path(folder, name)
                try:
                    found = path.stat()
                except OSError:  # another process has just removed it
                    continue
                yield _File(path, found.st_size, found.st_mtime)


@final
@dataclass(frozen=True, slots=True)
class _File:
    path: Path
    size: int
    used: float


def _head(key: str, content: bytes) -> bytes:
    digest = hashlib.sha256(len(key).to_bytes(8, "big") + key.encode() + content)
    return _MAGIC + digest.hexdigest().encode()


def _touch(path: Path) -> None:
    try:
        os.utime(path)
    except OSError:  # the folder of another user, or a disk that cannot be written
        _LOGGER.debug("the use of %s was not recorded", path)


def _remove(path: Path) -> None:
    try:
        path.unlink(missing_ok=True)
    except OSError as error:
        _LOGGER.info("%s was not removed: %s", path, error)
