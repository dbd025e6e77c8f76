"""The update of a whole model in place, which a compiled program makes of separate steps."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping, Sequence
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
from ..shared.operands import as_positions, existing, fields
from ..shared.precision import widened
from .table_rows import add_rows, existing_rows, flat_rows, store_rows

if TYPE_CHECKING:
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
            return rows == (*numbers, *param.shape[1:]) and dtype == param.dtype
        case (TensorType((rows, inner), left), TensorType((again, columns), right)):
            fits = inner == again and param.shape == (rows, columns)
            return fits and left == right == param.dtype
        case _:
            return False


def descent_steps(
    torch: Any, params: Sequence[Any], grads: Sequence[Any], lr: float
) -> list[Callable[[], Any]]:
    """Return the calls, of functions written in C, that move parameters, in their own storage,
    against gradients, or pairs: of matrices whose product is the gradient, or of its rows and their
    numbers. Raises IndexError where a row does not exist."""
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
    return steps


def _update_in_place(
    torch: Any, params: Sequence[Any], grads: Sequence[Any], lr: float
) -> tuple[()]:
    steps = descent_steps(torch, params, grads, lr)
    # No line of Python runs between the steps, so an interrupt comes before or after all of them.
    deque(map(apply, steps), maxlen=0)
    return ()


def _step(torch: Any, param: Any, pair: Any, lr: float) -> Any:
    left, right = pair
    if right.is_floating_point():
        return partial(param.addmm_, left, right, alpha=-lr)
    numbers = existing(torch, right, len(param)).reshape(-1)
    # With `alpha` it would take twice as long.
    rows = left.reshape(len(numbers), *param.shape[1:]) * -lr
    return partial(param.index_add_, 0, numbers, rows)


def _descend_code(args: tuple[Value, ...], attrs: Mapping[str, Any]) -> Value:
    """Return the steps one by one; all are computed before the first is made."""
    (params, grads), lr = map(fields, args), attrs["lr"]
    added: list[tuple[Value, Value, Value]] = []
    moved: list[tuple[Value, Value]] = []
    for param, grad in zip(params, grads, strict=True):
        if isinstance(grad.ty, TupleType) and not is_float(grad[1].tensor.dtype):
            rows, numbers = flat_rows(grad[0], grad[1], param.rank - 1)
            numbers = existing_rows(numbers, rows=param.shape[0])
            added.append((param, numbers, (widened(rows) * -lr).cast(param.dtype)))
            continue
        if isinstance(grad.ty, TupleType):
            grad = grad[0] @ grad[1]
        moved.append((param, (widened(param) - widened(grad) * lr).cast(param.dtype)))
    for step in added:
        add_rows(*step)
    for param, value in moved:
        overwrite(param, value)
    return args[0].builder.unit()


descend_in_place: Final = Op(
    name="descend_in_place",
    doc="Every parameter, in its own storage, moved against its gradient: `param - lr * grad`. A "
    "pair of matrices is the gradient that is their product, rows and their numbers the one that "
    "is zero elsewhere.",
    params=(operand("params"), operand("grads"), attribute("lr", convert=kinds.real)),
    type_rule=_descend_type,
    effect=Effect.STATE,
    shape=ShapeBehaviour.TRIVIAL,
    lowering=Library(_update_in_place, fused=MadeOf(_descend_code)),
    grad=NoGradient("made after all gradients are", is_zero=False),
    samples=lambda: (),
)


def _overwrite_type(call: RuleCall) -> Type:
    targets, values = call.type(0), call.type(1)
    try:
        call.solver.unify(targets, values)
    except Clash:
        message = f"`{call.op.name}` puts {show(values)} in the place of {show(targets)}"
        call.clash(message, 0, 1)
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


def _overwrite_all_type(call: RuleCall) -> Type:
    targets, values = call.type(0), call.type(1)
    if not isinstance(targets, TupleType) or not isinstance(values, TupleType):
        call.clash("`overwrite_all` takes a tuple of tensors and a tuple of values", 0, 1)
    if len(targets.fields) != len(values.fields):
        call.clash("`overwrite_all` takes one value for each tensor", 0, 1)
    for target, value in zip(targets.fields, values.fields, strict=True):
        if value != target and not (isinstance(target, TensorType) and _are_rows(target, value)):
            message = f"`overwrite_all` puts {show(value)} in the place of {show(target)}"
            call.clash(message, 0, 1)
    return UNIT


def _are_rows(table: TensorType, pair: Type) -> bool:
    """Return whether a type is that of rows of a table with their numbers."""
    match pair:
        case TupleType((TensorType((count, *row), dtype), TensorType((again,), kind))):
            fits = count == again and (tuple(row), dtype) == (table.shape[1:], table.dtype)
            return fits and not is_float(kind)
        case _:
            return False


def _overwrite_all(torch: Any, targets: Sequence[Any], values: Sequence[Any]) -> tuple[()]:
    steps = [
        partial(t.index_copy_, 0, as_positions(torch, v[1], t), v[0])
        if isinstance(v, tuple)
        else partial(t.copy_, v)
        for t, v in zip(targets, values, strict=True)
    ]
    # As above: an interrupt comes before or after all of them.
    deque(map(apply, steps), maxlen=0)
    return ()


def _overwrite_all_code(args: tuple[Value, ...], attrs: Mapping[str, Any]) -> Value:
    pairs = list(zip(*map(fields, args), strict=True))
    numbers = {
        target: existing_rows(value[1], rows=target.shape[0])
        for target, value in pairs
        if isinstance(value.ty, TupleType)
    }
    for target, value in pairs:
        if target in numbers:
            store_rows(target, numbers[target], value[0])
        else:
            overwrite(target, value)
    return args[0].builder.unit()


overwrite_all: Final = Op(
    name="overwrite_all",
    doc="The elements of each tensor of a tuple, in its own storage, replaced by those of another. "
    "A pair is rows, with their numbers, that replace rows of a table; those of one number are "
    "equal.",
    params=(operand("targets"), operand("values")),
    type_rule=_overwrite_all_type,
    effect=Effect.STATE,
    shape=ShapeBehaviour.TRIVIAL,
    lowering=Library(_overwrite_all, fused=MadeOf(_overwrite_all_code)),
    grad=NoGradient("made after all gradients are", is_zero=False),
    samples=lambda: (),
)
