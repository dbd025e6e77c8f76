"""Which test files run where torch is not installed: those of the half of the compiler that needs
none of it."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[1]
_IMPORT: Final = re.compile(r"^\s*(?:from|import) ([\w.]+)", re.MULTILINE)
_TORCH: Final = ("torch", "pyrelay.api", "pyrelay.lower_torch", "pyrelay.models", "pyrelay.runtime")


@cache
def needs_torch(file: Path) -> bool:
    """Return whether a test file needs torch: it, or a module of the tests that it imports, imports
    torch or what runs programs with it."""
    text = file.read_text()
    if "relay.optim." in text:  # optimisers are made of tensors
        return True
    for name in _IMPORT.findall(text):
        if name.startswith(_TORCH):
            return True
        module = ROOT / f"{name.replace('.', '/')}.py"
        if name.startswith("tests.") and module.exists() and needs_torch(module):
            return True
    return False
