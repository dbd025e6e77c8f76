"""Joining torch autograd: a compiled call as one node of torch's graph.

The forward runs the program's vjp, which returns the value and a pullback; the backward calls the
pullback. Reverse mode is ours, so torch sees one node however large the program is. Where torch
records the backward as well (`create_graph=True`), that is a call of the program's gradient, a
program like any other, which is a node in its turn. Under `torch.autocast`, values have the dtypes
that their types say.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final, TypeAlias, TypeVar, final

import torch

from ...diagnostics.diagnostic import RunError
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
    again: Callable[..., Tree],
    inputs: Sequence[torch.Tensor],
    moved: Sequence[bool],
) -> Tree:
    """Return the value of a program as part of torch's graph.

    `run` returns the value and its pullback; the pullback's result has one cotangent for each of
    the `inputs` that `moved` marks, left to right. `again` does what the pullback does, as part of
    torch's graph. Only inputs that require grad get a cotangent.
    """
    shape: list[Tree] = []
    outputs = _Join.apply(run, again, shape, moved, *inputs)
    flat = outputs if isinstance(outputs, tuple) else (outputs,)
    return with_tensors(shape[0], flat)


class _Join(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        run: Callable[[], tuple[Tree, Callable[[Tree], Tree]]],
        again: Callable[[Tree], Tree],
        shape: list[Tree],
        moved: Sequence[bool],
        *inputs: torch.Tensor,
    ) -> Any:
        value, pullback = run()
        # A tensor object each: torch refuses to mark an input, or one tensor twice, as an output.
        flat = [t.detach() for t in tensors(value)]
        shape.append(value)
        ctx.pullback, ctx.again, ctx.value, ctx.moved = pullback, again, value, moved
        # Torch watches what it has saved: it reports an input that is written to.
        ctx.save_for_backward(*(t for t in inputs if not t.is_inference()))
        ctx.mark_non_differentiable(*(t for t in flat if not t.is_floating_point()))
        return tuple(flat)

    @staticmethod
    def backward(ctx: Any, *cotangents: Any) -> Any:
        _ = ctx.saved_tensors
        seeds = with_tensors(ctx.value, cotangents)
        tree = ctx.again(seeds) if torch.is_grad_enabled() else ctx.pullback(seeds)
        found = (t for t in tensors(tree) if t.is_floating_point())
        every = [next(found) if is_moved else None for is_moved in ctx.moved]
        wanted = ctx.needs_input_grad[4:]
        own = (g if want else None for g, want in zip(every, wanted, strict=True))
        return (None, None, None, None, *own)


@final
class Node:
    """The nodes of calls of a program of which the same values require gradients, and whose result
    is one tensor."""

    def __init__(
        self,
        function: Callable[..., tuple[torch.Tensor, Callable[[Any], Tree]]],
        located: Callable[[Exception], Exception],
        wanted: tuple[int, ...],
        again: Callable[..., Tree],
        inputs: Sequence[str],
        cotangents: Sequence[str | None],
    ) -> None:
        """`function` returns the value and its pullback. `inputs` are the texts of the values, in
        host values `v`, that may carry gradients, and `cotangents` those of their cotangents, in
        the pullback's result `v`."""
        self.function: Final = function
        self.located: Final = located
        self.wanted: Final = wanted
        self.again: Final = again
        self.inputs: Final[Callable[[Any], tuple[torch.Tensor, ...]]] = eval(
            f"lambda v: ({''.join(f'{path}, ' for path in inputs)})", {}
        )
        own = (
            "None, " if path is None else f"{path} if needs[{place}] else None, "
            for place, path in enumerate(cotangents, 2)
        )
        self.cotangents: Final[Callable[[Tree, Sequence[bool]], Any]] = eval(
            f"lambda v, needs: (None, None, {''.join(own)})", {}
        )


def joined_directly(node: Node, *host: Any) -> torch.Tensor:
    """Return the value of a program at host values as a node of torch's graph."""
    return _apply(node, host, *node.inputs(host))


class _Direct(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, node: Node, host: tuple[Any, ...], *inputs: torch.Tensor) -> Any:
        try:
            value, ctx.pullback = node.function(*host)
        except RunError:
            raise
        except Exception as error:
            raise node.located(error) from None
        ctx.node, ctx.host = node, host
        if True in map(_is_inference, inputs):
            inputs = tuple(t for t in inputs if not t.is_inference())
        ctx.save_for_backward(*inputs)
        return value

    @staticmethod
    def backward(ctx: Any, *cotangents: Any) -> Any:
        _ = ctx.saved_tensors
        node = ctx.node
        if torch.is_grad_enabled():
            tree = node.again(ctx.host, node.wanted, *cotangents)
        else:
            tree = as_typed(ctx.pullback, *cotangents)
        return node.cotangents(tree, ctx.needs_input_grad)


_function: Any = torch.autograd.Function
_apply: Final[Callable[..., Any]] = super(_function, _Direct).apply
"""`_Direct.apply` without its checks for transforms of torch, which direct calls do themselves."""

_is_inference: Final = torch.Tensor.is_inference


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
