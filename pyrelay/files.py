"""Files that are written whole: those that several processes share, and those of the user."""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path


def replace_file(path: Path, content: str | bytes) -> None:
    """Write a file such that others see the old one or the new one, never a part. A file that is
    there keeps its permissions, and a link leads to the new one. Raises OSError, and then leaves
    nothing behind."""
    data = content.encode() if isinstance(content, str) else content
    path = path.resolve()
    handle, name = tempfile.mkstemp(dir=path.parent, suffix=".tmp")
    temporary = Path(name)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
        if path.exists():
            shutil.copymode(path, temporary)
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)
