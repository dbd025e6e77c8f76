"""`explain FILE [FUNCTION]`: what is fused of each compiled function, what is not, and why;
`explain CODE`: what an error means."""

from __future__ import annotations

import inspect
import re
import sys
from pathlib import Path

from ..diagnostics.catalogue import by_code
from .load import LoadError, function, functions, load
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


def is_code(text: str) -> bool:
    """Return whether an argument of the command line is the code of an error."""
    return re.fullmatch(r"RL\d+", text.upper()) is not None


def explain_code(code: str) -> int:
    """Print what an error means. Raises LoadError for a code that no error has."""
    known = by_code()
    if code.upper() not in known:
        raise LoadError(f"no error has the code {code}")
    texts = [inspect.getdoc(entry) or "" for entry in known[code.upper()]]
    sys.stdout.write(f"{code.upper()}\n\n" + "\n\n".join(texts) + "\n")
    return 0
