"""Images and rows at another resolution, by the nearest elements or between them."""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Final

from ...ir.declaration import attribute_kinds as kinds
from ...ir.dims import ONE, Dim
from ...ir.op import (
    Clash,
    Layouts,
    Op,
    RuleCall,
    Sample,
    ShapeBehaviour,
    TensorSpec,
    attribute,
    operand,
)
from ...ir.rules import floating
from ...ir.types import TensorType, Type, float32, int64, show
from ..declare import composite
from ..primitive import arithmetic, create, gathering, math
from ..shared.window import check_count

if TYPE_CHECKING:
    from ..builder import Value

_RANKS: Final = {"nearest": (3, 4, 5), "linear": (3,), "bilinear": (4,), "trilinear": (5,)}
"""The ranks of the tensors that a mode takes, batch and channels included."""

_FINEST: Final = 1 << 10
"""A scale whose denominator is larger has no sizes that are known before the program runs."""


def _per_dim(values: tuple[Any, ...], count: int) -> tuple[Any, ...]:
    return values * count if len(values) == 1 else values


def _sizes(old: tuple[Dim, ...], size: Any, scale_factor: Any) -> tuple[Dim, ...]:
    """Return the sizes of the result. Raises Clash."""
    if (size is None) == (scale_factor is None):
        raise Clash("`interpolate` takes either `size` or `scale_factor`")
    given: tuple[Any, ...] = _per_dim(scale_factor if size is None else size, len(old))
    if len(given) != len(old):
        raise Clash(f"`interpolate` takes one number or {len(old)}, not {len(given)}")
    if size is not None:
        return tuple(map(Dim.of, given))
    return tuple(_scaled(n, factor) for n, factor in zip(old, given, strict=True))


def _scaled(size: Dim, factor: float) -> Dim:
    if size.constant is not None:
        return Dim.of(int(size.constant * factor))
    exact = Fraction(factor)
    if exact.denominator > _FINEST:
        raise Clash(f"`interpolate` cannot scale the size {size} by {factor}: pass `size`")
    return size * exact.numerator // exact.denominator


def _type(call: RuleCall) -> Type:
    source, mode = floating(call, 0), call.attrs["mode"]
    if source.rank not in _RANKS[mode]:
        wanted = " or ".join(map(str, _RANKS[mode]))
        call.clash(f"`interpolate` by {mode} takes {wanted} dimensions, not {show(source)}", 0)
    if mode == "nearest" and call.attrs["align_corners"] is not None:
        call.clash("`interpolate` by nearest takes no `align_corners`", 0)
    sizes = _sizes(source.shape[2:], call.attrs["size"], call.attrs["scale_factor"])
    for old, new in zip(source.shape[2:], sizes, strict=True):
        check_count(call, new, old, 1)
    return TensorType((*source.shape[:2], *sizes), source.dtype)


def _ratio(x: Value, have: Dim, want: Dim, dtype: Any) -> Value | float:
    """Return one size over another in a dtype."""
    if have.constant is not None and want.constant:
        return have.constant / want.constant
    return x.builder.size(have).cast(dtype) / x.builder.size(want).cast(dtype)


def _nearest(x: Value, dim: int, want: Dim, factor: float | None) -> Value:
    """Return the elements at or before the places of a finer or coarser row."""
    have, builder = x.shape[dim], x.builder
    places = builder.call(create.arange, (), {"end": want}).cast(float32)
    scale = _ratio(x, have, want, float32) if factor is None else 1.0 / factor
    below = math.floor(places * scale).cast(int64)
    return gathering.index_select(x, arithmetic.minimum(below, builder.size(have) - 1), dim=dim)


def _between(x: Value, dim: int, want: Dim, factor: float | None, *, align: bool) -> Value:
    """Return the weighted means of the two elements next to the places of another row."""
    have, builder = x.shape[dim], x.builder
    places = builder.call(create.arange, (), {"end": want}).cast(x.dtype)
    if align:
        at = places * _ratio(x, have - 1, (want - 1).at_least(ONE), x.dtype)
    else:
        scale = _ratio(x, have, want, x.dtype) if factor is None else 1.0 / factor
        at = arithmetic.maximum((places + 0.5) * scale - 0.5, 0.0)
    last = builder.size(have) - 1
    low = arithmetic.minimum(math.floor(at).cast(int64), last)
    high = arithmetic.minimum(low + 1, last)
    share = (at - low.cast(x.dtype)).reshape(*(want if i == dim else ONE for i in range(x.rank)))
    before, after = (gathering.index_select(x, i, dim=dim) for i in (low, high))
    return before * (1.0 - share) + after * share


def _resampled(
    x: Value,
    *,
    size: Any,
    scale_factor: Any,
    mode: str,
    align_corners: bool | None,
    recompute_scale_factor: bool | None,
) -> Value:
    count = x.rank - 2
    factors: tuple[float | None, ...] = (None,) * count
    if scale_factor is not None and not recompute_scale_factor:
        factors = _per_dim(scale_factor, count)
    sizes = _sizes(x.shape[2:], size, scale_factor)
    for dim, (want, factor) in enumerate(zip(sizes, factors, strict=True), start=2):
        if mode == "nearest":
            x = _nearest(x, dim, want, factor)
        else:
            x = _between(x, dim, want, factor, align=bool(align_corners))
    return x


def _interpolate(torch: Any, x: Any, size: Any, scale: Any, mode: str, *flags: Any) -> Any:
    size, scale = (v and _per_dim(v, x.dim() - 2) for v in (size, scale))
    return torch.nn.functional.interpolate(x, size, scale, mode, *flags)


def _samples() -> Iterable[Sample]:
    image = TensorSpec((2, 3, 4, 5))
    for attrs in ({"size": (7, 3)}, {"scale_factor": 2.0}, {"scale_factor": (1.5, 0.5)}):
        yield Sample((image,), attrs)
        yield Sample((image,), {**attrs, "mode": "bilinear"})
    yield Sample((image,), {"size": (7, 3), "mode": "bilinear", "align_corners": True})
    yield Sample((image,), {"size": 1, "mode": "bilinear", "align_corners": True})
    yield Sample((image,), {"scale_factor": 1.7, "recompute_scale_factor": True})
    yield Sample((TensorSpec((2, 3, 5)),), {"size": 8, "mode": "linear"})
    yield Sample((TensorSpec((2, 3, 5)),), {"scale_factor": 0.4})
    yield Sample((TensorSpec((1, 2, 3, 2, 3)),), {"size": (2, 3, 4), "mode": "trilinear"})
    yield Sample((TensorSpec((0, 3, 4, 5)),), {"size": (2, 2)})
    yield Sample((TensorSpec((2, 3, 4, 5), contiguous=False),), {"size": 6, "mode": "bilinear"})


interpolate: Final[Op] = composite(
    name="interpolate",
    doc="Images, rows or volumes at another size, or scaled by a factor, by the nearest elements "
    "or linearly between them.",
    params=(
        operand("input"),
        attribute("size", None, kinds.optional(kinds.at_least(1, kinds.sizes))),
        attribute("scale_factor", None, kinds.optional(kinds.reals)),
        attribute("mode", "nearest", kinds.word(*_RANKS)),
        attribute("align_corners", None, kinds.optional(kinds.flag)),
        attribute("recompute_scale_factor", None, kinds.optional(kinds.flag)),
    ),
    type_rule=_type,
    body=_resampled,
    torch=_interpolate,
    torch_name="nn.functional.interpolate",
    shape=ShapeBehaviour.FEATURE_BATCHED,
    layouts=Layouts.IMAGES,
    samples=_samples,
)
