"""Loss functions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, Final, NoReturn

from ..dims import product
from ..op import (
    Clash,
    Effect,
    Elementwise,
    Expansion,
    Library,
    MadeOf,
    Op,
    Promotion,
    Pullback,
    RuleCall,
    Sample,
    ShapeBehaviour,
    TensorSpec,
    attribute,
    operand,
    optional,
)
from ..rules import broadcast_shapes, expect, floating, integral
from ..types import TensorType, TupleType, Type, int64, is_float, show
from . import activation, arithmetic, compare, create, gathering, math, softmax
from .operands import as_positions, as_tensor, is_given
from .precision import widened
from .reduction import gathered, paired_samples, reduced, spread

if TYPE_CHECKING:
    from ..build import Value
    from ..elements import Elements, Place, Source


def _class_dim(rank: int) -> int:
    return 1 if rank > 1 else 0


def _target_clash(call: RuleCall, source: TensorType, target: TensorType) -> NoReturn:
    dim = _class_dim(source.rank)
    batch = (*source.shape[:dim], *source.shape[dim + 1 :])
    wanted = ", ".join(map(str, batch))
    call.clash(
        f"`{call.op.name}` of {show(source)} takes classes of shape ({wanted}"
        f"{',' if len(batch) == 1 else ''}) or distributions of the shape of the input, "
        f"not {show(target)}",
        0,
        1,
        cast=(1, int64) if is_float(target.dtype) and target.rank == len(batch) else None,
    )


def _cross_entropy_type(call: RuleCall) -> Type:
    source, target = floating(call, 0), call.tensor(1)
    if source.rank == 0:
        call.clash("`softmax_cross_entropy` takes a score per class, not a number", 0)
    dim = _class_dim(source.rank)
    batch = (*source.shape[:dim], *source.shape[dim + 1 :])
    wanted = source.shape if is_float(call.known_dtype(target.dtype)) else batch
    if target.rank != len(wanted):
        _target_clash(call, source, target)
    try:
        for have, want in zip(target.shape, wanted, strict=True):
            call.solver.unify_dims(have, want)
    except Clash:
        _target_clash(call, source, target)
    return TensorType((), source.dtype)


def _cross_entropy(torch: Any, x: Any, target: Any) -> Any:
    target = as_tensor(torch, target, x)
    if not target.dtype.is_floating_point:
        target = as_positions(torch, target)
    return torch.nn.functional.cross_entropy(x, target)


def _cross_entropy_code(args: tuple[Value, ...], _: Mapping[str, Any]) -> Value:
    """Give the cross entropy with log chances of its own, of which the derivative is cheap."""
    source, target = args
    dim = _class_dim(source.rank)
    chances = softmax.log_softmax(widened(source), dim=dim)
    if not is_float(target.dtype):
        return nll_loss(chances, target).cast(source.dtype)
    count = product((*source.shape[:dim], *source.shape[dim + 1 :]))
    return -((chances * target).sum() / source.builder.size(count)).cast(source.dtype)


def _cross_entropy_samples() -> Iterable[Sample]:
    yield Sample((TensorSpec((4, 3)), TensorSpec((4,), "int64", 0, 3)))
    yield Sample((TensorSpec((4, 3)), TensorSpec((4, 3), low=0.0, high=1.0)))
    yield Sample((TensorSpec((2, 3, 5)), TensorSpec((2, 5), "int64", 0, 3)))
    yield Sample((TensorSpec((2, 3, 2, 2)), TensorSpec((2, 3, 2, 2), low=0.0, high=1.0)))
    yield Sample((TensorSpec((3,)), TensorSpec((), "int64", 0, 3)))
    yield Sample((TensorSpec((3,)), 1))
    yield Sample((TensorSpec((4, 3), contiguous=False), TensorSpec((4,), "int64", 0, 3)))


softmax_cross_entropy: Final = Op(
    name="softmax_cross_entropy",
    doc="The cross entropy of scores against classes or distributions, averaged over the batch; "
    "classes lie along dim 1, as in torch's cross_entropy.",
    params=(operand("input"), operand("target")),
    promotion=Promotion.NONE,
    type_rule=_cross_entropy_type,
    effect=Effect.NONE,
    shape=ShapeBehaviour.COMPOSITE,
    lowering=Library(_cross_entropy, is_fresh=True, fused=MadeOf(_cross_entropy_code)),
    grad=Expansion(_cross_entropy_code),
    hidden=(),
    hyper=(),
    torch_name="nn.functional.cross_entropy",
    samples=_cross_entropy_samples,
)


def _bce_type(call: RuleCall) -> Type:
    source, target = call.tensor(0), call.tensor(1)
    expect(
        call,
        1,
        TensorType(source.shape, target.dtype),
        f"`{call.op.name}` takes a target of the shape of the input",
    )
    for i in (2, 3):
        if call.given(i):
            _weight_fits(call, i, source)
    return reduced(call, source)


def _weight_fits(call: RuleCall, i: int, source: TensorType) -> None:
    weight = call.tensor(i)
    try:
        shape = broadcast_shapes(call, [source.shape, weight.shape])
        fits = len(shape) == source.rank
        for have, want in zip(shape, source.shape, strict=False):
            call.solver.unify_dims(have, want)
    except Clash:
        fits = False
    if not fits:
        call.clash(
            f"`{call.op.name}` cannot broadcast its {call.operand_name(i)} to {show(source)}", 0, i
        )


def _bce(torch: Any, x: Any, target: Any, weight: Any, pos_weight: Any, reduction: str) -> Any:
    return torch.nn.functional.binary_cross_entropy_with_logits(
        x, target, weight, reduction=reduction, pos_weight=pos_weight
    )


def _bce_code(args: tuple[Value, ...], attrs: Mapping[str, Any]) -> Value:
    x, target = widened(args[0]), widened(args[1])
    # softplus(-x), whose exponential never overflows.
    behind = math.log1p(math.exp(-arithmetic.abs_(x))) + arithmetic.maximum(-x, 0.0)
    if is_given(args[3]):
        behind = behind * (1.0 + (widened(args[3]) - 1.0) * target)
    each = (1.0 - target) * x + behind
    if is_given(args[2]):
        each = each * widened(args[2])
    return gathered(each, attrs["reduction"]).cast(args[0].dtype)


def _bce_grad(p: Pullback) -> tuple[Value | None, ...]:
    # loss = (1 - t) x + (1 + (w - 1) t) softplus(-x), w the weight of positives
    x, target, weight, pos_weight = p.args
    g = spread(p, x)
    scaled = g * weight if is_given(weight) else g
    behind = activation.softplus(-x)
    if not is_given(pos_weight):
        to_x, to_target = activation.sigmoid(x) - target, -x
        to_positive = None
    else:
        factor = 1.0 + (pos_weight - 1.0) * target
        to_x = (1.0 - target) - factor * activation.sigmoid(-x)
        to_target = (pos_weight - 1.0) * behind - x
        to_positive = (scaled * target * behind).sum_to(pos_weight.shape)
    to_weight = None
    if is_given(weight):
        factor = 1.0 if not is_given(pos_weight) else 1.0 + (pos_weight - 1.0) * target
        to_weight = (g * ((1.0 - target) * x + behind * factor)).sum_to(weight.shape)
    return scaled * to_x, scaled * to_target, to_weight, to_positive


binary_cross_entropy_with_logits: Final = Op(
    name="binary_cross_entropy_with_logits",
    doc="The cross entropy of `sigmoid(input)` against chances, computed without overflow.",
    params=(
        operand("input", promote=True),
        operand("target", promote=True),
        optional("weight"),
        optional("pos_weight"),
        attribute("reduction", "mean"),
    ),
    promotion=Promotion.FLOAT,
    type_rule=_bce_type,
    effect=Effect.NONE,
    shape=ShapeBehaviour.COMPOSITE,
    lowering=Library(_bce, fused=MadeOf(_bce_code)),
    grad=_bce_grad,
    hidden=(),
    hyper=(),
    torch_name="nn.functional.binary_cross_entropy_with_logits",
    samples=lambda: (
        *paired_samples(0.0, 1.0),
        Sample(
            (
                TensorSpec((3, 4)),
                TensorSpec((3, 4), low=0.0, high=1.0),
                TensorSpec((3, 1), low=0.5),
                TensorSpec((4,), low=0.5),
            )
        ),
        Sample(
            (
                TensorSpec((3, 4)),
                TensorSpec((3, 4), low=0.0, high=1.0),
                None,
                TensorSpec((4,), low=0.5),
            ),
            {"reduction": "none"},
        ),
    ),
)


def _nll_type(call: RuleCall) -> Type:
    source, target = floating(call, 0), integral(call, 1)
    dim = _class_dim(source.rank)
    batch = (*source.shape[:dim], *source.shape[dim + 1 :])
    message = f"`nll_loss` of {show(source)} takes one class per element of the batch"
    expect(call, 1, TensorType(batch, target.dtype), message)
    return reduced(call, TensorType(batch, source.dtype))


def _nll(torch: Any, x: Any, target: Any, reduction: str) -> Any:
    target = as_positions(torch, target, x)
    return torch.nn.functional.nll_loss(x, target, reduction=reduction)


def _nll_samples() -> Iterable[Sample]:
    yield Sample((TensorSpec((4, 3)), TensorSpec((4,), "int64", 0, 3)))
    yield Sample((TensorSpec((4, 3)), TensorSpec((4,), "int64", 0, 3)), {"reduction": "sum"})
    yield Sample((TensorSpec((2, 3, 5)), TensorSpec((2, 5), "int64", 0, 3)), {"reduction": "none"})
    yield Sample((TensorSpec((3,)), TensorSpec((), "int64", 0, 3)))
    yield Sample((TensorSpec((0, 3)), TensorSpec((0,), "int64", 0, 3)), {"reduction": "sum"})
    yield Sample((TensorSpec((4, 3), contiguous=False), TensorSpec((4,), "int64", 0, 3)))


_NUMBER: Final = TensorSpec(())
_TOTAL: Final = TensorSpec((), low=1.0, high=4.0)
_REDUCTIONS: Final = {"none": 0, "mean": 1, "sum": 2}
"""The numbers by which torch's kernels call the reductions."""

_IGNORED: Final = -100
"""The class that torch's losses leave out."""


nll_loss: Final = Op(
    name="nll_loss",
    doc="Minus the log chance of the class, from log chances along dim 1.",
    params=(operand("input"), operand("target"), attribute("reduction", "mean")),
    promotion=Promotion.NONE,
    type_rule=_nll_type,
    effect=Effect.NONE,
    shape=ShapeBehaviour.COMPOSITE,
    lowering=Library(
        _nll,
        is_fresh=True,
        fused=MadeOf(lambda args, attrs: nll_loss_with_total(*args, **attrs)[0]),
    ),
    grad=Expansion(
        lambda args, attrs: nll_loss_with_total(*args, **attrs)[0],
    ),
    hidden=(),
    hyper=(),
    torch_name="nn.functional.nll_loss",
    samples=_nll_samples,
)


def _nll_total_type(call: RuleCall) -> Type:
    loss = _nll_type(call)
    assert isinstance(loss, TensorType)
    return TupleType((loss, TensorType((), loss.dtype)))


def _as_images(x: Any, target: Any) -> tuple[Any, Any, str]:
    """Give scores and classes in a form for which torch has a kernel, and the kernel's name."""
    if x.dim() <= 2:
        return x, target, "nll_loss"
    return x.flatten(2).unsqueeze(2), target.flatten(1).unsqueeze(1), "nll_loss2d"


def _nll_with_total(torch: Any, x: Any, target: Any, reduction: str) -> Any:
    place = as_positions(torch, target, x)
    scores, classes, name = _as_images(x, place)
    forward = getattr(torch.ops.aten, f"{name}_forward")
    found = forward(scores, classes, None, _REDUCTIONS[reduction], _IGNORED)
    if reduction == "none" and x.dim() > 2:
        return found[0].reshape(place.shape), found[1]
    return found


def _nll_code(args: tuple[Value, ...], attrs: Mapping[str, Any]) -> Value:
    x, target = widened(args[0]), args[1].cast(int64)
    dim = _class_dim(x.rank)
    counts = compare.not_equal(target, _IGNORED)
    # What is ignored is no position: the first class is read in its place.
    chosen = compare.where(counts, target, 0).unsqueeze(dim)
    picked = gathering.gather(x, chosen, dim=dim).reshape(*target.shape)
    each = compare.where(counts, -picked, 0.0)
    total = counts.cast(x.dtype).sum()
    loss = each if attrs["reduction"] == "none" else each.sum()
    if attrs["reduction"] == "mean":
        loss = loss / total
    elif attrs["reduction"] == "none":
        total = create.zeros_like(total)
    return x.builder.tuple([v.cast(args[0].dtype) for v in (loss, total)])


nll_loss_with_total: Final = Op(
    name="nll_loss_with_total",
    doc="`nll_loss`, and the number of classes that a mean is taken over.",
    params=(operand("input"), operand("target"), attribute("reduction", "mean")),
    promotion=Promotion.NONE,
    type_rule=_nll_total_type,
    effect=Effect.NONE,
    shape=ShapeBehaviour.COMPOSITE,
    lowering=Library(_nll_with_total, is_fresh=True, fused=MadeOf(_nll_code)),
    grad=lambda p: (nll_loss_grad(p.g[0], *p.args, p.out[1], **p.attrs), None),
    hidden=(),
    hyper=(),
    torch_name=None,
    samples=_nll_samples,
)


def _nll_backward_type(call: RuleCall) -> Type:
    source = floating(call, 1)
    floating(call, 0)
    integral(call, 2)
    expect(call, 3, TensorType((), source.dtype), f"`{call.op.name}` takes the total of the loss")
    return source


def _nll_backward(torch: Any, g: Any, x: Any, target: Any, total: Any, reduction: str) -> Any:
    place = as_positions(torch, target, x)
    scores, classes, name = _as_images(x, place)
    if reduction == "none" and x.dim() > 2:
        g = g.flatten(1).unsqueeze(1)
    backward = getattr(torch.ops.aten, f"{name}_backward")
    found = backward(g, scores, classes, None, _REDUCTIONS[reduction], _IGNORED, total)
    return found.reshape(x.shape) if x.dim() > 2 else found


def _nll_backward_grad(p: Pullback) -> tuple[Value | None, ...]:
    _, _, target, total = p.args
    if p.attrs["reduction"] != "mean":
        return nll_loss(p.g, target, **p.attrs), None, None, None
    to_g = nll_loss(p.g, target, reduction="sum") / total
    return to_g, None, None, -((p.g * p.out).sum() / total)


def _nll_grad_element(
    k: Elements, place: Place, g: Source, x: Source, target: Source, total: Source, reduction: str
) -> Any:
    dim = _class_dim(len(place.index))
    batch = (*place.index[:dim], *place.index[dim + 1 :])
    # No place has the number of what is ignored.
    is_class = k.eq(k.cast(target(*batch), int64), k.number(place.index[dim]))
    slope = g(*batch) if reduction == "none" else g()
    if reduction == "mean":
        slope = k.div(slope, total())
    return k.where(is_class, k.neg(slope), k.const(0.0))


nll_loss_grad: Final = Op(
    name="nll_loss_grad",
    doc="The cotangent of the log chances of `nll_loss`; `total_weight` is the second result of "
    "`nll_loss_with_total`.",
    params=(
        operand("grad"),
        operand("input"),
        operand("target"),
        operand("total_weight"),
        attribute("reduction", "mean"),
    ),
    promotion=Promotion.NONE,
    type_rule=_nll_backward_type,
    effect=Effect.NONE,
    shape=ShapeBehaviour.COMPOSITE,
    lowering=Library(_nll_backward, is_fresh=True, fused=Elementwise(_nll_grad_element)),
    grad=_nll_backward_grad,
    hidden=(),
    hyper=(),
    torch_name=None,
    samples=lambda: (
        Sample((_NUMBER, TensorSpec((4, 3)), TensorSpec((4,), "int64", 0, 3), _TOTAL)),
        Sample(
            (_NUMBER, TensorSpec((2, 3, 5)), TensorSpec((2, 5), "int64", 0, 3), _TOTAL),
            {"reduction": "sum"},
        ),
        Sample(
            (TensorSpec((2, 5)), TensorSpec((2, 3, 5)), TensorSpec((2, 5), "int64", 0, 3), _TOTAL),
            {"reduction": "none"},
        ),
        Sample((_NUMBER, TensorSpec((3,)), TensorSpec((), "int64", 0, 3), _TOTAL)),
        Sample(
            (
                TensorSpec((4,)),
                TensorSpec((4, 3), contiguous=False),
                TensorSpec((4,), "int64", 0, 3),
                _TOTAL,
            ),
            {"reduction": "none"},
        ),
    ),
)


def _kl_type(call: RuleCall) -> Type:
    left, right = floating(call, 0), floating(call, 1)
    expect(call, 1, TensorType(left.shape, right.dtype), "`kl_div` takes tensors of one shape")
    if call.attrs["reduction"] == "batchmean":
        if not left.rank:
            call.clash("`kl_div` with reduction='batchmean' takes a batch", 0)
        return TensorType((), left.dtype)
    return reduced(call, left)


def _kl(torch: Any, x: Any, target: Any, reduction: str, log_target: bool) -> Any:
    if reduction == "mean":  # torch warns that its meaning may change; ours is that of today
        each = torch.nn.functional.kl_div(x, target, reduction="none", log_target=log_target)
        return each.mean()
    return torch.nn.functional.kl_div(x, target, reduction=reduction, log_target=log_target)


def _kl_code(args: tuple[Value, ...], attrs: Mapping[str, Any]) -> Value:
    x, target = map(widened, args)
    if attrs["log_target"]:
        each = math.exp(target) * (target - x)
    else:
        # The limit of t log t at 0 is 0.
        safe = compare.where(compare.equal(target, 0.0), 1.0, target)
        each = target * math.log(safe) - target * x
    if attrs["reduction"] == "batchmean":
        return (each.sum() / x.builder.size(x.shape[0])).cast(args[0].dtype)
    return gathered(each, attrs["reduction"]).cast(args[0].dtype)


def _kl_grad(p: Pullback) -> tuple[Value, Value]:
    x, target = p.args
    by_batch = p.attrs["reduction"] == "batchmean"
    g = p.g / p.g.builder.size(x.shape[0]) if by_batch else spread(p, x)
    if p.attrs["log_target"]:
        chances = math.exp(target)
        return -(chances * g), chances * (target - x + 1.0) * g
    # The limit of t log t at 0 is 0, and torch's derivative of it there is 0 as well.
    positive = compare.greater(target, 0.0)
    safe = compare.where(positive, target, create.ones_like(target))
    zeros = create.zeros_like(target)
    slope = compare.where(positive, math.log(safe) + 1.0, zeros)
    return -(target * g), (slope - x) * g


kl_div: Final = Op(
    name="kl_div",
    doc="The Kullback-Leibler divergence of `target` from `input`, which holds log chances.",
    params=(
        operand("input", promote=True),
        operand("target", promote=True),
        attribute("reduction", "mean"),
        attribute("log_target", False),
    ),
    promotion=Promotion.FLOAT,
    type_rule=_kl_type,
    effect=Effect.NONE,
    shape=ShapeBehaviour.COMPOSITE,
    lowering=Library(_kl, fused=MadeOf(_kl_code)),
    grad=_kl_grad,
    hidden=(),
    hyper=(),
    torch_name="nn.functional.kl_div",
    samples=lambda: (
        *paired_samples(0.2, 1.0),
        Sample((TensorSpec((3, 4)), TensorSpec((3, 4), low=0.2)), {"reduction": "batchmean"}),
        Sample((TensorSpec((3, 4)), TensorSpec((3, 4))), {"log_target": True}),
    ),
)
