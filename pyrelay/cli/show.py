"""`show FILE:NAME --stage STAGE`: the program of a function as a stage of the compiler leaves it;
`explain FILE [FUNCTION]`: what is fused of each compiled function, what is not, and why; `explain
CODE`: the meaning of an error."""

from __future__ import annotations

import inspect
import re
import sys
from collections.abc import Callable
from pathlib import Path

from ..diagnostics.catalogue import by_code
from .load import LoadError, entry_of, function, functions, is_text, load, load_text


def show(target: str, stage: str) -> int:
    """Print the program of `FILE:NAME` at a stage; of a text file also as a whole."""
    file, _, name = target.rpartition(":")
    if is_text(target):
        text = _whole(Path(target), stage)
    elif is_text(file):
        module = load_text(Path(file))
        text = _at_stage(module[entry_of(module, name)].show, stage)
    else:
        text = _at_stage(function(target).show, stage)
    sys.stdout.write(text.rstrip("\n") + "\n")
    return 0


def _whole(file: Path, stage: str) -> str:
    module = load_text(file)
    match stage:
        case "source":
            return str(module)
        case "typed":
            return str(module.typed)
        case _:
            return _at_stage(module[entry_of(module, None)].show, stage)


def _at_stage(show: Callable[[str], str], stage: str) -> str:
    try:
        return show(stage)
    except ValueError as error:
        raise LoadError(str(error)) from None


def explain(file: Path, name: str | None) -> int:
    """Print the kernels of a function of a file, of all that can run alone if none is named."""
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
