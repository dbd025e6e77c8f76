"""The functions of a program that C may run whole."""

from __future__ import annotations

from collections.abc import Mapping

from ..analysis.components import components
from ..ir.expr import type_of
from ..ir.module import Module
from ..ir.types import SizeType, TensorType, TupleType, Type
from ..kernels.backend import ProgramFunction
from ..kernels.function_plan import FunctionPlan, Planned


def is_candidate(function: ProgramFunction) -> bool:
    """Return whether a function loops or recurses over numbers and tensors."""
    own = function.function
    assert own.result is not None
    types = [*(type_of(p) for p in own.params), own.result]
    return all(map(is_plain, types)) and is_worth_it(function.module, function.name)


def is_worth_it(module: Module, entry: str) -> bool:
    """Return whether a function loops or recurses, itself or in what it calls: any other is done
    before C would be called."""
    plan = FunctionPlan(module, entry)
    graph = graph_of(plan)
    own = {planned for planned, called in graph.items() if planned in called}
    groups = components(graph)
    return (
        bool(own) or any(p.has_jumps for p in plan.functions()) or any(len(g) > 1 for g in groups)
    )


def is_plain(ty: Type) -> bool:
    """Return whether a value is passed between C and Python: numbers, tensors, tuples of them."""
    if isinstance(ty, TupleType):
        return all(map(is_plain, ty.fields))
    return isinstance(ty, TensorType | SizeType)


def graph_of(plan: FunctionPlan) -> Mapping[Planned, tuple[Planned, ...]]:
    """Return which units call which."""
    found: dict[Planned, dict[Planned, None]] = {p: {} for p in plan.functions() if p.place is None}
    for planned in found:
        for site in planned.sites:
            found[plan.unit_of(site.caller)][planned] = None
    return {p: tuple(called) for p, called in found.items()}
