"""The loss of log chances against classes, which are integers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, Final

from ...ir.declaration import attribute_kinds as kinds
from ...ir.dims import Dim
from ...ir.op import (
    Elementwise,
    Expansion,
    Library,
    MadeOf,
    Op,
    Pullback,
    RuleCall,
    Sample,
    ShapeBehaviour,
    TensorSpec,
    attribute,
    operand,
    optional,
)
from ...ir.rules import expect, floating, integral
from ...ir.types import TensorType, TupleType, Type, int64, show
from ..primitive import compare, create, gathering
from ..shared.operands import as_positions, is_given
from ..shared.precision import widened
from .reduction import reduced

if TYPE_CHECKING:
    from ...ir.declaration.elements import Elements, Place, Source
    from ..builder import Value


IGNORED: Final = -100
"""The class that torch's losses leave out unless `ignore_index` says another."""


def class_dim(rank: int) -> int:
    """Return the dim along which scores of classes lie."""
    return 1 if rank > 1 else 0


def batch_shape(source: TensorType) -> tuple[Dim, ...]:
    """Return the shape of the classes that scores are for."""
    dim = class_dim(source.rank)
    return (*source.shape[:dim], *source.shape[dim + 1 :])


def expect_weight(call: RuleCall, source: TensorType) -> None:
    """Check the weights of the classes, operand 2, if they are given. Raises Clash."""
    if call.given(2):
        classes = source.shape[class_dim(source.rank)]
        message = f"`{call.op.name}` takes one weight per class"
        expect(call, 2, TensorType((classes,), source.dtype), message)


def _loss_type(call: RuleCall) -> TensorType:
    source, target = floating(call, 0), integral(call, 1)
    if source.rank == 0:
        call.clash(f"`{call.op.name}` takes a log chance per class, not a number", 0)
    batch = batch_shape(source)
    message = f"`{call.op.name}` of {show(source)} takes one class per element of the batch"
    expect(call, 1, TensorType(batch, target.dtype), message)
    return reduced(call, TensorType(batch, source.dtype))


def _nll_type(call: RuleCall) -> Type:
    loss = _loss_type(call)
    expect_weight(call, call.tensor(0))
    return loss


def _nll(torch: Any, x: Any, target: Any, weight: Any, ignore_index: int, reduction: str) -> Any:
    target = as_positions(torch, target, x)
    return torch.nn.functional.nll_loss(
        x, target, weight, ignore_index=ignore_index, reduction=reduction
    )


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

_ATTRIBUTES: Final = (
    attribute("ignore_index", IGNORED, kinds.whole),
    attribute("reduction", "mean", kinds.text),
)


def _weighted_samples() -> Iterable[Sample]:
    scores, classes = TensorSpec((4, 3)), TensorSpec((4,), "int64", 0, 3)
    weight = TensorSpec((3,), low=0.5, high=2.0)
    yield from (Sample((*s.operands, None), s.attrs) for s in _nll_samples())
    yield Sample((scores, classes, weight))
    yield Sample((scores, classes, weight), {"ignore_index": 1})
    yield Sample((scores, classes, None), {"ignore_index": 0, "reduction": "none"})
    yield Sample((scores, classes, weight), {"reduction": "sum"})
    images, places = TensorSpec((2, 3, 5)), TensorSpec((2, 5), "int64", 0, 3)
    yield Sample((images, places, weight), {"ignore_index": 2, "reduction": "none"})
    yield Sample((TensorSpec((3,)), TensorSpec((), "int64", 0, 3), weight))


def counted(target: Value, ignore_index: int) -> tuple[Value, Value]:
    """Return which classes count, and the classes with one that exists for those that do not."""
    target = target.cast(int64)
    counts = compare.not_equal(target, ignore_index)
    return counts, compare.where(counts, target, 0)


def class_weights(weight: Value, counts: Value, chosen: Value) -> Value:
    """Return the weight of each class that counts, and 0 for the others."""
    return compare.where(counts, gathering.take(weight, chosen), 0.0)


def _nll_code(args: tuple[Value, ...], attrs: Mapping[str, Any]) -> Value:
    """Return nll_loss with what its derivative needs; a weight has a derivative as well."""
    if not is_given(args[2]):
        return nll_loss_with_total(*args[:2], **attrs)[0]
    x, weight = widened(args[0]), widened(args[2])
    dim = class_dim(x.rank)
    counts, chosen = counted(args[1], attrs["ignore_index"])
    share = class_weights(weight, counts, chosen)
    picked = gathering.gather(x, chosen.unsqueeze(dim), dim=dim).reshape(*args[1].shape)
    each = compare.where(counts, -picked * share, 0.0)
    if attrs["reduction"] == "none":
        return each.cast(args[0].dtype)
    total = share.sum() if attrs["reduction"] == "mean" else 1.0
    return (each.sum() / total).cast(args[0].dtype)


nll_loss: Final = Op(
    name="nll_loss",
    doc="Minus the log chance of the class, from log chances along dim 1, times the `weight` of "
    "the class. What has the class `ignore_index` counts for nothing.",
    params=(operand("input"), operand("target"), optional("weight"), *_ATTRIBUTES),
    type_rule=_nll_type,
    shape=ShapeBehaviour.COMPOSITE,
    lowering=Library(_nll, is_fresh=True, fused=MadeOf(_nll_code)),
    grad=Expansion(_nll_code),
    torch_name="nn.functional.nll_loss",
    samples=_weighted_samples,
)


def _nll_total_type(call: RuleCall) -> Type:
    loss = _loss_type(call)
    return TupleType((loss, TensorType((), loss.dtype)))


def _as_images(x: Any, target: Any) -> tuple[Any, Any, str]:
    """Return scores and classes in a form for which torch has a kernel, and the kernel's name."""
    if x.dim() <= 2:
        return x, target, "nll_loss"
    return x.flatten(2).unsqueeze(2), target.flatten(1).unsqueeze(1), "nll_loss2d"


def _nll_with_total(torch: Any, x: Any, target: Any, ignore_index: int, reduction: str) -> Any:
    place = as_positions(torch, target, x)
    scores, classes, name = _as_images(x, place)
    forward = getattr(torch.ops.aten, f"{name}_forward")
    found = forward(scores, classes, None, _REDUCTIONS[reduction], ignore_index)
    if reduction == "none" and x.dim() > 2:
        return found[0].reshape(place.shape), found[1]
    return found


def _total_code(args: tuple[Value, ...], attrs: Mapping[str, Any]) -> Value:
    x = widened(args[0])
    dim = class_dim(x.rank)
    counts, chosen = counted(args[1], attrs["ignore_index"])
    picked = gathering.gather(x, chosen.unsqueeze(dim), dim=dim).reshape(*args[1].shape)
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
    params=(operand("input"), operand("target"), *_ATTRIBUTES),
    type_rule=_nll_total_type,
    shape=ShapeBehaviour.COMPOSITE,
    lowering=Library(_nll_with_total, is_fresh=True, fused=MadeOf(_total_code)),
    grad=lambda p: (nll_loss_grad(p.g[0], *p.args, p.out[1], **p.attrs), None),
    samples=lambda: (
        *_nll_samples(),
        Sample((TensorSpec((4, 3)), TensorSpec((4,), "int64", 0, 3)), {"ignore_index": 1}),
    ),
)


def _nll_backward_type(call: RuleCall) -> Type:
    source = floating(call, 1)
    floating(call, 0)
    integral(call, 2)
    expect(call, 3, TensorType((), source.dtype), f"`{call.op.name}` takes the total of the loss")
    return source


def _nll_backward(
    torch: Any, g: Any, x: Any, target: Any, total: Any, ignore_index: int, reduction: str
) -> Any:
    place = as_positions(torch, target, x)
    scores, classes, name = _as_images(x, place)
    if reduction == "none" and x.dim() > 2:
        g = g.flatten(1).unsqueeze(1)
    backward = getattr(torch.ops.aten, f"{name}_backward")
    found = backward(g, scores, classes, None, _REDUCTIONS[reduction], ignore_index, total)
    return found.reshape(x.shape) if x.dim() > 2 else found


def _nll_backward_grad(p: Pullback) -> tuple[Value | None, ...]:
    _, _, target, total = p.args
    if p.attrs["reduction"] != "mean":
        return nll_loss(p.g, target, **p.attrs), None, None, None
    to_g = nll_loss(p.g, target, **{**p.attrs, "reduction": "sum"}) / total
    return to_g, None, None, -((p.g * p.out).sum() / total)


def _nll_grad_element(
    k: Elements,
    place: Place,
    g: Source,
    x: Source,
    target: Source,
    total: Source,
    ignore_index: int,
    reduction: str,
) -> Any:
    dim = class_dim(len(place.index))
    batch = (*place.index[:dim], *place.index[dim + 1 :])
    number = k.cast(target(*batch), int64)
    counts = k.ne(number, k.number(Dim.of(ignore_index)))
    chosen = k.where(counts, number, k.number(Dim.of(0)))
    chosen = k.number(k.coordinate(chosen, x.shape[dim], from_end=False))
    is_class = k.logical_and(k.eq(chosen, k.number(place.index[dim])), counts)
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
        *_ATTRIBUTES,
    ),
    type_rule=_nll_backward_type,
    shape=ShapeBehaviour.COMPOSITE,
    lowering=Library(_nll_backward, is_fresh=True, fused=Elementwise(_nll_grad_element)),
    grad=_nll_backward_grad,
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
            (_NUMBER, TensorSpec((4, 3)), TensorSpec((4,), "int64", 0, 3), _TOTAL),
            {"ignore_index": 1},
        ),
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
