"""Python files that tests write, or find, as modules."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Mapping
from pathlib import Path
from types import ModuleType
from typing import Any


def load_file(
    path: Path, name: str | None = None, names: Mapping[str, Any] | None = None
) -> ModuleType:
    """Return a file as a new module, which `sys.modules` has by its name. Its text sees `names`."""
    spec = importlib.util.spec_from_file_location(name or path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    vars(module).update(names or {})
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module
