"""Normalisation: tensors shifted and scaled to a mean of 0 and a variance of 1.

A derivative takes `layer_norm` and `batch_norm` as the operators of `statistics.py`; that of
`rms_norm` saves a reduction, and the others follow from their bodies.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from ...ir.declaration import attribute_kinds as kinds
from ...ir.dims import Dim, product
from ...ir.op import (
    MODE,
    Expansion,
    Hidden,
    HiddenKind,
    Init,
    Layouts,
    Library,
    MadeOf,
    Op,
    Pullback,
    RuleCall,
    Sample,
    ShapeBehaviour,
    Stuck,
    TensorSpec,
    attribute,
    operand,
    optional,
)
from ...ir.rules import expect, floating, parameter_dtype
from ...ir.types import TensorType, TupleType, Type, show
from ..declare import composite
from ..primitive import activation, math
from ..shared.operands import is_given
from ..shared.precision import widened
from .statistics import (
    along_channels,
    batch_norm_with_statistics,
    layer_norm_with_statistics,
    mean_over,
    normal,
    scaled,
)

if TYPE_CHECKING:
    from ..builder import Value


def _channels(call: RuleCall) -> TensorType:
    source = floating(call, 0)
    if source.rank < 2:
        call.clash(f"`{call.op.name}` takes a tensor (batch, channels, ...), not {show(source)}", 0)
    return source


def _per_channel(call: RuleCall) -> TensorType:
    return TensorType((_channels(call).shape[1],), parameter_dtype(call))


_AFFINE: Final = (
    Hidden("weight", HiddenKind.PARAMETER, Init.ONES, _per_channel, only_if="affine"),
    Hidden("bias", HiddenKind.PARAMETER, Init.ZEROS, _per_channel, only_if="affine"),
)


def _expect_vectors(call: RuleCall, source: TensorType, count: int) -> TensorType:
    """Return the type of the `count` operands behind the images, with an element per channel."""
    vector = TensorType((source.shape[1],), source.dtype)
    for place in range(1, count + 1):
        if call.given(place):
            name = call.operand_name(place)
            expect(call, place, vector, f"`{call.op.name}` takes one {name} per channel")
    return vector


def _batch_norm_type(call: RuleCall) -> Type:
    source = _channels(call)
    vector = _expect_vectors(call, source, 4)
    return TupleType((source, vector, vector))


def _batch_norm(
    torch: Any,
    x: Any,
    mean: Any,
    var: Any,
    weight: Any,
    bias: Any,
    training: bool,
    momentum: float,
    eps: float,
) -> Any:
    if training:  # torch writes the statistics, so it gets its own
        mean, var = mean.clone(), var.clone()
    out = torch.nn.functional.batch_norm(x, mean, var, weight, bias, training, momentum, eps)
    return out, mean, var


def _batch_norm_code(args: tuple[Value, ...], attrs: Mapping[str, Any]) -> Value:
    """Return batch_norm in operators that keep the statistics of the batch for the derivative."""
    x, running_mean, running_var, weight, bias = args
    eps, momentum = attrs["eps"], attrs["momentum"]
    if not attrs["training"]:
        factor = along_channels(math.rsqrt(widened(running_var) + eps), x.rank)
        out = (widened(x) - along_channels(widened(running_mean), x.rank)) * factor
        out = out * along_channels(widened(weight), x.rank) if is_given(weight) else out
        out = out + along_channels(widened(bias), x.rank) if is_given(bias) else out
        return x.builder.tuple((out.cast(x.dtype), running_mean, running_var))
    found = batch_norm_with_statistics(x, weight, bias, eps=eps)
    new = [found[1].cast(x.dtype), found[3].cast(x.dtype)]
    kept = [
        old * (1.0 - momentum) + activation.stop_gradient(now) * momentum
        for old, now in zip((running_mean, running_var), new, strict=True)
    ]
    return x.builder.tuple((found[0], *kept))


_VECTOR: Final = TensorSpec((3,))
_POSITIVE: Final = TensorSpec((3,), low=0.5, high=2.0)


batch_norm: Final = Op(
    name="batch_norm",
    doc="Each channel (dim 1) normalised, in training by its own statistics over the batch, else "
    "by the running ones. Gives (output, new running mean, new running variance); only the output "
    "carries a gradient.",
    params=(
        operand("input"),
        operand("running_mean"),
        operand("running_var"),
        optional("weight"),
        optional("bias"),
        attribute("training", MODE, kinds.flag),
        attribute("momentum", 0.1, kinds.real),
        attribute("eps", 1e-5, kinds.real),
    ),
    type_rule=_batch_norm_type,
    shape=ShapeBehaviour.FEATURE_BATCHED,
    layouts=Layouts.IMAGES,
    lowering=Library(_batch_norm, fused=MadeOf(_batch_norm_code)),
    grad=Expansion(_batch_norm_code),
    hidden=(
        Hidden("running_mean", HiddenKind.BUFFER, Init.ZEROS, _per_channel),
        Hidden("running_var", HiddenKind.BUFFER, Init.ONES, _per_channel),
        *_AFFINE,
    ),
    hyper=(attribute("affine", True, kinds.flag),),
    torch_name=None,
    samples=lambda: (
        Sample((TensorSpec((4, 3)), _VECTOR, _POSITIVE, _VECTOR, _VECTOR), {"training": True}),
        Sample((TensorSpec((4, 3)), _VECTOR, _POSITIVE, _VECTOR, _VECTOR)),
        Sample((TensorSpec((2, 3, 4, 5)), _VECTOR, _POSITIVE, None, None), {"training": True}),
        Sample((TensorSpec((2, 3, 4, 5)), _VECTOR, _POSITIVE, None, None), {"eps": 0.1}),
        Sample(
            (TensorSpec((4, 3, 5), contiguous=False), _VECTOR, _POSITIVE, _VECTOR, _VECTOR),
            {"training": True, "momentum": 0.5},
        ),
        Sample((TensorSpec((0, 3)), _VECTOR, _POSITIVE, _VECTOR, _VECTOR)),
    ),
)


def last_dim(call: RuleCall) -> tuple[Dim, ...]:
    """Return the last dim of the operand, which is normalised where no shape is given. Raises
    Clash and Stuck."""
    source = floating(call, 0)
    if not source.shape:
        call.clash(f"`{call.op.name}` does not fit a number", 0)
    size = call.solver.resolve_dim(source.shape[-1])
    if size.has_holes():
        raise Stuck(size)
    return (size,)


def _normalized(call: RuleCall) -> TensorType:
    """Return the type of the operand, whose last dims are `normalized_shape`. Raises Clash."""
    source, shape = floating(call, 0), call.attrs["normalized_shape"]
    text = ", ".join(map(str, shape))
    message = f"`{call.op.name}` over ({text}) does not fit {show(source)}"
    if not shape or len(shape) > source.rank:
        call.clash(message, 0)
    for have, want in zip(source.shape[-len(shape) :], shape, strict=True):
        call.unify_dims(
            have, want, 0, f"`{call.op.name}` over ({text}) does not fit {show(source)}"
        )
    return source


def _layer_norm_type(call: RuleCall) -> Type:
    source = _normalized(call)
    part = TensorType(call.attrs["normalized_shape"], source.dtype)
    for place in range(1, len(call.types)):
        if call.given(place):
            name = call.operand_name(place)
            expect(call, place, part, f"`{call.op.name}` takes a {name} of the normalized shape")
    return source


def _normalized_weight(call: RuleCall) -> TensorType:
    return TensorType(kinds.shape(call.attrs["normalized_shape"]), parameter_dtype(call))


def _layer_norm(
    torch: Any, x: Any, weight: Any, bias: Any, shape: tuple[int, ...], eps: float
) -> Any:
    return torch.layer_norm(x, shape, weight, bias, eps)


layer_norm: Final = Op(
    name="layer_norm",
    doc="The last dims, those of `normalized_shape`, normalised together.",
    params=(
        operand("input"),
        attribute("normalized_shape", None, kinds.optional(kinds.shape), last_dim),
        optional("weight"),
        optional("bias"),
        attribute("eps", 1e-5, kinds.real),
    ),
    type_rule=_layer_norm_type,
    shape=ShapeBehaviour.FEATURE_BATCHED,
    lowering=Library(
        _layer_norm,
        is_fresh=True,
        fused=MadeOf(lambda args, attrs: layer_norm_with_statistics(*args, **attrs)[0]),
    ),
    grad=Expansion(lambda args, attrs: layer_norm_with_statistics(*args, **attrs)[0]),
    hidden=(
        Hidden(
            "weight",
            HiddenKind.PARAMETER,
            Init.ONES,
            _normalized_weight,
            only_if="elementwise_affine",
        ),
        Hidden(
            "bias",
            HiddenKind.PARAMETER,
            Init.ZEROS,
            _normalized_weight,
            only_if="elementwise_affine",
        ),
    ),
    hyper=(attribute("elementwise_affine", True, kinds.flag),),
    torch_name="nn.functional.layer_norm",
    samples=lambda: (
        Sample((TensorSpec((4, 3)), _VECTOR, _VECTOR), {"normalized_shape": (3,)}),
        Sample((TensorSpec((4, 3)), None, None), {"normalized_shape": (3,), "eps": 0.1}),
        Sample((TensorSpec((5,)), None, TensorSpec((5,))), {"normalized_shape": (5,)}),
        Sample(
            (TensorSpec((2, 4, 3)), TensorSpec((4, 3)), TensorSpec((4, 3))),
            {"normalized_shape": (4, 3)},
        ),
        Sample((TensorSpec((0, 3)), _VECTOR, _VECTOR), {"normalized_shape": (3,)}),
        Sample((TensorSpec((4, 3), contiguous=False), _VECTOR, None), {"normalized_shape": (3,)}),
    ),
)


_EPSILON: Final = {
    "float64": 2.0**-52,
    "float32": 2.0**-23,
    "float16": 2.0**-10,
    "bfloat16": 2.0**-7,
}
"""The distance from 1 to the next number, which torch adds when `eps` is not given."""


def _rms_norm(
    x: Value, weight: Value | None, *, normalized_shape: tuple[Dim, ...], eps: float | None
) -> Value:
    return scaled(x * _inverse_rms(x, _last_dims(x, normalized_shape), eps), weight, None)


def _last_dims(x: Value, shape: tuple[Dim, ...]) -> tuple[int, ...]:
    return tuple(range(x.rank - len(shape), x.rank))


def _inverse_rms(x: Value, dims: tuple[int, ...], eps: float | None) -> Value:
    return math.rsqrt(mean_over(x * x, dims) + (_EPSILON[x.dtype.name] if eps is None else eps))


def _rms_norm_grad(p: Pullback) -> tuple[Value | None, ...]:
    """Return the derivative of the body in one reduction along each row, where that of its parts
    has two."""
    x, weight = p.args
    assert is_given(x)
    dims = _last_dims(x, p.attrs["normalized_shape"])
    lead = tuple(range(x.rank - len(dims)))
    factor = _inverse_rms(x, dims, p.attrs["eps"])
    unit = x * factor
    if not is_given(weight):
        return factor * (p.g - unit * mean_over(p.g * unit, dims)), None
    each, g = p.g * unit, p.g * weight
    to_x = factor * (g - unit * mean_over(g * unit, dims))
    return to_x, each.sum(lead) if lead else each


rms_norm: Final = composite(
    name="rms_norm",
    doc="The last dims scaled to a mean square of 1.",
    params=(
        operand("input"),
        attribute("normalized_shape", None, kinds.optional(kinds.shape), last_dim),
        optional("weight"),
        attribute("eps", None, kinds.optional(kinds.real)),
    ),
    type_rule=_layer_norm_type,
    shape=ShapeBehaviour.FEATURE_BATCHED,
    body=_rms_norm,
    grad=_rms_norm_grad,
    torch=lambda torch, x, weight, shape, eps: torch.nn.functional.rms_norm(x, shape, weight, eps),
    is_fresh=True,
    hidden=(
        Hidden(
            "weight",
            HiddenKind.PARAMETER,
            Init.ONES,
            _normalized_weight,
            only_if="elementwise_affine",
        ),
    ),
    hyper=(attribute("elementwise_affine", True, kinds.flag),),
    torch_name="nn.functional.rms_norm",
    samples=lambda: (
        Sample((TensorSpec((4, 3)), _VECTOR), {"normalized_shape": (3,)}),
        Sample((TensorSpec((4, 3)), None), {"normalized_shape": (3,), "eps": 0.1}),
        Sample((TensorSpec((2, 4, 3)), TensorSpec((4, 3))), {"normalized_shape": (4, 3)}),
        Sample((TensorSpec((5,)), None), {"normalized_shape": (5,)}),
        Sample((TensorSpec((0, 3)), _VECTOR), {"normalized_shape": (3,)}),
        Sample((TensorSpec((4, 3), contiguous=False), _VECTOR), {"normalized_shape": (3,)}),
    ),
)


def _group_norm_type(call: RuleCall) -> Type:
    source, groups = _channels(call), call.attrs["num_groups"]
    channels = call.solver.resolve_dim(source.shape[1])
    message = f"`group_norm` cannot split {channels} channels into {groups} groups"
    if isinstance(groups, int) and groups < 1:
        call.clash(message, 0)
    if channels.constant is not None and channels.constant % groups:
        call.clash(message, 0)
    if channels.exact_quotient(Dim.of(groups)) is None and not channels.has_holes():
        call.unify_dims(channels, channels // groups * groups, 0, message)
    _expect_vectors(call, source, 2)
    return source


def _group_norm(
    x: Value, weight: Value | None, bias: Value | None, *, num_groups: int | Dim, eps: float
) -> Value:
    split = (x.shape[0], Dim.of(num_groups), product(x.shape[1:]) // num_groups)
    standard = normal(x.reshape(*split), (2,), eps)[0].reshape(*x.shape)
    return scaled(standard, *(v and along_channels(v, x.rank) for v in (weight, bias)))


group_norm: Final = composite(
    name="group_norm",
    doc="The channels (dim 1) in groups, each normalised by its own statistics.",
    params=(
        operand("input"),
        attribute("num_groups", convert=kinds.at_least(1, kinds.size)),
        optional("weight"),
        optional("bias"),
        attribute("eps", 1e-5, kinds.real),
    ),
    type_rule=_group_norm_type,
    shape=ShapeBehaviour.FEATURE_BATCHED,
    body=_group_norm,
    torch=lambda torch, x, weight, bias, groups, eps: torch.nn.functional.group_norm(
        x, groups, weight, bias, eps
    ),
    is_fresh=True,
    hidden=_AFFINE,
    hyper=(attribute("affine", True, kinds.flag),),
    torch_name="nn.functional.group_norm",
    layouts=Layouts.IMAGES,
    samples=lambda: (
        Sample((TensorSpec((2, 6, 3)), TensorSpec((6,)), TensorSpec((6,))), {"num_groups": 2}),
        Sample((TensorSpec((2, 6)), None, None), {"num_groups": 3, "eps": 0.1}),
        Sample((TensorSpec((2, 4, 3, 2)), TensorSpec((4,)), None), {"num_groups": 1}),
        Sample((TensorSpec((0, 6, 3)), TensorSpec((6,)), TensorSpec((6,))), {"num_groups": 2}),
        Sample((TensorSpec((2, 6, 3), contiguous=False), None, None), {"num_groups": 2}),
    ),
)


def _images(call: RuleCall) -> TensorType:
    source = floating(call, 0)
    if source.rank < 3:
        wanted = "a tensor (batch, channels, places, ...)"
        call.clash(f"`instance_norm` takes {wanted}, not {show(source)}", 0)
    return source


def _instance_norm_type(call: RuleCall) -> Type:
    source = _images(call)
    _expect_vectors(call, source, 2)
    return source


def _instance_norm(x: Value, weight: Value | None, bias: Value | None, *, eps: float) -> Value:
    return group_norm(x, weight, bias, num_groups=x.shape[1], eps=eps)


instance_norm: Final = composite(
    name="instance_norm",
    doc="Each channel (dim 1) of each element of the batch, normalised by its own statistics.",
    params=(
        operand("input"),
        optional("weight"),
        optional("bias"),
        attribute("eps", 1e-5, kinds.real),
    ),
    type_rule=_instance_norm_type,
    body=_instance_norm,
    torch=lambda torch, x, weight, bias, eps: torch.nn.functional.instance_norm(
        x, weight=weight, bias=bias, eps=eps
    ),
    is_fresh=True,
    hidden=_AFFINE,
    hyper=(attribute("affine", default=False, convert=kinds.flag),),
    torch_name="nn.functional.instance_norm",
    samples=lambda: (
        Sample((TensorSpec((2, 3, 4)), TensorSpec((3,)), TensorSpec((3,)))),
        Sample((TensorSpec((2, 3, 4, 5)), None, None), {"eps": 0.1}),
        Sample((TensorSpec((2, 2, 2, 3)), TensorSpec((2,)), None)),
        Sample((TensorSpec((2, 3, 4), contiguous=False), None, None)),
    ),
)
