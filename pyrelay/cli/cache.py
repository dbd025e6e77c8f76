"""`cache`: what is kept between processes, where, and how to remove it."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Final

from ..config import cache_folder
from ..disk_cache import DiskCache

_FOLDERS: Final = {
    "built": "shared objects made of C",
    "regions": "texts of regions in C",
    "compilers": "versions of C compilers",
    "programs": "programs behind passes",
    "kernels": "texts of Triton kernels",
    "measurements": "what was the fastest way",
}
"""The folders of the cache, and no others: the folder may be one in which a user has files, too."""


def cache(action: str) -> int:
    """Print what the caches occupy, or remove what is in them."""
    folders = {name: DiskCache(name, limit=0) for name in _FOLDERS}
    sys.stdout.write(f"{cache_folder()}\n")
    try:
        for name, folder in folders.items():
            usage = folder.usage()
            if action == "clear":
                folder.clear()
            files = f"{usage.entries} file{'' if usage.entries == 1 else 's'}"
            size = f"{files}, {usage.size / 1e6:.1f} MB"
            done = "removed: " if action == "clear" else ""
            sys.stdout.write(f"  {name:<16} {done}{size:<24} {_FOLDERS[name]}\n")
    except OSError as error:
        sys.stderr.write(f"{_place(error)} cannot be removed: {error.strerror}\n")
        return 2
    return 0


def _place(error: OSError) -> Path:
    return Path(error.filename) if error.filename else cache_folder()
