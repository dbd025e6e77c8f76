"""Largest and smallest elements along dims, and where they are.

As in torch, `max` and `min` over one dim give values and positions, and the derivative goes to the
element chosen; over all elements, and for `amax` and `amin`, equal elements share it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, Final

from ...ir.op import (
    NoGradient,
    Op,
    Pullback,
    Reduction,
    RuleCall,
    Sample,
    TensorSpec,
    operand,
)
from ...ir.rules import axes, axis, drop_axes
from ...ir.types import AnyDType, DType, TensorType, TupleType, Type, bool_, int64, show
from ..shared.operands import on_tensor
from ..shared.reducing import (
    OVER_DIM,
    OVER_DIMS,
    float_dtype,
    float_reductions,
    integer_reductions,
    kept,
    reduced_axes,
    reduced_type,
)
from ..shared.samples import filled
from .compare import cast, equal, isnan, logical_and, logical_or, where
from .gathering import place

if TYPE_CHECKING:
    from ..builder import Value


def _not_empty(call: RuleCall, ty: TensorType, gone: Sequence[int]) -> None:
    if any(call.solver.resolve_dim(ty.shape[d]).constant == 0 for d in gone):
        call.clash(f"`{call.op.name}` has no element to choose in {show(ty)}", 0)


def _chosen_dtype(call: RuleCall, dtype: AnyDType) -> AnyDType:
    ty = call.tensor(0)
    _not_empty(call, ty, axes(call, call.attrs["dim"], ty.rank))
    return dtype


def _shared_grad(p: Pullback) -> Sequence[Value | None]:
    """Send the cotangent to all elements equal to the one chosen, in equal shares.

    A row with NaN has no such element, and all its derivatives are NaN, as in torch.
    """
    x, dims = p.args[0], p.attrs["dim"]
    reached = cast(equal(x, kept(p.out, x, dims)), dtype=x.dtype)
    sharing = reached.sum(reduced_axes(dims, x.rank), keepdim=True)
    return (kept(p.g, x, dims) / sharing * reached,)


def _whole_grad(p: Pullback) -> Sequence[Value | None]:
    """Send the cotangent to all elements that are the one chosen, NaN or not, in equal shares."""
    x, top = p.args[0], kept(p.out, p.args[0], None)
    reached = logical_or(equal(x, top), logical_and(isnan(x), isnan(top)))
    sharing = cast(reached, dtype=x.dtype).sum(reduced_axes(None, x.rank), keepdim=True)
    return (where(reached, kept(p.g, x, None) / sharing, 0.0),)


def _amax_samples() -> Iterable[Sample]:
    yield from float_reductions()
    yield from integer_reductions()
    yield Sample((filled(1.0, 3, 4),), {"dim": 1}, smooth=False)
    yield Sample((filled(1.0, 3, 4),), smooth=False)


def _extreme(*, name: str, doc: str, combine: str, body: Callable[..., Any]) -> Op:
    """Return a reduction to the largest or smallest element, over any dims."""
    return Op(
        name=name,
        doc=doc,
        params=(operand("input"), *OVER_DIMS),
        type_rule=reduced_type(_chosen_dtype),
        lowering=Reduction(combine, on_tensor(body)),
        grad=_shared_grad,
        samples=_amax_samples,
    )


def _peak(torch: Any, x: Any, dim: Any, keepdim: bool) -> Any:
    if x.numel():
        return torch.amax(x, () if dim is None else dim, keepdim)
    return x.sum(dim, keepdim) - torch.inf


amax: Final = _extreme(
    name="amax",
    doc="Largest element over dims; equal ones share the derivative.",
    combine="max",
    body=lambda torch, x, dim, keepdim: torch.amax(x, () if dim is None else dim, keepdim),
)

amin: Final = _extreme(
    name="amin",
    doc="Smallest element over dims; equal ones share the derivative.",
    combine="min",
    body=lambda torch, x, dim, keepdim: torch.amin(x, () if dim is None else dim, keepdim),
)


peak: Final = Op(
    name="peak",
    doc="Largest element over dims, minus infinity for none: what keeps exponentials in range.",
    params=amax.params,
    type_rule=reduced_type(float_dtype),
    lowering=Reduction("max", _peak),
    grad=NoGradient("what it is taken off from comes out the same for any other number"),
    samples=lambda: (*float_reductions(), Sample((TensorSpec((3, 0)),), {"dim": 1})),
)


def _pair_type(call: RuleCall) -> Type:
    values = reduced_type(_chosen_dtype)(call)
    if call.attrs["dim"] is None:
        return values
    assert isinstance(values, TensorType)
    return TupleType((values, TensorType(values.shape, int64)))


def _pair_grad(p: Pullback) -> Sequence[Value | None]:
    dim = p.attrs["dim"]
    if dim is None:
        return _whole_grad(p)
    x = p.args[0]
    return (place(kept(p.g[0], x, (dim,)), kept(p.out[1], x, (dim,)), x, dim),)


def _pair_samples() -> Iterable[Sample]:
    for sample in (*float_reductions(), *integer_reductions()):
        if not isinstance(sample.attrs.get("dim"), tuple):
            yield sample
    yield Sample((filled(1.0, 3, 4),), {"dim": 1}, smooth=False)
    yield Sample((filled(1.0, 3, 4),), smooth=False)


def _extreme_pair(*, name: str, doc: str, combine: str, whole: Op, body: Callable[..., Any]) -> Op:
    """Return the extreme of all elements, as `whole` does, or with its position along one dim."""

    def lowered(torch: Any, x: Any, dim: int | None, keepdim: bool) -> Any:
        if dim is None:
            assert isinstance(whole.lowering, Reduction)
            return whole.lowering.body(torch, x, None, keepdim)
        return tuple(body(torch, x, dim, keepdim))

    return Op(
        name=name,
        doc=doc,
        params=(operand("input"), *OVER_DIM),
        type_rule=_pair_type,
        lowering=Reduction(combine, on_tensor(lowered)),
        grad=_pair_grad,
        samples=_pair_samples,
    )


max_: Final = _extreme_pair(
    name="max",
    doc="Largest element of all; with `dim`, the largest along it and their positions.",
    combine="max",
    whole=amax,
    body=lambda torch, x, dim, keepdim: torch.max(x, dim, keepdim),
)

min_: Final = _extreme_pair(
    name="min",
    doc="Smallest element of all; with `dim`, the smallest along it and their positions.",
    combine="min",
    whole=amin,
    body=lambda torch, x, dim, keepdim: torch.min(x, dim, keepdim),
)


def _position_type(call: RuleCall) -> Type:
    ty, dim = call.tensor(0), call.attrs["dim"]
    if isinstance(ty.dtype, DType) and ty.dtype == bool_:
        call.clash(f"`{call.op.name}` takes numbers, not Bool", 0)
    gone = range(ty.rank) if dim is None else (axis(call, dim, ty.rank),)
    _not_empty(call, ty, gone)
    return TensorType(drop_axes(ty.shape, gone, keepdim=call.attrs["keepdim"]), int64)


def _position(*, name: str, doc: str, body: Callable[..., Any]) -> Op:
    """Return the position of an extreme along one dim, or among all elements in order."""
    return Op(
        name=name,
        doc=doc,
        params=(operand("input"), *OVER_DIM),
        type_rule=_position_type,
        lowering=Reduction(name, on_tensor(body)),
        grad=NoGradient("a position"),
        samples=lambda: (s for s in _pair_samples() if s.operands != (TensorSpec((5,), "bool"),)),
    )


argmax: Final = _position(
    name="argmax",
    doc="Position of the largest element along `dim`, or among all elements in order.",
    body=lambda torch, x, dim, keepdim: torch.argmax(x, dim, keepdim),
)

argmin: Final = _position(
    name="argmin",
    doc="Position of the smallest element along `dim`, or among all elements in order.",
    body=lambda torch, x, dim, keepdim: torch.argmin(x, dim, keepdim),
)
