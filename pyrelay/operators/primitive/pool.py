"""Pooling: the largest or the average element under a sliding window."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from ...ir.declaration import attribute_kinds as kinds
from ...ir.dims import ONE, Dim
from ...ir.op import (
    Elementwise,
    Expansion,
    Layouts,
    Library,
    Linear,
    MadeOf,
    Method,
    Op,
    Precision,
    Pullback,
    RuleCall,
    Sample,
    ShapeBehaviour,
    TensorSpec,
    attribute,
    operand,
)
from ...ir.rules import INDEX_DTYPE, expect, floating, integral
from ...ir.types import TensorType, TupleType, Type, show
from ..shared import pooling
from ..shared.window import known, pooled
from . import gathering, reduce, view

if TYPE_CHECKING:
    from ..builder import Value


def divisor(value: Any) -> Any:
    """Return the divisor of the sums of a pool. Raises TypeError."""
    found = kinds.size(value)
    if found == 0:
        raise TypeError("a sum is divided by it")
    return found


def _image(call: RuleCall) -> TensorType:
    """Return the type of the operand, (batch, channels, height, width) or without the batch."""
    ty = floating(call, 0)
    if ty.rank in (3, 4):
        return ty
    return call.clash(
        f"`{call.op.name}` takes a tensor (batch, channels, height, width), not {show(ty)}",
        0,
        help="add a batch dim: relay.unsqueeze(x, dim=0)" if ty.rank == 2 else None,
    )


def _max_pool_type(call: RuleCall) -> Type:
    return TensorType(pooled(call, _image(call).shape, 2), call.tensor(0).dtype)


def _attrs(p: Pullback, *names: str) -> dict[str, Any]:
    return {name: p.attrs[name] for name in names}


_MAX_ATTRS: Final = ("kernel_size", "stride", "padding", "dilation", "ceil_mode")


def _max_unpool(g: Value, places: Value, p: Pullback) -> Value:
    return max_pool2d_backward(g, p.args[0], places, **_attrs(p, *_MAX_ATTRS))


def _max_samples() -> Iterable[Sample]:
    image = TensorSpec((2, 3, 6, 5))
    yield Sample((image,), {"kernel_size": 2})
    yield Sample((image,), {"kernel_size": (3, 2), "stride": (1, 2), "padding": 1})
    yield Sample((image,), {"kernel_size": 2, "dilation": 2, "stride": 1})
    yield Sample((image,), {"kernel_size": 2, "ceil_mode": True})
    yield Sample((image,), {"kernel_size": 3, "stride": 2, "padding": 1, "ceil_mode": True})
    yield Sample((TensorSpec((3, 6, 5)),), {"kernel_size": 2})
    yield Sample((TensorSpec((0, 3, 6, 5)),), {"kernel_size": 2})
    yield Sample((TensorSpec((2, 3, 6, 5), contiguous=False),), {"kernel_size": 2})


def _max_pool2d(torch: Any, x: Any, *attrs: Any) -> Any:
    kernel, stride, *rest = attrs
    return torch.max_pool2d(x, kernel, stride or (), *rest)


def _fits_last(types: Sequence[Type], _: Mapping[str, Any]) -> bool:
    source = types[0]
    # Of one channel both orders are the same.
    return isinstance(source, TensorType) and source.rank == 4 and source.shape[1].constant != 1


def _channels_last(torch: Any, x: Any, *attrs: Any) -> Any:
    return _max_pool2d(torch, x.contiguous(memory_format=torch.channels_last), *attrs).contiguous()


_WINDOW: Final = (
    attribute("kernel_size", convert=kinds.at_least(1, kinds.pair)),
    attribute("stride", None, kinds.optional(kinds.at_least(1, kinds.pair))),
    attribute("padding", 0, kinds.at_least(0, kinds.pair)),
    attribute("dilation", 1, kinds.at_least(1, kinds.pair)),
    attribute("ceil_mode", False, kinds.flag),
)


max_pool2d: Final = Op(
    name="max_pool2d",
    doc="The largest element under each window; of equal ones the first gets the gradient.",
    params=(operand("input"), *_WINDOW),
    type_rule=_max_pool_type,
    shape=ShapeBehaviour.FEATURE_BATCHED,
    precision=Precision.ANY,
    layouts=Layouts.IMAGES,
    lowering=Library(
        _max_pool2d,
        is_fresh=True,
        fused=Elementwise(pooling.largest),
        methods=(Method("channels_last", _channels_last, _fits_last),),
    ),
    grad=Expansion(lambda args, attrs: max_pool2d_with_indices(*args, **attrs)[0]),
    torch_name="nn.functional.max_pool2d",
    samples=_max_samples,
)


def _with_indices_type(call: RuleCall) -> Type:
    shape = pooled(call, _image(call).shape, 2)
    places = TensorType(shape, call.attrs["index_dtype"])
    return TupleType((TensorType(shape, call.tensor(0).dtype), places))


def _max_pool2d_with_indices(torch: Any, x: Any, *attrs: Any) -> Any:
    *window, dtype = attrs
    found, places = torch.nn.functional.max_pool2d_with_indices(x, *window)
    return found, places.to(dtype)


def _channels_last_with_indices(torch: Any, x: Any, *attrs: Any) -> Any:
    last = x.contiguous(memory_format=torch.channels_last)
    found = _max_pool2d_with_indices(torch, last, *attrs)
    return found[0].contiguous(), found[1].contiguous()


max_pool2d_with_indices: Final = Op(
    name="max_pool2d_with_indices",
    doc="The largest element under each window, and its position in the flattened image.",
    params=(operand("input"), *_WINDOW, attribute("index_dtype", INDEX_DTYPE, kinds.dtype)),
    type_rule=_with_indices_type,
    shape=ShapeBehaviour.FEATURE_BATCHED,
    layouts=Layouts.IMAGES,
    lowering=Library(
        _max_pool2d_with_indices,
        is_fresh=True,
        fused=Elementwise(pooling.largest_and_where),
        methods=(Method("channels_last", _channels_last_with_indices, _fits_last),),
    ),
    grad=lambda p: (_max_unpool(p.g[0], p.out[1], p),),
    torch_name="nn.functional.max_pool2d_with_indices",
    samples=_max_samples,
)


def _max_backward_type(call: RuleCall) -> Type:
    source = floating(call, 1)
    places = integral(call, 2)
    message = "`max_pool2d_backward` takes a cotangent per window"
    expect(call, 0, TensorType(places.shape, source.dtype), message)
    return source


def _max_pool2d_backward(torch: Any, g: Any, x: Any, places: Any, *attrs: Any) -> Any:
    kernel, stride, padding, dilation, ceil_mode = attrs
    return torch.ops.aten.max_pool2d_with_indices_backward(
        g, x, kernel, stride or (), padding, dilation, ceil_mode, places.to(torch.int64)
    )


def _max_pool2d_backward_grad(p: Pullback) -> tuple[Value, None, None]:
    places = p.args[2]
    # The derivative of a sum over places is a read at these places.
    flat = view.flatten(p.g, start_dim=-2)
    read = gathering.gather(flat, view.flatten(places, start_dim=-2), dim=-1)
    return read.reshape(*places.shape), None, None


def _max_backward_sample(
    *size: int, window: tuple[int, ...], strided: bool = False, dtype: str = "int64"
) -> Sample:
    g = TensorSpec((*size[:-2], *window), contiguous=not strided)
    places = TensorSpec((*size[:-2], *window), dtype, 0, size[-1] * size[-2])
    stride = 1 if window == (size[-2] - 1, size[-1] - 1) else 2
    return Sample((g, TensorSpec(size), places), {"kernel_size": 2, "stride": stride})


max_pool2d_backward: Final = Op(
    name="max_pool2d_backward",
    doc="The cotangent of the input of `max_pool2d`: each element added where it came from; of "
    "the input only the shape matters.",
    params=(operand("grad"), operand("input"), operand("indices"), *_WINDOW),
    type_rule=_max_backward_type,
    shape=ShapeBehaviour.FIXED,
    lowering=Library(_max_pool2d_backward, is_fresh=True, fused=Elementwise(pooling.to_largest)),
    push=Linear(("grad",)),
    grad=_max_pool2d_backward_grad,
    samples=lambda: (
        _max_backward_sample(2, 3, 6, 4, window=(3, 2)),
        _max_backward_sample(3, 6, 5, window=(3, 2)),
        _max_backward_sample(2, 3, 6, 5, window=(5, 4), strided=True),
        _max_backward_sample(0, 3, 6, 4, window=(3, 2)),
        _max_backward_sample(2, 3, 6, 4, window=(3, 2), dtype="int32"),
    ),
)


def _backward_type(call: RuleCall) -> Type:
    return TensorType(call.attrs["input_size"], floating(call, 0).dtype)


_AVG_ATTRS: Final = (
    "kernel_size",
    "stride",
    "padding",
    "ceil_mode",
    "count_include_pad",
    "divisor_override",
)


_AVERAGE: Final = (
    attribute("kernel_size", convert=kinds.at_least(1, kinds.pair)),
    attribute("stride", None, kinds.optional(kinds.at_least(1, kinds.pair))),
    attribute("padding", 0, kinds.at_least(0, kinds.pair)),
    attribute("ceil_mode", False, kinds.flag),
    attribute("count_include_pad", True, kinds.flag),
    attribute("divisor_override", None, kinds.optional(divisor)),
)


def _avg_pool2d(torch: Any, x: Any, *attrs: Any) -> Any:
    return torch.nn.functional.avg_pool2d(x, *attrs)


avg_pool2d: Final = Op(
    name="avg_pool2d",
    doc="The average of the elements under each window.",
    params=(operand("input"), *_AVERAGE),
    type_rule=_max_pool_type,
    shape=ShapeBehaviour.FEATURE_BATCHED,
    layouts=Layouts.IMAGES,
    lowering=Library(_avg_pool2d, fused=Elementwise(pooling.average)),
    push=Linear(("input",)),
    grad=lambda p: (
        avg_pool2d_backward(p.g, input_size=p.args[0].shape, **_attrs(p, *_AVG_ATTRS)),
    ),
    torch_name="nn.functional.avg_pool2d",
    samples=lambda: (
        Sample((TensorSpec((2, 3, 6, 5)),), {"kernel_size": 2}),
        Sample((TensorSpec((2, 3, 6, 5)),), {"kernel_size": 3, "stride": (1, 2), "padding": 1}),
        Sample(
            (TensorSpec((2, 3, 6, 5)),),
            {"kernel_size": 2, "padding": 1, "count_include_pad": False, "ceil_mode": True},
        ),
        Sample((TensorSpec((2, 3, 6, 5)),), {"kernel_size": 2, "divisor_override": 3}),
        Sample((TensorSpec((3, 6, 5)),), {"kernel_size": 2}),
        Sample((TensorSpec((0, 3, 6, 5)),), {"kernel_size": 2}),
        Sample((TensorSpec((2, 3, 6, 5), contiguous=False),), {"kernel_size": 2}),
    ),
)


def _avg_pool2d_backward(torch: Any, g: Any, input_size: tuple[int, ...], *attrs: Any) -> Any:
    kernel, stride, *rest = attrs
    blank = g.new_empty(1).expand(input_size)
    return torch.ops.aten.avg_pool2d_backward(g.contiguous(), blank, kernel, stride or (), *rest)


avg_pool2d_backward: Final = Op(
    name="avg_pool2d_backward",
    doc="The cotangent of the input of `avg_pool2d` from that of its result.",
    params=(
        operand("grad"),
        attribute("input_size", convert=kinds.shape),
        *_AVERAGE,
    ),
    type_rule=_backward_type,
    shape=ShapeBehaviour.FIXED,
    lowering=Library(_avg_pool2d_backward, is_fresh=True, fused=Elementwise(pooling.to_average)),
    push=Linear(("grad",)),
    grad=lambda p: (avg_pool2d(p.g, **_attrs(p, *_AVG_ATTRS)),),
    samples=lambda: (
        Sample((TensorSpec((2, 3, 3, 2)),), {"input_size": (2, 3, 6, 5), "kernel_size": 2}),
        Sample(
            (TensorSpec((3, 4, 2), contiguous=False),),
            {"input_size": (3, 6, 5), "kernel_size": 3, "stride": (1, 2)},
        ),
        Sample((TensorSpec((0, 3, 3, 2)),), {"input_size": (0, 3, 6, 5), "kernel_size": 2}),
    ),
)


_OUTPUT_SIZE: Final = kinds.each_of(2, kinds.optional(kinds.size))


def _adaptive_type(call: RuleCall) -> Type:
    source = _image(call)
    wanted = call.attrs["output_size"]
    for size in source.shape[-2:]:
        known(call, size, "the height and width of its input", 0)
    sizes = (
        size if want is None else Dim.of(want)
        for size, want in zip(source.shape[-2:], wanted, strict=True)
    )
    return TensorType((*source.shape[:-2], *sizes), source.dtype)


def _adaptive(torch: Any, x: Any, output_size: Any) -> Any:
    return torch.nn.functional.adaptive_avg_pool2d(x, output_size)


def _blocks(
    shape: tuple[Dim, ...], output_size: tuple[Any, ...]
) -> tuple[tuple[Dim, ...], int] | None:
    """Return the shape with height and width cut into blocks of one size, each a dim behind that of
    the blocks, and the size of a block; None where there are no such blocks."""
    found: list[Dim] = []
    area = 1
    for size, wanted in zip(shape[-2:], output_size, strict=True):
        whole = size.constant
        count = Dim.of(size if wanted is None else wanted).constant
        if not whole or not count or whole % count:
            return None
        found += (Dim.of(count), Dim.of(whole // count))
        area *= whole // count
    return (*shape[:-2], *found), area


def _adaptive_code(args: tuple[Value, ...], attrs: Mapping[str, Any]) -> Value | None:
    (x,) = args
    blocks = _blocks(x.shape, attrs["output_size"])
    if blocks is None:
        return None
    return reduce.mean(x.reshape(*blocks[0]), dim=(-3, -1))


def _adaptive_backward_code(args: tuple[Value, ...], attrs: Mapping[str, Any]) -> Value | None:
    (g,), shape = args, attrs["input_size"]
    blocks = _blocks(shape, attrs["output_size"])
    if blocks is None:
        return None
    share = g / blocks[1]
    rows, _, columns, _ = blocks[0][-4:]
    each = share.reshape(*shape[:-2], rows, ONE, columns, ONE).expand(blocks[0])
    return each.reshape(*shape)


adaptive_avg_pool2d: Final = Op(
    name="adaptive_avg_pool2d",
    doc="Averages over windows chosen to give a result of `output_size`; None keeps a size.",
    params=(operand("input"), attribute("output_size", convert=_OUTPUT_SIZE)),
    type_rule=_adaptive_type,
    shape=ShapeBehaviour.FEATURE_BATCHED,
    layouts=Layouts.IMAGES,
    lowering=Library(_adaptive, fused=MadeOf(_adaptive_code)),
    push=Linear(("input",)),
    grad=lambda p: (
        adaptive_avg_pool2d_backward(
            p.g, input_size=p.args[0].shape, output_size=p.attrs["output_size"]
        ),
    ),
    torch_name="nn.functional.adaptive_avg_pool2d",
    samples=lambda: (
        Sample((TensorSpec((2, 3, 6, 5)),), {"output_size": 1}),
        Sample((TensorSpec((2, 3, 6, 5)),), {"output_size": (4, 3)}),
        Sample((TensorSpec((2, 3, 6, 5)),), {"output_size": (None, 7)}),
        Sample((TensorSpec((3, 6, 5)),), {"output_size": 2}),
        Sample((TensorSpec((0, 3, 6, 5)),), {"output_size": 2}),
        Sample((TensorSpec((2, 3, 6, 5), contiguous=False),), {"output_size": 2}),
    ),
)


def _adaptive_backward(torch: Any, g: Any, input_size: tuple[int, ...], _: Any) -> Any:
    blank = g.new_empty(1).expand(input_size)
    return torch.ops.aten._adaptive_avg_pool2d_backward(g.contiguous(), blank)  # noqa: SLF001


adaptive_avg_pool2d_backward: Final = Op(
    name="adaptive_avg_pool2d_backward",
    doc="The cotangent of the input of `adaptive_avg_pool2d` from that of its result.",
    params=(
        operand("grad"),
        attribute("input_size", convert=kinds.shape),
        attribute("output_size", convert=_OUTPUT_SIZE),
    ),
    type_rule=_backward_type,
    shape=ShapeBehaviour.FIXED,
    lowering=Library(_adaptive_backward, fused=MadeOf(_adaptive_backward_code)),
    push=Linear(("grad",)),
    grad=lambda p: (adaptive_avg_pool2d(p.g, output_size=p.attrs["output_size"]),),
    samples=lambda: (
        Sample((TensorSpec((2, 3, 4, 3)),), {"input_size": (2, 3, 6, 5), "output_size": (4, 3)}),
        Sample(
            (TensorSpec((3, 2, 2), contiguous=False),), {"input_size": (3, 6, 5), "output_size": 2}
        ),
        Sample((TensorSpec((0, 3, 1, 1)),), {"input_size": (0, 3, 6, 5), "output_size": 1}),
    ),
)
