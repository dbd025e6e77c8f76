"""The torch modules inside a model: they hold the parameters of its call sites.

Parameters, buffers and `state_dict` are torch's own. What torch does to a layer by replacing its
parameter or by a hook of its call has no meaning for a site, which is never called, and is refused.
"""

from __future__ import annotations

from typing import Any, Final, TypeAlias

import torch
from torch import nn

from ...diagnostics.catalogue.model import FixedSite
from ...diagnostics.diagnostic import RunError

Form: TypeAlias = tuple[torch.dtype, torch.Size]

_COMPUTED: Final = (
    "`weight_norm`, `prune` and parametrizations replace a parameter: compute what takes its place "
    "in the definition, of a `relay.param`"
)


class Holder(nn.Module):
    """A module whose parameters a compiled program reads by their names.

    `place` is the name of the model and the dotted name of the module within it.
    """

    def __init__(self, place: tuple[str, str]) -> None:
        super().__init__()
        self._where: Final = place
        self.made: Final[dict[str, Form]] = {}
        """The dtypes and shapes that the parameters and buffers were made with, by their names."""
        self.__dict__["_parameters"] = _Table(place)

    def seal(self) -> None:
        """Let no parameter come or go from here on."""
        table = self.__dict__["_parameters"]
        assert isinstance(table, _Table)
        table.is_sealed = True

    def register_parameter(self, name: str, param: nn.Parameter | None) -> None:
        """Add a parameter. Raises RunError for one that is to take the place of another."""
        if self._refuses(name.removesuffix("_orig"), name):
            raise RunError(FixedSite(*self._where, f"take the parameter `{name}`", _COMPUTED))
        super().register_parameter(name, param)

    def __setattr__(self, name: str, value: Any) -> None:
        """Set an attribute. Raises RunError for parametrizations."""
        if name == "parametrizations":
            raise RunError(FixedSite(*self._where, "be parametrized", _COMPUTED))
        super().__setattr__(name, value)

    def _refuses(self, replaced: str, name: str) -> bool:
        """Return whether a new parameter would stand for one that the program reads."""
        table = self.__dict__["_parameters"]
        is_sealed = isinstance(table, _Table) and table.is_sealed
        return is_sealed and name not in table and replaced in table


class _Table(dict[str, Any]):
    """The parameters of a module by name, of which none goes once the model is built."""

    def __init__(self, place: tuple[str, str], *items: Any) -> None:
        super().__init__(*items)
        self.place: Final = place
        self.is_sealed = False

    def __delitem__(self, name: str) -> None:
        if self.is_sealed:
            raise RunError(FixedSite(*self.place, f"lose its parameter `{name}`", _COMPUTED))
        super().__delitem__(name)

    def __reduce__(self) -> Any:
        return _table, (self.place, self.is_sealed), None, None, iter(self.items())


def _table(place: tuple[str, str], is_sealed: bool) -> _Table:
    found = _Table(place)
    found.is_sealed = is_sealed
    return found
