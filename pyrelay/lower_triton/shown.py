"""The kernels of a program as text to be read."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from ..ir.types import SizeType
from ..passes.regions.groups import NoGroup
from .kernel import Form, Layout, Lowered, NoKernel
from .lower import lower

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


def _lowered(function: Function) -> Lowered | str:
    forms = (
        Form.NUMBER if isinstance(p.ty, SizeType) else Form.CONTIGUOUS for p in function.params
    )
    try:
        return lower(function)(Layout(tuple(forms)))
    except (NoGroup, NoKernel) as error:
        return str(error)


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
