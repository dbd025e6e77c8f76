"""Losses against classes, which are integers, or against distributions over them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, Final, NoReturn

from .. import kinds
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
)
from ..rules import expect, floating, integral
from ..types import TensorType, TupleType, Type, int64, is_float, show
from . import compare, create, gathering, softmax
from .operands import as_positions, as_tensor
from .precision import widened
from .reduction import reduced

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
    params=(operand("input"), operand("target"), attribute("reduction", "mean", kinds.text)),
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
    params=(operand("input"), operand("target"), attribute("reduction", "mean", kinds.text)),
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
        attribute("reduction", "mean", kinds.text),
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
