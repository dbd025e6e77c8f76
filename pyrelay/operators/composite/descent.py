"""The update of a whole model in place, which a compiled program makes of separate steps."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from operator import call as apply
from typing import TYPE_CHECKING, Any, Final

from ...ir.declaration import attribute_kinds as kinds
from ...ir.op import (
    Clash,
    Effect,
    Library,
    Linear,
    MadeOf,
    NoGradient,
    Op,
    Param,
    RuleCall,
    Sample,
    ShapeBehaviour,
    TensorSpec,
    attribute,
    operand,
)
from ...ir.rules import expect, with_rank
from ...ir.types import UNIT, RefType, TensorType, TupleType, Type, is_float, show
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
            return rows == (*numbers, *param.shape[1:]) and dtype == param.dtype
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
    # With `alpha` it would take twice as long.
    rows = left.reshape(len(numbers), *param.shape[1:]) * -lr
    return partial(param.index_add_, 0, numbers, rows)


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
    return embedding_grad(rows, numbers, num_embeddings=count)


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


descend_by_rows: Final = replace(
    descend_in_place,
    name="descend_by_rows",
    doc="`descend_in_place` where a table has many more rows than its gradient: no kernel goes "
    "over the table.",
    lowering=Library(update_in_place),
)


def _summed_rows_type(call: RuleCall) -> Type:
    rows, (count,) = call.tensor(0), with_rank(call, 1, 1).shape
    wanted = TensorType((count, *rows.shape[1:]), rows.dtype)
    expect(call, 0, wanted, "`summed_rows` takes a row for each number")
    return rows


def _summed_rows(torch: Any, rows: Any, numbers: Any) -> Any:
    _, places = torch.unique(as_positions(torch, numbers, rows), return_inverse=True)
    return torch.zeros_like(rows).index_add_(0, places, rows).index_select(0, places)


summed_rows: Final = Op(
    name="summed_rows",
    doc="Rows with their numbers, each replaced by the sum of all rows of its number.",
    params=(operand("rows"), operand("numbers")),
    type_rule=_summed_rows_type,
    shape=ShapeBehaviour.FIXED,
    lowering=Library(_summed_rows, is_fresh=True),
    push=Linear(("rows",)),
    grad=lambda p: (p.g.builder.call(summed_rows, (p.g, p.args[1])), None),
    samples=lambda: (
        Sample((TensorSpec((5, 3)), TensorSpec((5,), "int64", 0, 4))),
        Sample((TensorSpec((5, 2, 3)), TensorSpec((5,), "int64", 0, 4))),
        Sample((TensorSpec((0, 3)), TensorSpec((0,), "int64", 0, 4))),
        Sample((TensorSpec((6, 3), contiguous=False), TensorSpec((6,), "int32", 0, 4))),
    ),
)


def _write_rows_type(call: RuleCall) -> Type:
    try:
        call.solver.unify(call.types[0], RefType(call.type(1)))
    except Clash:
        call.clash("`write_rows` takes a reference and its new contents", 0, 1)
    pending = call.type(2)
    for part in pending.fields if isinstance(pending, TupleType) else (pending,):
        match part:
            case TupleType((TensorType(shape, dtype), TensorType((count,), _), rows)) if (
                rows == TensorType((count, *shape[1:]), dtype)
            ):
                pass
            case _:
                call.clash(f"`write_rows` takes a table, numbers and rows, not {show(part)}", 2)
    return UNIT


def _write_rows(torch: Any, cell: Any, content: Any, tables: Sequence[Any]) -> tuple[()]:
    steps = [
        partial(table.index_copy_, 0, as_positions(torch, numbers, table), rows)
        for table, numbers, rows in tables
    ]
    # As above: an interrupt comes before or after all of them.
    deque(map(apply, [*steps, partial(setattr, cell, "value", content)]), maxlen=0)
    return ()


write_rows: Final = Op(
    name="write_rows",
    doc="The contents of a reference replaced, and rows of tables among them, in the storage of "
    "the tables: each is `(table, numbers, rows)`. Rows of one number are equal.",
    params=(operand("cell"), operand("content"), operand("tables")),
    type_rule=_write_rows_type,
    effect=Effect.STATE,
    shape=ShapeBehaviour.TRIVIAL,
    lowering=Library(_write_rows),
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


def _overwriting(name: str, doc: str, lowering: Library, *params: Param) -> Op:
    """Return an operator that stores its second operand over its first."""
    return Op(
        name=name,
        doc=doc,
        params=params,
        type_rule=_overwrite_type,
        effect=Effect.STATE,
        shape=ShapeBehaviour.TRIVIAL,
        lowering=lowering,
        grad=NoGradient("made after all gradients are", is_zero=False),
        samples=lambda: (),
    )


def _overwrite(torch: Any, target: Any, value: Any) -> tuple[()]:
    target.copy_(value)
    return ()


overwrite: Final = _overwriting(
    "overwrite",
    "The elements of a tensor, in its own storage, replaced by those of another.",
    Library(_overwrite),
    operand("target"),
    operand("value"),
)


def _overwrite_all(torch: Any, targets: Sequence[Any], values: Sequence[Any]) -> tuple[()]:
    # As above: an interrupt comes before or after all of them.
    copies = [partial(t.copy_, v) for t, v in zip(targets, values, strict=True)]
    deque(map(apply, copies), maxlen=0)
    return ()


def _overwrite_all_code(args: tuple[Value, ...], attrs: Mapping[str, Any]) -> Value:
    targets, values = map(fields, args)
    for target, value in zip(targets, values, strict=True):
        overwrite(target, value)
    return args[0].builder.unit()


overwrite_all: Final = _overwriting(
    "overwrite_all",
    "The elements of each tensor of a tuple, in its own storage, replaced by those of another.",
    Library(_overwrite_all, fused=MadeOf(_overwrite_all_code)),
    operand("targets"),
    operand("values"),
)
