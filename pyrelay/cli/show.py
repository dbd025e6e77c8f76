"""`show FILE:NAME --stage STAGE`: one function's program as a stage of the compiler leaves it."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

from .load import LoadError, function
from .texts import entry_of, is_text, load_text


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


def _at_stage(give: Callable[[str], str], stage: str) -> str:
    try:
        return give(stage)
    except ValueError as error:
        raise LoadError(str(error)) from None
