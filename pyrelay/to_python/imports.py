"""Operators of a user's own: where the file that uses them imports them from."""

from __future__ import annotations

import inspect
import sys
from typing import NamedTuple

from ..ir.op import Library, Op
from ..operators.table import BY_NAME
from ..translate.source.definition import meaning


class Import(NamedTuple):
    """A name of a module."""

    module: str
    name: str


def is_own(op: Op) -> bool:
    """Return whether an operator is a user's own."""
    return BY_NAME.get(op.name) is not op


def home(op: Op) -> Import | None:
    """Return the name under which a user's operator can be imported; None where there is none, as
    for one that is local to a function, or made by a script."""
    function = inspect.unwrap(op.lowering.body) if isinstance(op.lowering, Library) else None
    module = sys.modules.get(getattr(function, "__module__", ""))
    if module is None or module.__name__ == "__main__":
        return None
    found = getattr(module, op.name, None)
    return Import(module.__name__, op.name) if meaning(found) is op else None


def described_home(op: Op) -> str:
    """Return where an operator that cannot be imported was declared, in words."""
    function = inspect.unwrap(op.lowering.body) if isinstance(op.lowering, Library) else None
    named = getattr(function, "__qualname__", op.name)
    module = getattr(function, "__module__", None)
    return f"the operator `{named}` of `{module}`"
