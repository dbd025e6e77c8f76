"""The cross entropy of scores against classes, or against distributions over them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, Final, NoReturn

from ...ir.declaration import attribute_kinds as kinds
from ...ir.dims import ONE, product
from ...ir.op import (
    Clash,
    Expansion,
    Library,
    MadeOf,
    Op,
    RuleCall,
    Sample,
    ShapeBehaviour,
    TensorSpec,
    attribute,
    operand,
    optional,
)
from ...ir.rules import floating
from ...ir.types import TensorType, Type, int64, is_float, show
from ..primitive import compare
from ..shared.operands import as_positions, as_tensor, is_given
from ..shared.precision import widened
from . import softmax
from .classes import (
    IGNORED,
    batch_shape,
    class_dim,
    class_weights,
    counted,
    expect_weight,
    nll_loss,
)
from .reduction import reduced

if TYPE_CHECKING:
    from ..builder import Value


def _target_clash(call: RuleCall, source: TensorType, target: TensorType) -> NoReturn:
    batch = batch_shape(source)
    wanted = ", ".join(map(str, batch))
    call.clash(
        f"`{call.op.name}` of {show(source)} takes classes of shape ({wanted}"
        f"{',' if len(batch) == 1 else ''}) or distributions of the shape of the input, "
        f"not {show(target)}",
        0,
        1,
        cast=(1, int64) if is_float(target.dtype) and target.rank == len(batch) else None,
    )


def _check_numbers(call: RuleCall, *, of_chances: bool) -> None:
    smoothing, ignored = call.attrs["label_smoothing"], call.attrs["ignore_index"]
    if not 0 <= smoothing <= 1:
        call.clash(f"`{call.op.name}` takes a label_smoothing from 0 to 1, not {smoothing}")
    if of_chances and ignored >= 0:
        call.clash(f"`{call.op.name}` ignores classes, and its target has distributions", 1)


def _type(call: RuleCall) -> Type:
    source, target = floating(call, 0), call.tensor(1)
    if source.rank == 0:
        call.clash(f"`{call.op.name}` takes a score per class, not a number", 0)
    batch, of_chances = batch_shape(source), is_float(call.known_dtype(target.dtype))
    wanted = source.shape if of_chances else batch
    if target.rank != len(wanted):
        _target_clash(call, source, target)
    try:
        for have, want in zip(target.shape, wanted, strict=True):
            call.solver.unify_dims(have, want)
    except Clash:
        _target_clash(call, source, target)
    expect_weight(call, source)
    _check_numbers(call, of_chances=of_chances)
    return reduced(call, TensorType(batch, source.dtype))


def _body(torch: Any, x: Any, target: Any, weight: Any, *attrs: Any) -> Any:
    ignore_index, reduction, label_smoothing = attrs
    target = as_tensor(torch, target, x)
    if not target.dtype.is_floating_point:
        target = as_positions(torch, target)
    return torch.nn.functional.cross_entropy(
        x,
        target,
        weight,
        ignore_index=ignore_index,
        reduction=reduction,
        label_smoothing=label_smoothing,
    )


def _code(args: tuple[Value, ...], attrs: Mapping[str, Any]) -> Value:
    """Return the cross entropy with log chances of its own, of which the derivative is cheap."""
    source, target, weight = args
    chances = softmax.log_softmax(widened(source), dim=class_dim(source.rank))
    weight = widened(weight) if is_given(weight) else weight
    against = _against_chances if is_float(target.dtype) else _against_classes
    return against(chances, target, weight, attrs).cast(source.dtype)


def _over_classes(chances: Value, weight: Value) -> Value:
    """Return minus the log chances, times the weights of the classes if there are any."""
    if not is_given(weight):
        return -chances
    dim, ones = class_dim(chances.rank), [ONE] * chances.rank
    ones[dim] = chances.shape[dim]
    return -(chances * weight.reshape(*ones))


def _smoothed(loss: Value, spread: Value, chances: Value, smoothing: float) -> Value:
    """Return the loss when a part of every target goes to all classes alike; `spread` is the sum
    over the classes of what each of them would give."""
    count = chances.builder.size(chances.shape[class_dim(chances.rank)])
    return loss * (1.0 - smoothing) + spread * smoothing / count


def _against_chances(
    chances: Value, target: Value, weight: Value, attrs: Mapping[str, Any]
) -> Value:
    dim, smoothing = class_dim(chances.rank), attrs["label_smoothing"]
    over = (dim,) if attrs["reduction"] == "none" else None
    costs = _over_classes(chances, weight)
    loss = (costs * target.cast(chances.dtype)).sum(over)
    if smoothing:
        loss = _smoothed(loss, costs.sum(over), chances, smoothing)
    if attrs["reduction"] != "mean":
        return loss
    count = product((*chances.shape[:dim], *chances.shape[dim + 1 :]))
    return loss / chances.builder.size(count)


def _against_classes(
    chances: Value, target: Value, weight: Value, attrs: Mapping[str, Any]
) -> Value:
    kept = {name: attrs[name] for name in ("ignore_index", "reduction")}
    given = (weight,) if is_given(weight) else ()
    loss, smoothing = nll_loss(chances, target, *given, **kept), attrs["label_smoothing"]
    if not smoothing:
        return loss
    dim = class_dim(chances.rank)
    counts, chosen = counted(target, attrs["ignore_index"])
    spread = compare.where(counts, _over_classes(chances, weight).sum((dim,)), 0.0)
    if attrs["reduction"] != "none":
        spread = spread.sum()
    if attrs["reduction"] == "mean":
        shares = class_weights(weight, counts, chosen) if given else counts.cast(chances.dtype)
        spread = spread / shares.sum()
    return _smoothed(loss, spread, chances, smoothing)


def _samples() -> Iterable[Sample]:
    scores, classes = TensorSpec((4, 3)), TensorSpec((4,), "int64", 0, 3)
    chances, weight = TensorSpec((4, 3), low=0.0, high=1.0), TensorSpec((3,), low=0.5, high=2.0)
    yield Sample((scores, classes, None))
    yield Sample((scores, chances, None))
    yield Sample((TensorSpec((2, 3, 5)), TensorSpec((2, 5), "int64", 0, 3), None))
    yield Sample((TensorSpec((2, 3, 2, 2)), TensorSpec((2, 3, 2, 2), low=0.0, high=1.0), None))
    yield Sample((TensorSpec((3,)), TensorSpec((), "int64", 0, 3), None))
    yield Sample((TensorSpec((3,)), 1, None))
    yield Sample((TensorSpec((4, 3), contiguous=False), classes, None))
    for reduction in ("mean", "sum", "none"):
        attrs = {"reduction": reduction}
        yield Sample((scores, classes, None), {**attrs, "ignore_index": 0})
        yield Sample((scores, classes, weight), {**attrs, "label_smoothing": 0.25})
        yield Sample((scores, chances, weight), {**attrs, "label_smoothing": 0.25})
    yield Sample((scores, classes, None), {"ignore_index": 1, "label_smoothing": 0.5})
    smooth = {"label_smoothing": 0.25, "ignore_index": 2, "reduction": "none"}
    yield Sample((TensorSpec((2, 3, 5)), TensorSpec((2, 5), "int64", 0, 3), weight), smooth)
    none = TensorSpec((0,), "int64", 0, 3)
    yield Sample((TensorSpec((0, 3)), none, None), {"reduction": "sum"})


softmax_cross_entropy: Final = Op(
    name="softmax_cross_entropy",
    doc="The cross entropy of scores against classes or distributions, averaged over the batch "
    "unless `reduction` says otherwise; classes lie along dim 1, as in torch's cross_entropy.",
    params=(
        operand("input"),
        operand("target"),
        optional("weight"),
        attribute("ignore_index", IGNORED, kinds.whole),
        attribute("reduction", "mean", kinds.text),
        attribute("label_smoothing", 0.0, kinds.real),
    ),
    type_rule=_type,
    shape=ShapeBehaviour.COMPOSITE,
    lowering=Library(_body, is_fresh=True, fused=MadeOf(_code)),
    grad=Expansion(_code),
    torch_name="nn.functional.cross_entropy",
    samples=_samples,
)
