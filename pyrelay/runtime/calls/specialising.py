"""Partial evaluation of a program with some arguments fixed.

The fixed values become constants and constructions of the program, which is then partially
evaluated. A tensor that is large, or that requires a gradient, is not copied: it stays an argument.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeAlias

import torch

from ...ir.expr import Binding, Function, GlobalVar, Var
from ...ir.expr import Call as CallExpr
from ...ir.module import Module
from ...ir.names import Names
from ...ir.traverse import let
from ...lazy import LazyModule
from ...translate.translator import Translation
from ...translate.types.annotation import type_names
from ..border.arguments import bound
from ..border.binder import Binder
from ..border.places import Parameter, parameters_of
from ..border.schema import Schema
from ..compile.program import Program
from ..values.representation import UserData
from .fixed_values import Fixed
from .programs import program_of

if TYPE_CHECKING:
    from ...passes.partial_eval import partial_eval
    from ..compile import evaluator
else:
    partial_eval = LazyModule("pyrelay.passes.partial_eval.partial_eval")
    evaluator = LazyModule("pyrelay.runtime.compile.evaluator")

Left: TypeAlias = tuple[Module, str, UserData, Mapping[Var, torch.Tensor]]
"""A residual program: its module and entry, the users' data in it, and the tensors that stay
arguments, by its last parameters."""


def residual_program(
    name: str, translation: Translation, values: Mapping[str, Any], *, fast_math: bool
) -> Left:
    """Return the program of a translation with some values fixed, partially evaluated. Raises
    CheckError and RunError."""
    program = program_of(translation)
    parameters = parameters_of(program.function, translation.signature)
    places = {
        place: values[parameter.name]
        for place, parameter in enumerate(parameters)
        if not parameter.is_hidden and parameter.name in values
    }
    return residual_at(name, program, parameters, places, fast_math=fast_math)


def residual_at(
    name: str,
    program: Program,
    parameters: Sequence[Parameter],
    values: Mapping[int, Any],
    *,
    fast_math: bool,
) -> Left:
    """Return a program with some values fixed, by the place of their parameter, partially
    evaluated. Raises CheckError and RunError."""
    module, data = program.translated, program.data
    base = module.functions[program.entry]
    binder = Binder(name, torch.device("cpu"), Schema(module.adts, data))
    fixed = Fixed(module, data, name)
    params: list[Var] = []
    args: list[Any] = []
    for place, (parameter, var) in enumerate(zip(parameters, base.params, strict=True)):
        if place not in values:
            params.append(replace(var))
            args.append(params[-1])
            continue
        host = bound(binder, parameter, values[place])
        args.append(fixed.expression(host, parameter))
    entry = Names(module.functions).fresh(f"specialised.{name}")
    span = base.span.derived(f"specialised from `{name}`")
    body = let(
        [Binding(v, e) for v, e in fixed.bindings],
        CallExpr(GlobalVar(program.entry, span=span), tuple(args), span=span),
    )
    left_names = type_names(v.ty for v in params if v.ty is not None)
    kept = tuple(p for p in base.type_params if p in left_names)
    made = Function((*params, *fixed.tensors), body, None, kept, entry, span=span)
    whole = Program(module.with_functions({entry: made}), entry, data).derived
    left = partial_eval.partially_evaluated(whole, entry, _value, fast_math=fast_math)
    known = {n: v for n, v in data.representations.items() if n in left.adts}
    used = UserData(known, {n: v for n, v in data.numbers.items() if n in left.adts})
    return left, entry, used, fixed.tensors


def _value(module: Module, entry: str) -> Any:
    return evaluator.evaluate(module, entry, (), dispatched=False)
