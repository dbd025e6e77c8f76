"""Entries that a transform makes: `value_and_grad` of a loss, the pullback for torch autograd.

The transform is a node of the IR around the base entry; inference and the gradient pass do the
rest, exactly as for a transform that a program mentions.
"""

from __future__ import annotations

from dataclasses import replace

from ...ir.expr import Call, Function, GlobalVar, Rule, Transform
from ...ir.module import Module


def derive(
    module: Module,
    entry: str,
    rule: Rule,
    wrt: tuple[int, ...] | None,
    *,
    single: bool = True,
    has_aux: bool = False,
) -> tuple[Module, str]:
    """Return a translated module with an entry that is a transform of another; and its name.

    `wrt` are positions of parameters, None for all that hold floats.
    """
    base = module.functions[entry]
    name = f"{rule.value}.{entry}"
    span = base.span.derived(f"{rule.value} of {base.name}")
    params = tuple(replace(p) for p in base.params)
    transform = Transform(
        rule, GlobalVar(entry, span=span), wrt, single=single, has_aux=has_aux, span=span
    )
    body = Call(transform, params, span=span)
    function = Function(params, body, name=name, span=span)
    return module.with_functions({name: function}), name
