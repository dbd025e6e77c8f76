"""The functions that fusion and outlining took out of a program, as an attribute of its module."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, final

from ..ir.module import Attribute, Module
from .groups import Group
from .remarks import Remark


@final
@dataclass(frozen=True, slots=True, eq=False)
class Outlined:
    """A module's kernel functions as groups, the names of its region functions, and the remarks of
    fusion."""

    groups: Mapping[str, Group] = field(default_factory=dict[str, Group])
    regions: tuple[str, ...] = ()
    remarks: tuple[Remark, ...] = ()

    @property
    def kernels(self) -> tuple[str, ...]:
        """The names of the kernel functions."""
        return tuple(self.groups)


_OUTLINED: Final[Attribute[Outlined]] = Attribute("outlined")


def outlined_of(module: Module) -> Outlined:
    """Return the functions that were taken out of a module; none before fusion."""
    return module.attribute(_OUTLINED) or Outlined()


def with_outlined(module: Module, outlined: Outlined) -> Module:
    """Return the module with a record of the functions that were taken out of it."""
    return module.with_attribute(_OUTLINED, outlined)
