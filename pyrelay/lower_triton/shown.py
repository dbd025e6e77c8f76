"""The kernels of a program as text to be read."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from ..ir.types import SizeType
from ..passes.regions.groups import Kind, NoGroup, group_of
from .kernel import Form, Layout, Lowered, NoKernel
from .lower import lower
from .row_plan import plan_of
from .row_traffic import read_again
from .rows import longest_row
from .versions import MOST_PROCESSORS

if TYPE_CHECKING:
    from ..ir.expr import Function
    from ..ir.module import Module


def kernels_text(module: Module, names: Iterable[str]) -> str:
    """Give the text of the kernel functions of a module, for operands that lie row by row; where
    none is made, why. What is made for small sizes alone says so."""
    return "\n\n".join(_text(name, module.functions[name]) for name in names)


def without_text(module: Module, names: Iterable[str]) -> dict[str, str]:
    """Give the kernel functions for which no text is made, and why."""
    made = ((name, _lowered(module.functions[name])) for name in names)
    return {name: found for name, found in made if isinstance(found, str)}


def reading_again(module: Module, names: Iterable[str]) -> dict[str, str]:
    """Give the kernel functions that go through long rows more than once, with how many bytes they
    read again and how long rows must be for that."""
    made = ((name, _read_again(module.functions[name])) for name in names)
    return {name: found for name, found in made if found is not None}


def _read_again(function: Function) -> str | None:
    try:
        group = group_of(function)
        if group.kind is not Kind.ROWS:
            return None
        plan = plan_of(group, _layout(function))
    except (NoGroup, NoKernel):
        return None
    alone, shared = (longest_row(plan, processors) for processors in (1, MOST_PROCESSORS))
    size = plan.reduced.constant
    if plan.passes == 1 or (size is not None and size <= alone):
        return None
    what = f"{read_again(plan)} B"
    if size is None:
        return f"{what} where {plan.reduced} is above {alone}, on GPUs with clusters above {shared}"
    return what if size > shared else f"{what} on GPUs without clusters"


def _lowered(function: Function) -> Lowered | str:
    try:
        return lower(function)(_layout(function))
    except (NoGroup, NoKernel) as error:
        return str(error)


def _layout(function: Function) -> Layout:
    """Give the layout of operands that lie row by row."""
    forms = (
        Form.NUMBER if isinstance(p.ty, SizeType) else Form.CONTIGUOUS for p in function.params
    )
    return Layout(tuple(forms))


def _text(name: str, function: Function) -> str:
    lowered: Lowered | str | None = _lowered(function)
    if isinstance(lowered, str):
        return f"# {name} runs as calls of torch: {lowered}\n"
    found: dict[str, str] = {}
    while lowered is not None:
        # Of alternatives with one text the last is for the largest sizes.
        limits = " and ".join(f"{dim} is at most {most}" for dim, most in lowered.limits)
        text = "\n\n".join(kernel.text for kernel in lowered.kernels)
        found[text] = f"# {name}, where {limits}" if limits else f"# {name}"
        lowered = lowered.otherwise
    return "\n\n".join(f"{head}\n{text}" for text, head in found.items())
