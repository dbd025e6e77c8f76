"""Joining torch autograd: a compiled call as one node of torch's graph.

The forward runs the program's vjp, which gives the value and a pullback; the backward calls the
pullback. Reverse mode is ours, so torch sees one node however large the program is. The node itself
is not differentiable again: for higher orders write `relay.grad` of `relay.grad`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import torch
from torch.autograd.function import once_differentiable

from .structure import distinct_tensors, map_tensors, tensors

Tree: TypeAlias = Any
"""A host value: a tensor, a number, or tuples and data of these."""


def with_tensors(tree: Tree, replacement: Sequence[Any]) -> Tree:
    """Give a host value with its tensors, left to right, replaced."""
    rest = iter(replacement)
    return map_tensors(tree, lambda _: next(rest))


def call_joined(
    run: Callable[[], tuple[Tree, Callable[[Tree], Tree]]], inputs: Sequence[torch.Tensor]
) -> Tree:
    """Give the value of a program as part of torch's graph.

    `run` gives the value and its pullback; the pullback's result has one cotangent for each of
    `inputs`, left to right. Only inputs that require grad get one.
    """
    shape: list[Tree] = []
    outputs = _Join.apply(run, shape, *inputs)
    flat = outputs if isinstance(outputs, tuple) else (outputs,)
    return with_tensors(shape[0], flat)


class _Join(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        run: Callable[[], tuple[Tree, Callable[[Tree], Tree]]],
        shape: list[Tree],
        *inputs: torch.Tensor,
    ) -> Any:
        value, pullback = run()
        # A fresh tensor each: torch refuses to mark an input, or one tensor twice, as an output.
        flat = [t.view_as(t) for t in tensors(value)]
        shape.append(value)
        ctx.pullback = pullback
        ctx.value = value
        ctx.mark_non_differentiable(*(t for t in flat if not t.is_floating_point()))
        return tuple(flat)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *cotangents: Any) -> Any:  # pyright: ignore[reportIncompatibleMethodOverride]
        seeds = with_tensors(ctx.value, cotangents)
        found = [t for t in tensors(ctx.pullback(seeds)) if t.is_floating_point()]
        wanted = ctx.needs_input_grad[2:]
        return (
            None,
            None,
            *(g if want else None for g, want in zip(found, wanted, strict=True)),
        )


def requires_grad(trees: Sequence[Tree]) -> bool:
    """Tell whether a call with these host values must join torch's graph."""
    return torch.is_grad_enabled() and any(t.requires_grad for t in distinct_tensors(trees))
