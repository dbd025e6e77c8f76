"""Groups as kernels: which text is made for which loop, and the text as it is shown."""

from __future__ import annotations

from ..kernels.backend import KernelFunction
from ..kernels.calling import Layout, NoKernel, contiguous_layout
from ..kernels.groups import Group, Kind
from ..kernels.plans.row_reuse import read_again
from ..kernels.plans.rows import row_plan
from .contraction import lower_contraction
from .kernel import Lowered, Target
from .launching.versions import MOST_PROCESSORS
from .pointwise import lower_pointwise, lower_scatter, lower_updates
from .rows.rows import longest_row, lower_rows


def lower(group: Group, layout: Layout, target: Target) -> Lowered:
    """Return the kernels of a group. Raises NoKernel."""
    match group.kind:
        case Kind.POINTWISE:
            return lower_pointwise(group, layout)
        case Kind.CONTRACTION:
            return lower_contraction(group, layout, target)
        case Kind.SCATTER:
            return lower_scatter(group, layout)
        case Kind.UPDATES:
            return lower_updates(group, layout)
        case Kind.ROWS:
            return lower_rows(group, layout, target)
        case Kind.CALL:
            raise NoKernel("the operator has no Triton form")


def text_of(kernel: KernelFunction) -> str:
    """Return the text of a kernel for operands that lie row by row, or why there is none. Text for
    small sizes alone is marked as such."""
    lowered: Lowered | str | None = _contiguous(kernel.group)
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
    lowered = _contiguous(group)
    return lowered if isinstance(lowered, str) else None


def reading_again(group: Group) -> str | None:
    """Return how many bytes a kernel that goes through long rows more than once reads again, and
    how long rows must be for that; None where it does not."""
    if group.kind is not Kind.ROWS:
        return None
    try:
        plan = row_plan(group, contiguous_layout(group.function))
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


def _contiguous(group: Group) -> Lowered | str:
    try:
        return lower(group, contiguous_layout(group.function), Target())
    except NoKernel as error:
        return str(error)
