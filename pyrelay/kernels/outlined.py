"""The functions that fusion and outlining took out of a program, as an attribute of its module,
and the remarks of fusion: why values that belong together are in several kernels."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import Final, TypeAlias, final

from ..dataclass import dataclass
from ..ir.expr import Call, Function, GlobalVar, LetBlock, Var
from ..ir.module import Module, ModuleKey
from ..ir.traverse import post_order
from ..operators.composite.descent import overwrite
from ..operators.composite.table_rows import add_rows, store_rows
from .contraction_axes import Product
from .groups import Domain, Group, Kind, Output, Reduced, Scattered


@final
@dataclass(frozen=True, slots=True)
class StoredRemark:
    """Why `var` is stored: what uses it, and why `user` is not computed together with it."""

    var: Var
    user: Var
    why: str


@final
@dataclass(frozen=True, slots=True)
class SeparatedRemark:
    """Why two sums of products that read `shared` are in two kernels."""

    first: Var
    second: Var
    shared: Var
    why: str


Remark: TypeAlias = StoredRemark | SeparatedRemark


@final
@dataclass(frozen=True, slots=True, eq=False)
class Outlined:
    """A module's kernel functions as groups, its region functions as they were taken out, and the
    remarks of fusion. Passes of a backend change region functions in the module, not here."""

    groups: Mapping[str, Group] = field(default_factory=dict[str, Group])
    functions: Mapping[str, Function] = field(default_factory=dict[str, Function])
    remarks: tuple[Remark, ...] = ()

    @property
    def kernels(self) -> tuple[str, ...]:
        """The names of the kernel functions."""
        return tuple(self.groups)

    @property
    def regions(self) -> tuple[str, ...]:
        """The names of the region functions."""
        return tuple(self.functions)


OUTLINED: Final[ModuleKey[Outlined]] = ModuleKey(
    "outlined",
    (
        *(Outlined, StoredRemark, SeparatedRemark),
        *(Group, Kind, Domain, Output, Reduced, Product, Scattered),
    ),
)
"""The attribute of a module behind fusion."""


def outlined_of(module: Module) -> Outlined:
    """Return the functions that were taken out of a module; none before fusion."""
    return module.attribute(OUTLINED) or Outlined()


def with_outlined(module: Module, outlined: Outlined) -> Module:
    """Return the module with a record of the functions that were taken out of it."""
    return module.with_attribute(OUTLINED, outlined)


def written_parameters(module: Module, name: str) -> tuple[int, ...]:
    """Return the positions of the parameters of a region function in whose storage it writes:
    through its kernels, or by itself."""
    function = outlined_of(module).functions[name]
    positions = {p: i for i, p in enumerate(function.params)}
    found: set[int] = set()
    for node in post_order(function):
        if not isinstance(node, LetBlock):
            continue
        for call in (b.value for b in node.bindings if isinstance(b.value, Call)):
            targets = (call.args[i] for i in _written_operands(module, call))
            found.update(positions[t] for t in targets if isinstance(t, Var) and t in positions)
    return tuple(sorted(found))


def _written_operands(module: Module, call: Call) -> tuple[int, ...]:
    match call.callee:
        case GlobalVar(name):
            return outlined_of(module).groups[name].overwritten
        case callee if callee in (overwrite, add_rows, store_rows):
            return (0,)
        case _:
            return ()
