"""`explain FILE [FUNCTION]`: what is fused of each compiled function, what is not, and why."""

from __future__ import annotations

import sys
from pathlib import Path

from .load import function, functions, load
from .texts import entry_of, is_text, load_text


def explain(file: Path, name: str | None) -> int:
    """Print what becomes of a function of a file, of all that can run alone if none is named."""
    if is_text(file):
        module = load_text(file)
        texts = [module[entry_of(module, name)].explain()]
    elif name is not None:
        texts = [function(f"{file}:{name}").explain()]
    else:
        texts = [f.explain() for f in functions(load(file)).values()]
    sys.stdout.write("\n".join(texts))
    return 0
