"""The Python signature of an operator."""

from __future__ import annotations

import inspect
from functools import lru_cache

from ..op import HiddenKind, Missing, Op


@lru_cache
def signature(op: Op) -> inspect.Signature:
    """Return an operator's parameters as Python sees them: operands, then attributes.

    What must be given and stands behind a default is passed by name, and so is a key, which no
    function of torch has.
    """
    keys = {h.name for h in op.hidden if h.holder is HiddenKind.KEY}
    found: list[inspect.Parameter] = []
    has_default = False
    for param in op.params:
        missing = param.default is Missing.REQUIRED
        has_default = has_default or (not missing and param.name not in keys)
        keyword = (has_default and missing) or param.name in keys
        kind = (
            inspect.Parameter.KEYWORD_ONLY if keyword else inspect.Parameter.POSITIONAL_OR_KEYWORD
        )
        default = inspect.Parameter.empty if missing else param.default
        found.append(inspect.Parameter(param.name, kind, default=default))
    found.sort(key=lambda p: p.kind)
    return inspect.Signature(found)
