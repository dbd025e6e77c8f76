"""Steps of optimisers, on one parameter, with the arithmetic of `torch.optim`.

The learning rate is a float of rank 0 and of any precision: the numbers that an optimiser computes
from it are rounded once, to the parameter's, when they meet it.

A step `by_rows` is lazy: rows whose gradient is zero stay as they are, and so do their moments.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import log
from typing import TYPE_CHECKING, Any, Final

from ...ir.declaration import attribute_kinds as kinds
from ...ir.op import (
    Clash,
    Expansion,
    Library,
    MadeOf,
    Op,
    Pointwise,
    Promotion,
    RuleCall,
    Sample,
    ShapeBehaviour,
    Stuck,
    TensorSpec,
    attribute,
    operand,
    optional,
)
from ...ir.rules import floating, numeric, with_rank
from ...ir.types import UNIT, TensorType, TupleType, Type, TypeHole
from ..primitive import math
from ..primitive.compare import not_equal, where
from ..primitive.reduce import any_
from ..shared.operands import is_given
from ..shared.precision import widened

if TYPE_CHECKING:
    from ..builder import Value

sgd_step: Final = Op(
    name="sgd_step",
    doc="A parameter moved against its gradient: `param - lr * grad`.",
    params=(
        operand("param", promote=True),
        operand("grad", promote=True),
        operand("lr", promote=True),
    ),
    promotion=Promotion.COMMON,
    type_rule=numeric,
    lowering=Pointwise(lambda k, param, grad, lr: k.sub_product(param, grad, lr)),
    grad=lambda p: (p.g, -(p.g * p.args[2]), -(p.g * p.args[1])),
    samples=lambda: (
        Sample((TensorSpec((3, 4)), TensorSpec((3, 4)), 0.1)),
        Sample((TensorSpec((3, 4)), TensorSpec((3, 4)), TensorSpec(()))),
        Sample((TensorSpec((0, 4)), TensorSpec((0, 4)), 0.1)),
        Sample((TensorSpec((4, 3), contiguous=False), TensorSpec((4, 3)), 0.1)),
    ),
)


def _descend_type(call: RuleCall) -> Type:
    pending = [call.type(0)]
    while pending:
        part = pending.pop()
        if isinstance(part, TupleType):
            pending += map(call.solver.resolve, part.fields)
        elif isinstance(part, TypeHole):
            raise Stuck(part)
        elif not isinstance(part, TensorType):
            call.clash("`sgd` takes tensors, and records or tuples of them", 0)
    try:
        call.solver.unify(call.types[1], call.types[0])
    except Clash:
        call.clash("`sgd` takes gradients shaped like the parameters", 0, 1)
    with_rank(call, 2, 0)
    floating(call, 2)
    return call.types[0]


def _descend(torch: Any, params: Any, grads: Any, lr: Any) -> Any:
    if isinstance(params, tuple):
        pairs: Any = zip(params, grads, strict=True)
        return tuple(_descend(torch, p, g, lr) for p, g in pairs)
    return torch.addcmul(params, grads, lr, value=-1).to(params.dtype)


def _descend_code(args: tuple[Value, ...], attrs: Mapping[str, Any]) -> Value:
    """Return the same step, tensor by tensor."""
    params, grads, lr = args
    if not isinstance(params.ty, TupleType):
        wide = widened(params)
        return sgd_step(wide, widened(grads), lr.cast(wide.dtype)).cast(params.dtype)
    count = len(params.ty.fields)
    moved = [_descend_code((params[i], grads[i], lr), attrs) for i in range(count)]
    return params.builder.tuple(moved)


_TREE: Final = (TensorSpec((3, 4)), TensorSpec((2,)), TensorSpec(()))

descend: Final = Op(
    name="descend",
    doc="`sgd`: every tensor of a record or tuple moved against its gradient, `param - lr * grad`.",
    params=(operand("params"), operand("grads"), operand("lr")),
    type_rule=_descend_type,
    shape=ShapeBehaviour.VARIADIC,
    lowering=Library(_descend, fused=MadeOf(_descend_code)),
    grad=Expansion(_descend_code),
    samples=lambda: (
        Sample((_TREE, _TREE, _RATE)),
        Sample((TensorSpec((4,)), TensorSpec((4,)), 0.1)),
        Sample(((TensorSpec((0, 4)),), (TensorSpec((0, 4)),), 0.1)),
    ),
)


def _like_the_parameter(call: RuleCall, *indices: int) -> TensorType:
    """Return the type of the parameter, which the given operands get too."""
    param = floating(call, 0)
    for index in indices:
        try:
            call.solver.unify(call.types[index], param)
        except Clash:
            name = call.operand_name(index)
            call.clash(f"`{call.op.name}` takes `{name}` like the parameter", 0, index)
    return param


def _moved_rows(torch: Any, grad: Any, before: Sequence[Any], after: Sequence[Any]) -> Any:
    """Return the results of a step in rows whose gradient is not zero, and old values elsewhere."""
    moves = grad != 0
    if grad.dim() > 1:
        moves = moves.any(dim=tuple(range(1, grad.dim())), keepdim=True)
    pairs = zip(before, after, strict=True)
    return tuple(
        new if isinstance(new, tuple) else torch.where(moves, new, old) for old, new in pairs
    )


def _moved_rows_code(
    grad: Value, before: Sequence[Value], after: Sequence[Value]
) -> tuple[Value, ...]:
    moves = not_equal(grad, 0.0)
    if grad.rank > 1:
        moves = any_(moves, dim=tuple(range(1, grad.rank)), keepdim=True)
    pairs = zip(before, after, strict=True)
    return tuple(where(moves, new, old) if is_given(new) else new for old, new in pairs)


def _momentum_type(call: RuleCall) -> Type:
    has_velocity = call.given(3)
    param = _like_the_parameter(call, 1, *((3,) if has_velocity else ()))
    with_rank(call, 2, 0)
    floating(call, 2)
    return TupleType((param, param if has_velocity else UNIT))


def _momentum_step(
    torch: Any,
    param: Any,
    grad: Any,
    lr: Any,
    velocity: Any,
    momentum: float,
    weight_decay: float,
    nesterov: bool,
    by_rows: bool,
) -> Any:
    before, given = (param, () if velocity is None else velocity), grad
    if weight_decay:
        grad = torch.add(grad, param, alpha=weight_decay)
    direction = grad
    if velocity is not None:
        velocity = torch.add(grad, velocity, alpha=momentum)
        direction = torch.add(grad, velocity, alpha=momentum) if nesterov else velocity
    moved = torch.addcmul(param, direction, lr, value=-1)
    after = moved.to(param.dtype), () if velocity is None else velocity
    return _moved_rows(torch, given, before, after) if by_rows else after


def _momentum_code(args: tuple[Value, ...], attrs: Mapping[str, Any]) -> Value:
    """Return the same step in operators that have derivatives."""
    dtype = args[0].dtype
    param, grad, velocity = widened(args[0]), widened(args[1]), args[3]
    if attrs["weight_decay"]:
        grad = grad + param * attrs["weight_decay"]
    direction = grad
    if is_given(velocity):
        moving = widened(velocity) * attrs["momentum"] + grad
        direction = grad + moving * attrs["momentum"] if attrs["nesterov"] else moving
        velocity = moving.cast(dtype)
    moved = (param - direction * args[2].cast(param.dtype)).cast(dtype)
    after = (moved, velocity)
    if attrs["by_rows"]:
        after = _moved_rows_code(args[1], (args[0], args[3]), after)
    return param.builder.tuple(after)


_MATRIX: Final = TensorSpec((3, 4))
_RATE: Final = TensorSpec((), low=0.1, high=0.5)

momentum_step: Final = Op(
    name="momentum_step",
    doc="A step of gradient descent: the new parameter and the new velocity, "
    "`momentum * velocity + grad`. Without a velocity the step is along the gradient.",
    params=(
        operand("param"),
        operand("grad"),
        operand("lr"),
        optional("velocity"),
        attribute("momentum", 0.0, kinds.real),
        attribute("weight_decay", 0.0, kinds.real),
        attribute("nesterov", False, kinds.flag),
        attribute("by_rows", False, kinds.flag),
    ),
    type_rule=_momentum_type,
    shape=ShapeBehaviour.FIXED,
    lowering=Library(_momentum_step, is_fresh=True, fused=MadeOf(_momentum_code)),
    grad=Expansion(_momentum_code),
    samples=lambda: (
        Sample((_MATRIX, _MATRIX, _RATE, _MATRIX), {"momentum": 0.9}),
        Sample((_MATRIX, _MATRIX, 0.1, _MATRIX), {"momentum": 0.9, "nesterov": True}),
        Sample((_MATRIX, _MATRIX, _RATE, None), {"weight_decay": 0.1}),
        Sample((TensorSpec((4, 3), contiguous=False), TensorSpec((4, 3)), _RATE, None)),
        Sample(
            (TensorSpec(()), TensorSpec(()), TensorSpec((), "float64"), TensorSpec(())),
            {"momentum": 0.5, "weight_decay": 0.1, "nesterov": True},
        ),
        Sample(
            (TensorSpec((0, 4)), TensorSpec((0, 4)), _RATE, TensorSpec((0, 4))), {"momentum": 0.9}
        ),
        Sample((_MATRIX, _MATRIX, _RATE, _MATRIX), {"momentum": 0.9, "by_rows": True}),
    ),
)


def _adam_type(call: RuleCall) -> Type:
    param = _like_the_parameter(call, 1, 2, 3)
    for index in (4, 5):
        with_rank(call, index, 0)
        floating(call, index)
    return TupleType((param, param, param))


def _adam_step(
    torch: Any,
    param: Any,
    grad: Any,
    first: Any,
    second: Any,
    step: Any,
    lr: Any,
    beta1: float,
    beta2: float,
    eps: float,
    weight_decay: float,
    decoupled: bool,
    by_rows: bool,
) -> Any:
    before, given = (param, first, second), grad
    # In single precision the powers would lose their difference from 1, by which this divides.
    steps = step.to(torch.float64) if isinstance(step, torch.Tensor) else step
    start = param
    if weight_decay and decoupled:
        start = param * (1 - lr * weight_decay)
    elif weight_decay:
        grad = torch.add(grad, param, alpha=weight_decay)
    first = torch.lerp(first, grad, 1 - beta1)
    second = torch.addcmul(second * beta2, grad, grad, value=1 - beta2)
    below = second.sqrt() / (1 - beta2**steps) ** 0.5 + eps
    moved = torch.addcmul(start, first / below, lr / (1 - beta1**steps), value=-1)
    after = moved.to(param.dtype), first, second
    return _moved_rows(torch, given, before, after) if by_rows else after


def _adam_code(args: tuple[Value, ...], attrs: Mapping[str, Any]) -> Value:
    """Return the same step in operators that have derivatives."""
    param, grad, first, second = map(widened, args[:4])
    dtype, decay = param.dtype, attrs["weight_decay"]
    steps, lr = (v.cast(dtype) for v in args[4:])
    start = param
    if decay and attrs["decoupled"]:
        start = param * (1.0 - lr * decay)
    elif decay:
        grad = grad + param * decay

    def correction(beta: float) -> Value | float:
        # 1 - beta**steps, of which single precision would lose most digits at first.
        return -math.expm1(steps * log(beta)) if beta else 1.0

    beta1, beta2 = attrs["beta1"], attrs["beta2"]
    first = first + (grad - first) * (1.0 - beta1)
    second = second * beta2 + grad * grad * (1.0 - beta2)
    below = math.sqrt(second) / correction(beta2) ** 0.5 + attrs["eps"]
    moved = start - first / below * (lr / correction(beta1))
    after = tuple(v.cast(args[0].dtype) for v in (moved, first, second))
    if attrs["by_rows"]:
        after = _moved_rows_code(args[1], (args[0], *args[2:4]), after)
    return param.builder.tuple(after)


_SQUARES: Final = TensorSpec((3, 4), low=0.1)
_STEP: Final = TensorSpec((), "float64", 1, 9)

adam_step: Final = Op(
    name="adam_step",
    doc="A step of Adam: the new parameter, and the new running means of the gradient and of its "
    "square; `step` counts from 1. With `decoupled` the weight decay is AdamW's.",
    params=(
        operand("param"),
        operand("grad"),
        operand("first"),
        operand("second"),
        operand("step"),
        operand("lr"),
        attribute("beta1", 0.9, kinds.real),
        attribute("beta2", 0.999, kinds.real),
        attribute("eps", 1e-8, kinds.real),
        attribute("weight_decay", 0.0, kinds.real),
        attribute("decoupled", False, kinds.flag),
        attribute("by_rows", False, kinds.flag),
    ),
    type_rule=_adam_type,
    shape=ShapeBehaviour.FIXED,
    lowering=Library(_adam_step, is_fresh=True, fused=MadeOf(_adam_code)),
    grad=Expansion(_adam_code),
    samples=lambda: (
        Sample((_MATRIX, _MATRIX, _MATRIX, _SQUARES, _STEP, _RATE)),
        Sample((_MATRIX, _MATRIX, _MATRIX, _SQUARES, 1.0, 0.1), {"weight_decay": 0.1}),
        Sample(
            (_MATRIX, _MATRIX, _MATRIX, _SQUARES, _STEP, _RATE),
            {"beta1": 0.5, "beta2": 0.9, "eps": 0.1, "weight_decay": 0.1, "decoupled": True},
        ),
        Sample(
            (*[TensorSpec((4, 3), contiguous=False)] * 3, TensorSpec((4, 3), low=0.1), _STEP, _RATE)
        ),
        Sample((*[TensorSpec(())] * 3, TensorSpec((), low=0.1), _STEP, TensorSpec((), "float64"))),
        Sample((*[TensorSpec((0, 4))] * 4, _STEP, _RATE)),
        Sample(
            (_MATRIX, _MATRIX, _MATRIX, _SQUARES, _STEP, _RATE),
            {"weight_decay": 0.1, "by_rows": True},
        ),
    ),
)
