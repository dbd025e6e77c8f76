"""The names that the variables of one function have in text."""

from __future__ import annotations

import re
from typing import Final, final

from ..ir.expr import Var
from ..ir.names import Names
from .lexis import variable_text

_NUMBERED: Final = re.compile(r"_\d+$")


@final
class VarNames:
    """Names each variable by its hint, with a suffix where it is not unique, in the order in which
    they come."""

    def __init__(self) -> None:
        self._names: Final = Names()
        self._taken: Final[set[str]] = set()
        self._texts: Final[dict[Var, str]] = {}

    def text(self, var: Var) -> str:
        """Return the mention of a variable."""
        text = self._texts.get(var)
        if text is None:
            text = self._texts[var] = variable_text(self._unique(var.name or "v"))
        return text

    def _unique(self, hint: str) -> str:
        if hint in self._taken:  # `x_1` beside another `x_1` becomes `x_2`, not `x_1_1`
            hint = _NUMBERED.sub("", hint) or hint
        name = self._names.fresh(hint)
        self._taken.add(name)
        return name
