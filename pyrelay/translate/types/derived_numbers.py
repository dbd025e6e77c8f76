"""Where Python's own numbers stand in what a transform makes of a function.

A gradient has the form of the parameter that it belongs to, a value that of the function's result.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import final

from ...dataclass import dataclass
from ...ir.expr import Batching, Differentiation, Expr, Rule, Transform
from ...ir.traverse import post_order
from .number_places import Numbers, gradient_of, parts_of, together


@final
@dataclass(frozen=True, slots=True)
class FunctionNumbers:
    """The numbers in the parameters of a function, and in its result."""

    params: tuple[Numbers, ...]
    result: Numbers


def derived_numbers(body: Expr, base: FunctionNumbers) -> FunctionNumbers:
    """Return the numbers of a function whose body calls transforms of a base, the innermost first;
    the transforms are typed, so they say in which parameters they are."""
    found = base
    for node in post_order(body):
        if isinstance(node, Transform):
            found = _derived(node, found)
    return found


def _derived(node: Transform, base: FunctionNumbers) -> FunctionNumbers:
    match node.options:
        case Differentiation() as options:
            given = [gradient_of(base.params[i]) for i in options.indices]
            made = _made(node.rule, base.result, given, options)
            params = base.params
            if node.rule.takes_tangents:
                params = (together(params), together(given))
            return FunctionNumbers(params, made)
        case Batching():
            # Numbers side by side are tensors.
            return FunctionNumbers((None,) * len(base.params), None)


def of_models(rule: Rule, result: Numbers, options: Differentiation) -> Numbers:
    """Return the numbers in a transform in the parameters of models, which hold tensors."""
    return _made(rule, result, [None], replace(options, single=True))


def _made(rule: Rule, result: Numbers, wrt: Sequence[Numbers], options: Differentiation) -> Numbers:
    gradient = wrt[0] if options.single else together(wrt)
    match rule:
        case Rule.GRAD:
            return together((gradient, parts_of(result, 2)[1])) if options.has_aux else gradient
        case Rule.VALUE_AND_GRAD:
            return together((result, gradient))
        case Rule.VJP | Rule.LINEARIZE:
            pull, push = together((result, gradient)), together((*wrt, gradient_of(result)))
            return together((result, pull if rule is Rule.VJP else push))
        case (
            Rule.CUSTOM_VJP | Rule.CUSTOM_JVP | Rule.CHECKPOINT | Rule.STOP_GRADIENT | Rule.AUTOCAST
        ):
            return result
        case Rule.VMAP:
            raise AssertionError("it differentiates nothing")
        case Rule.HVP:
            return gradient
        case Rule.HESSIAN | Rule.JACFWD | Rule.JACREV:
            return None
        case Rule.JVP if options.has_aux:
            loss, aux = parts_of(result, 2)
            return together((loss, gradient_of(loss), aux))
        case Rule.JVP:
            return together((result, gradient_of(result)))
