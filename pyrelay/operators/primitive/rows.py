"""A list of tensors as one tensor, and back: `relay.stack(xs)` of a list, and its derivative.

Bodies walk the host form of the prelude's list: `(0, head, tail)` and `(1,)`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from ...ir.declaration import attribute_kinds as kinds
from ...ir.op import (
    Effect,
    Library,
    Op,
    Pullback,
    RuleCall,
    ShapeBehaviour,
    Stuck,
    attribute,
    operand,
    optional,
)
from ...ir.own_sizes import has_own_sizes
from ...ir.rules import axis
from ...ir.types import INT, PRELUDE, AdtType, SizeType, TensorType, Type, TypeHole, show
from ..shared.failures import EmptyList
from ..shared.operands import as_tensors, is_given

if TYPE_CHECKING:
    from ..builder import Value

_LIST: Final = f"{PRELUDE}List"


def _element(call: RuleCall) -> TensorType:
    """Return the type of the elements of a list of tensors. Raises Stuck and Clash."""
    ty = call.type(0)
    if not isinstance(ty, AdtType) or ty.name != _LIST:
        call.clash(f"`{call.op.name}` takes a list of tensors, not {show(ty)}", 0)
    element = call.solver.resolve(ty.args[0])  # pyright: ignore[reportArgumentType]  a type
    if isinstance(element, TypeHole):
        raise Stuck(element)
    if isinstance(element, SizeType):
        return INT
    if not isinstance(element, TensorType):
        help_ = (
            "give the size a name: `list[Tensor[Float, (N,)]]`" if has_own_sizes(element) else None
        )
        call.clash(f"`stack` takes a list of tensors, not of {show(element)}", 0, help=help_)
    return element


def _stack_type(call: RuleCall) -> Type:
    element = _element(call)
    if call.given(1):
        return call.tensor(1)
    dim = axis(call, call.attrs["dim"], element.rank + 1)
    count = call.solver.fresh_dim("count")
    return TensorType((*element.shape[:dim], count, *element.shape[dim:]), element.dtype)


def _stack(torch: Any, xs: Any, like: Any, dim: int) -> Any:
    items: list[Any] = []
    while len(xs) > 1:
        _, head, xs = xs
        items.append(head)
    if items:
        return torch.stack(as_tensors(torch, items), dim)
    if like is None:
        raise EmptyList("the list is empty")
    return torch.zeros_like(like)


def _stack_grad(p: Pullback) -> tuple[Value, None]:
    return p.g.builder.call(unstack, (p.g,), {"dim": p.attrs["dim"]}), None


stack_rows: Final = Op(
    name="stack_rows",
    doc="The tensors of a list side by side in a new dim; like `like` if there are none.",
    params=(operand("xs"), optional("like"), attribute("dim", 0, kinds.axis)),
    type_rule=_stack_type,
    effect=Effect.FAIL,
    shape=ShapeBehaviour.DYNAMIC,
    lowering=Library(_stack),
    grad=_stack_grad,
    samples=lambda: (),
)


def _unstack_type(call: RuleCall) -> Type:
    whole = call.tensor(0)
    if whole.rank == 0:
        call.clash("`unstack` takes no numbers", 0)
    dim = axis(call, call.attrs["dim"], whole.rank)
    return AdtType(_LIST, (TensorType((*whole.shape[:dim], *whole.shape[dim + 1 :]), whole.dtype),))


def _unstack(torch: Any, whole: Any, dim: int) -> Any:
    found: Any = (1,)
    for row in reversed(torch.unbind(whole, dim)):
        found = (0, row, found)
    return found


def _unstack_grad(p: Pullback) -> tuple[Value]:
    (whole,) = p.args
    assert is_given(whole)
    return (p.g.builder.call(stack_rows, (p.g, whole), {"dim": p.attrs["dim"]}),)


unstack: Final = Op(
    name="unstack",
    doc="The list of the slices of a tensor along a dim.",
    params=(operand("input"), attribute("dim", 0, kinds.axis)),
    type_rule=_unstack_type,
    shape=ShapeBehaviour.DYNAMIC,
    lowering=Library(_unstack),
    grad=_unstack_grad,
    samples=lambda: (),
)
