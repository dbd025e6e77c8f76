"""A kernel function as kernels: which text is made for which loop."""

from __future__ import annotations

from collections.abc import Callable

from ..ir.expr import Function
from ..kernels.groups import Group, Kind, group_of
from .contraction import lower_contraction
from .kernel import Layout, Lowered
from .pointwise import lower_pointwise
from .rows.rows import lower_rows
from .scatter import lower_scatter
from .updates import lower_updates


def lower(function: Function) -> Callable[[Layout], Lowered]:
    """Return what makes the kernels of a kernel function for a layout of its operands.

    Raises NoGroup for what is no kernel function, and NoKernel where no text is made for it.
    """
    group = group_of(function)

    def lowered(layout: Layout) -> Lowered:
        return lower_group(group, layout)

    return lowered


def lower_group(group: Group, layout: Layout) -> Lowered:
    """Return the kernels of a group. Raises NoKernel."""
    match group.kind:
        case Kind.POINTWISE:
            return lower_pointwise(group, layout)
        case Kind.CONTRACTION:
            return lower_contraction(group, layout)
        case Kind.SCATTER:
            return lower_scatter(group, layout)
        case Kind.UPDATES:
            return lower_updates(group, layout)
        case Kind.ROWS:
            return lower_rows(group, layout)
