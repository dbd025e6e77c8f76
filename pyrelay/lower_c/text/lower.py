"""Groups as C kernels: which text is made for which loop."""

from __future__ import annotations

from ...ir.op import Op
from ...kernels.calling import Layout
from ...kernels.groups import Group, Kind
from ...kernels.plans.code import kernel_name
from ..kernel import Kernel
from ..math import Target
from ..products import lower_call
from .contraction import lower_contraction
from .emit import KEYWORDS
from .pointwise import lower_pointwise, lower_updates
from .rows import lower_rows
from .scatter import lower_scatter


def lower(
    group: Group,
    layout: Layout,
    target: Target,
    name: str = "",
    *,
    routed: bool = False,
    keeps: bool = False,
) -> tuple[Kernel, ...]:
    """Return the kernels of a group, run one after another, with a name of their own if one is
    given; if `routed`, a library of matrix products may take part, and if it `keeps` operands
    packed, its caller may have it do so once for many calls. Raises NoKernel."""
    match group.kind:
        case Kind.POINTWISE:
            return (lower_pointwise(group, layout, target, name),)
        case Kind.ROWS:
            return (lower_rows(group, layout, target, name),)
        case Kind.SCATTER:
            return lower_scatter(group, layout, target, name)
        case Kind.UPDATES:
            return (lower_updates(group, layout, target, name),)
        case Kind.CALL:
            found = lower_call(group, layout, target, name)
            return (Kernel(found.name, found.head, found.text, found.arguments),)
        case Kind.CONTRACTION:
            made = lower_contraction(group, layout, target, name, routed=routed, keeps=keeps)
            return (made,)


def own_name(group: Group) -> str:
    """Return the name of the last kernel of a group that is given none."""
    if group.call is not None and isinstance(group.call.callee, Op):
        return group.call.callee.name
    return kernel_name(group.function, KEYWORDS)
