"""The kernels of a program as text to be read."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..ir.types import SizeType
from ..kernels.groups import Group, Kind
from .kernel import Form, Layout, Lowered, NoKernel
from .launching.versions import MOST_PROCESSORS
from .lower import lower_group
from .rows.plan import plan_of
from .rows.rows import longest_row
from .rows.traffic import read_again

if TYPE_CHECKING:
    from ..ir.expr import Function
    from ..kernels.backend import KernelFunction


def text_of(kernel: KernelFunction) -> str:
    """Return the text of a kernel for operands that lie row by row; where none is made, why. Text
    that is for small sizes alone says so."""
    lowered: Lowered | str | None = _lowered(kernel.group)
    if isinstance(lowered, str):
        return f"# {kernel.name} runs as calls of torch: {lowered}\n"
    found: dict[str, str] = {}
    while lowered is not None:
        # Of alternatives with one text the last is for the largest sizes.
        limits = " and ".join(f"{dim} is at most {most}" for dim, most in lowered.limits)
        text = "\n\n".join(made.text for made in lowered.kernels)
        found[text] = f"# {kernel.name}, where {limits}" if limits else f"# {kernel.name}"
        lowered = lowered.otherwise
    return "\n\n".join(f"{head}\n{text}" for text, head in found.items())


def why_without_text(group: Group) -> str | None:
    """Return why no text is made for a kernel; None where it is."""
    lowered = _lowered(group)
    return lowered if isinstance(lowered, str) else None


def reading_again(group: Group) -> str | None:
    """Return how many bytes a kernel that goes through long rows more than once reads again, and
    how long rows must be for that; None where it does not."""
    if group.kind is not Kind.ROWS:
        return None
    try:
        plan = plan_of(group, _layout(group.function))
    except NoKernel:
        return None
    alone, shared = (longest_row(plan, processors) for processors in (1, MOST_PROCESSORS))
    size = plan.reduced.constant
    if plan.passes == 1 or (size is not None and size <= alone):
        return None
    what = f"{read_again(plan)} B"
    if size is None:
        return f"{what} where {plan.reduced} is above {alone}, on GPUs with clusters above {shared}"
    return what if size > shared else f"{what} on GPUs without clusters"


def _lowered(group: Group) -> Lowered | str:
    try:
        return lower_group(group, _layout(group.function))
    except NoKernel as error:
        return str(error)


def _layout(function: Function) -> Layout:
    """Return the layout of operands that lie row by row."""
    forms = (
        Form.NUMBER if isinstance(p.ty, SizeType) else Form.CONTIGUOUS for p in function.params
    )
    return Layout(tuple(forms))
