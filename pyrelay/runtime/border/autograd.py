"""Joining torch autograd: a compiled call as one node of torch's graph.

The forward runs the program's vjp, which returns the value and a pullback; the backward calls the
pullback. Reverse mode is ours, so torch sees one node however large the program is. Where torch
records the backward as well (`create_graph=True`), that is a call of the program's gradient, a
program like any other, which is a node in its turn. Under `torch.autocast`, values have the dtypes
that their types say.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final, TypeAlias, TypeVar

import torch

from ..values.structure import distinct_tensors, tensors, with_tensors

Tree: TypeAlias = Any
"""A host value: a tensor, a number, or tuples and data of these."""

A = TypeVar("A")
R = TypeVar("R")

_torch: Any = torch
casts: Final[Callable[[], bool]] = getattr(
    _torch._C,  # noqa: SLF001  it has no public name
    "_is_any_autocast_enabled",
    lambda: any(map(torch.is_autocast_enabled, ("cpu", "cuda"))),
)
"""Returns whether `torch.autocast` is on, for any device."""


record: Final[Callable[[bool], None]] = _torch._C._set_grad_enabled  # noqa: SLF001  what torch.no_grad calls
"""Lets torch record what is called from now on, or not."""


def unrecorded(function: Callable[..., R], *arguments: Any) -> R:
    """Return the value of a function, inside of which torch records nothing.

    `with torch.no_grad()` costs six times as much, more than a small call of torch, and an
    interrupt may leave it without its end: Python looks for one as `__exit__` begins. It looks for
    none between a `finally` and the end of the first call there.
    """
    before = torch.is_grad_enabled()
    try:
        record(False)
        return function(*arguments)
    finally:
        record(before)


def as_typed(function: Callable[[A], R], argument: A) -> R:
    """Return the value of a function, inside of which no operator casts what it is given."""
    if not casts():
        return function(argument)
    with torch.autocast("cpu", enabled=False), torch.autocast("cuda", enabled=False):
        return function(argument)


def call_joined(
    run: Callable[[], tuple[Tree, Callable[[Tree], Tree]]],
    again: Callable[[Tree], Tree],
    inputs: Sequence[torch.Tensor],
) -> Tree:
    """Return the value of a program as part of torch's graph.

    `run` returns the value and its pullback; the pullback's result has one cotangent for each of
    `inputs`, left to right. `again` does what the pullback does, as part of torch's graph. Only
    inputs that require grad get a cotangent.
    """
    shape: list[Tree] = []
    outputs = _Join.apply(run, again, shape, *inputs)
    flat = outputs if isinstance(outputs, tuple) else (outputs,)
    return with_tensors(shape[0], flat)


class _Join(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        run: Callable[[], tuple[Tree, Callable[[Tree], Tree]]],
        again: Callable[[Tree], Tree],
        shape: list[Tree],
        *inputs: torch.Tensor,
    ) -> Any:
        value, pullback = run()
        # A tensor object each: torch refuses to mark an input, or one tensor twice, as an output.
        flat = [t.detach() for t in tensors(value)]
        shape.append(value)
        ctx.pullback, ctx.again, ctx.value = pullback, again, value
        # Torch watches what it has saved: it reports an input that is written to.
        ctx.save_for_backward(*(t for t in inputs if not t.is_inference()))
        ctx.mark_non_differentiable(*(t for t in flat if not t.is_floating_point()))
        return tuple(flat)

    @staticmethod
    def backward(ctx: Any, *cotangents: Any) -> Any:
        _ = ctx.saved_tensors
        seeds = with_tensors(ctx.value, cotangents)
        tree = ctx.again(seeds) if torch.is_grad_enabled() else ctx.pullback(seeds)
        found = [t for t in tensors(tree) if t.is_floating_point()]
        wanted = ctx.needs_input_grad[3:]
        return (
            None,
            None,
            None,
            *(g if want else None for g, want in zip(found, wanted, strict=True)),
        )


def requires_grad(trees: Sequence[Tree]) -> bool:
    """Return whether a call with these host values must join torch's graph."""
    if not torch.is_grad_enabled():
        return False
    nested: list[Tree] = []  # most arguments are tensors, which need no walk
    for tree in trees:
        if not isinstance(tree, torch.Tensor):
            nested.append(tree)
        elif tree.requires_grad:
            return True
    return bool(nested) and any(t.requires_grad for t in distinct_tensors(nested))
