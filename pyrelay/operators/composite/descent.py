"""The update of a whole model in place, which a compiled program makes of separate steps."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from functools import partial
from operator import call as apply
from typing import TYPE_CHECKING, Any, Final

from ...ir.declaration import attribute_kinds as kinds
from ...ir.op import (
    Clash,
    Effect,
    Library,
    MadeOf,
    NoGradient,
    Op,
    RuleCall,
    ShapeBehaviour,
    attribute,
    operand,
)
from ...ir.types import UNIT, TensorType, TupleType, Type, is_float, show
from ..primitive.embedding import embedding_grad
from ..shared.operands import as_positions, fields
from ..shared.precision import widened

if TYPE_CHECKING:
    from ...ir.dims import Dim
    from ..builder import Value


def _descend_type(call: RuleCall) -> Type:
    params, grads = call.type(0), call.type(1)
    if not isinstance(params, TupleType) or not isinstance(grads, TupleType):
        call.clash("`descend_in_place` takes a tuple of parameters and a tuple of gradients", 0, 1)
    if len(params.fields) != len(grads.fields):
        call.clash("`descend_in_place` takes one gradient for each parameter", 0, 1)
    for param, grad in zip(params.fields, grads.fields, strict=True):
        if not isinstance(param, TensorType) or not _fits(param, grad):
            call.clash(f"`descend_in_place` moves {show(param)} against {show(grad)}", 0, 1)
    return UNIT


def _fits(param: TensorType, grad: Type) -> bool:
    if not isinstance(grad, TupleType):
        return grad == param
    match grad.fields:
        case (TensorType(rows, dtype), TensorType(numbers, kind)) if not is_float(kind):
            return rows == (*numbers, param.shape[-1]) and dtype == param.dtype
        case (TensorType((rows, inner), left), TensorType((again, columns), right)):
            fits = inner == again and param.shape == (rows, columns)
            return fits and left == right == param.dtype
        case _:
            return False


def update_in_place(
    torch: Any, params: Sequence[Any], grads: Sequence[Any], lr: float
) -> tuple[()]:
    """Move parameters, in their own storage, against gradients, or pairs: of matrices whose product
    is the gradient, or of its rows and their numbers."""
    steps: list[Any] = []
    moved: list[Any] = []
    against: list[Any] = []
    for param, grad in zip(params, grads, strict=True):
        if isinstance(grad, tuple):
            steps.append(_step(torch, param, grad, lr))
        else:
            moved.append(param)
            against.append(grad)
    if moved:
        steps.append(partial(torch._foreach_add_, moved, against, alpha=-lr))
    # No line of Python runs between the steps, so an interrupt comes before or after all of them.
    deque(map(apply, steps), maxlen=0)
    return ()


def _step(torch: Any, param: Any, pair: Any, lr: float) -> Any:
    left, right = pair
    if right.is_floating_point():
        return partial(param.addmm_, left, right, alpha=-lr)
    numbers = as_positions(torch, right, left).reshape(-1)
    return partial(param.index_add_, 0, numbers, left.reshape(-1, param.shape[-1]), alpha=-lr)


def _descend_code(args: tuple[Value, ...], attrs: Mapping[str, Any]) -> Value:
    """Return the steps one by one; all are computed before the first is made."""
    params, grads = map(fields, args)
    moved: list[Value] = []
    for param, grad in zip(params, grads, strict=True):
        if isinstance(grad.ty, TupleType):
            left, right = grad[0], grad[1]
            is_product = is_float(right.tensor.dtype)
            grad = left @ right if is_product else _table(left, right, param.shape[0])
        moved.append((widened(param) - widened(grad) * attrs["lr"]).cast(param.dtype))
    for param, value in zip(params, moved, strict=True):
        overwrite(param, value)
    return args[0].builder.unit()


def _table(rows: Value, numbers: Value, count: Dim) -> Value:
    attrs = {"num_embeddings": count, "padding_idx": None}
    return rows.builder.call(embedding_grad, (rows, numbers), attrs)


descend_in_place: Final = Op(
    name="descend_in_place",
    doc="Every parameter, in its own storage, moved against its gradient: `param - lr * grad`. A "
    "pair of matrices is the gradient that is their product, rows and their numbers the one that "
    "is zero elsewhere.",
    params=(operand("params"), operand("grads"), attribute("lr", convert=kinds.real)),
    type_rule=_descend_type,
    effect=Effect.STATE,
    shape=ShapeBehaviour.TRIVIAL,
    lowering=Library(update_in_place, fused=MadeOf(_descend_code)),
    grad=NoGradient("made after all gradients are", is_zero=False),
    samples=lambda: (),
)


def _overwrite_type(call: RuleCall) -> Type:
    target, value = call.tensor(0), call.tensor(1)
    try:
        call.solver.unify(target, value)
    except Clash:
        call.clash(f"`overwrite` puts {show(value)} in the place of {show(target)}", 0, 1)
    return UNIT


def _overwrite(torch: Any, target: Any, value: Any) -> tuple[()]:
    target.copy_(value)
    return ()


overwrite: Final = Op(
    name="overwrite",
    doc="The elements of a tensor, in its own storage, replaced by those of another.",
    params=(operand("target"), operand("value")),
    type_rule=_overwrite_type,
    effect=Effect.STATE,
    shape=ShapeBehaviour.TRIVIAL,
    lowering=Library(_overwrite),
    grad=NoGradient("made after all gradients are", is_zero=False),
    samples=lambda: (),
)
