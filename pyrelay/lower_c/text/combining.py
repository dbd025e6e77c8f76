"""How the elements of a reduction combine, and the lanes of an accumulator."""

from __future__ import annotations

from ...ir.types import bool_, is_float
from ...kernels.plans.reductions import Reduction, identity
from ...kernels.plans.text import Text, call, infix
from .emit import KernelText


def combined(kernel: KernelText, reduction: Reduction, total: Text, value: Text) -> Text:
    """Return two accumulators, or an accumulator and elements, combined."""
    dtype = reduction.dtype
    match reduction.reduced.combine:
        case "add" | "mean":
            return infix(total, "+", value)
        case "mul":
            return infix(total, "*", value)
        case "and":
            return infix(total, "&", value)
        case "or":
            return infix(total, "|", value)
        case _ if dtype == bool_:
            return infix(total, "|" if reduction.is_largest else "&", value)
        case _:
            return call(kernel.function(_extreme(reduction), dtype), total, value)


def folded(kernel: KernelText, reduction: Reduction, total: str) -> Text:
    """Return the lanes of an accumulator combined, in all lanes."""
    dtype = reduction.dtype
    if dtype == bool_:
        is_all = identity(reduction)
        bits = call(kernel.function("bits", bool_), f"~{total}" if is_all else total)
        mask = kernel.vector(bool_)
        return Text(f"(({mask}){{0}} - ({bits} {'==' if is_all else '!='} 0))")
    match reduction.reduced.combine:
        case "add" | "mean":
            function = "sum"
        case "mul":
            function = "product"
        case _:
            function = "largest" if reduction.is_largest else "smallest"
    number = call(kernel.function(function, dtype), total)
    return call(kernel.function("splat", dtype), number)


def _extreme(reduction: Reduction) -> str:
    if is_float(reduction.dtype):
        return "maximum" if reduction.is_largest else "minimum"
    return "most" if reduction.is_largest else "least"
