"""The patches of images under a sliding window, and their sum back into images."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final

from ...ir.declaration import attribute_kinds as kinds
from ...ir.dims import Dim, product
from ...ir.op import (
    Library,
    Linear,
    Op,
    Pullback,
    RuleCall,
    Sample,
    ShapeBehaviour,
    TensorSpec,
    attribute,
    operand,
)
from ...ir.rules import floating
from ...ir.types import TensorType, Type, show
from ..shared.window import check_count, window_count

_WINDOW: Final = (
    attribute("kernel_size", convert=kinds.at_least(1, kinds.pair)),
    attribute("dilation", 1, kinds.at_least(1, kinds.pair)),
    attribute("padding", 0, kinds.at_least(0, kinds.pair)),
    attribute("stride", 1, kinds.at_least(1, kinds.pair)),
)


def _of_rank(call: RuleCall, rank: int, layout: str) -> TensorType:
    """Return the type of the operand, with a batch dim or without."""
    source = floating(call, 0)
    if source.rank not in (rank, rank - 1):
        call.clash(f"`{call.op.name}` takes a tensor {layout}, not {show(source)}", 0)
    return source


def _places(call: RuleCall, sizes: Sequence[Dim]) -> Dim:
    """Return the number of places of the window over images of a size."""
    given = (call.attrs[n] for n in ("kernel_size", "stride", "padding", "dilation"))
    return product(
        tuple(
            check_count(call, window_count(size, k, s, 2 * p, d), size, k)
            for size, k, s, p, d in zip(sizes, *given, strict=True)
        )
    )


def _unfold_type(call: RuleCall) -> Type:
    source = _of_rank(call, 4, "(batch, channels, height, width)")
    lead, channels, sizes = source.shape[:-3], source.shape[-3], source.shape[-2:]
    rows = channels * product(tuple(map(Dim.of, call.attrs["kernel_size"])))
    return TensorType((*lead, rows, _places(call, sizes)), source.dtype)


def _fold_type(call: RuleCall) -> Type:
    source = _of_rank(call, 3, "(batch, channels times window, places)")
    rows, places = (call.solver.resolve_dim(d) for d in source.shape[-2:])
    area = product(tuple(map(Dim.of, call.attrs["kernel_size"])))
    channels = rows.exact_quotient(area) or rows // area
    call.unify_dims(rows, channels * area, 0, f"`fold` cannot split {rows} rows by a window")
    sizes = tuple(map(Dim.of, call.attrs["output_size"]))
    wanted = _places(call, sizes)
    message = f"`fold` to {sizes[0]} by {sizes[1]} takes {wanted} places, not {places}"
    call.unify_dims(places, wanted, 0, message)
    return TensorType((*source.shape[:-2], channels, *sizes), source.dtype)


def _window(p: Pullback) -> dict[str, Any]:
    return {param.name: p.attrs[param.name] for param in _WINDOW}


def _image_samples() -> Iterable[Sample]:
    image = TensorSpec((2, 3, 5, 4))
    yield Sample((image,), {"kernel_size": 2})
    yield Sample((image,), {"kernel_size": (3, 2), "padding": (1, 0), "stride": (2, 1)})
    yield Sample((image,), {"kernel_size": 2, "dilation": 2})
    yield Sample((TensorSpec((3, 5, 4)),), {"kernel_size": 2})
    yield Sample((TensorSpec((0, 3, 5, 4)),), {"kernel_size": 2})
    yield Sample((TensorSpec((2, 3, 5, 4), contiguous=False),), {"kernel_size": 2})


unfold: Final = Op(
    name="unfold",
    doc="The elements under each window as a column: (batch, channels times window, places).",
    params=(operand("input"), *_WINDOW),
    type_rule=_unfold_type,
    shape=ShapeBehaviour.FEATURE_BATCHED,
    lowering=Library(lambda torch, x, *window: torch.nn.functional.unfold(x, *window)),
    push=Linear(("input",)),
    grad=lambda p: (fold(p.g, output_size=p.args[0].shape[-2:], **_window(p)),),
    torch_name="nn.functional.unfold",
    samples=_image_samples,
)


fold: Final = Op(
    name="fold",
    doc="Images from the elements under each window, added where windows overlap.",
    params=(operand("input"), attribute("output_size", convert=kinds.pair), *_WINDOW),
    type_rule=_fold_type,
    shape=ShapeBehaviour.FEATURE_BATCHED,
    lowering=Library(
        lambda torch, x, size, *window: torch.nn.functional.fold(x, size, *window), is_fresh=True
    ),
    push=Linear(("input",)),
    grad=lambda p: (unfold(p.g, **_window(p)),),
    torch_name="nn.functional.fold",
    samples=lambda: (
        Sample((TensorSpec((2, 12, 12)),), {"output_size": (5, 4), "kernel_size": 2}),
        Sample(
            (TensorSpec((2, 18, 9)),),
            {"output_size": (5, 4), "kernel_size": (3, 2), "padding": (1, 0), "stride": (2, 1)},
        ),
        Sample((TensorSpec((4, 6)),), {"output_size": (5, 4), "kernel_size": 2, "dilation": 2}),
        Sample((TensorSpec((0, 4, 12)),), {"output_size": (5, 4), "kernel_size": 2}),
        Sample(
            (TensorSpec((2, 4, 12), contiguous=False),), {"output_size": (5, 4), "kernel_size": 2}
        ),
    ),
)
