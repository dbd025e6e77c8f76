"""Python identifiers for variables: readable, unique in a program's text, always the same."""

from __future__ import annotations

import builtins
import keyword
import re
from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Final, final

from ...ir.expr import Var
from ...ir.names import Names

SUPPORT: Final = (
    "torch",
    "device",
    "depth",
    "Cell",
    "DeepFunction",
    "deep_function",
    "run_steps",
    "tensor_of",
    "cast_integer",
    "exactly",
    "fitted",
    "integer_power",
    "truncated",
    "sign_of",
    "failure",
)
"""The names that generated code uses besides its own and torch's."""


NO_NAMES: Final[Mapping[str, Var | None]] = MappingProxyType({})


@final
class Identifiers:
    """Hands out identifiers that are new within one scope."""

    def __init__(
        self, reserved: Iterable[str] = (), source: Mapping[str, Var | None] = NO_NAMES
    ) -> None:
        """`source` has the local names that a debugger shows: each with the one variable that has
        its values, or None. Other names begin with an underscore then."""
        taken = (*keyword.kwlist, *keyword.softkwlist, *dir(builtins), *SUPPORT, *reserved)
        self._names: Final = Names(taken)
        self._prefix: Final = "_" if source else ""
        self._source: Final = {name: self._names.fresh(name) for name in source}
        self._vars: Final = {v: self._source[n] for n, v in source.items() if v is not None}

    def fresh(self, hint: str) -> str:
        """Return an identifier like the hint that was not given before."""
        return self._names.fresh(self._prefix + identifier(hint))

    def has_source(self, name: str) -> bool:
        """Return whether a local name of the source has a Python variable of its own."""
        return name in self._source

    def source(self, name: str) -> str:
        """Return the identifier of a local name of the source."""
        return self._source[name]

    def of_function(self, var: Var) -> str:
        """Return the identifier of a local function, which tracebacks and debuggers show."""
        if var not in self._vars:
            self._vars[var] = self._names.fresh(identifier(var.name))
        return self._vars[var]

    def of(self, var: Var) -> str:
        """Return the identifier of a variable, the same one each time."""
        if var not in self._vars:
            self._vars[var] = self.fresh(var.name)
        return self._vars[var]


def identifier(hint: str) -> str:
    """Return the hint as an identifier. Two underscores in a row mark names of the host itself."""
    text = re.sub(r"__+", "_", re.sub(r"\W", "_", hint))
    return text if text.isidentifier() and text != "_" else f"v_{text}".rstrip("_")
