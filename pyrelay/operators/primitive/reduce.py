"""Sums, means, products and truth over some dims of a tensor, or over all."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, Final

from ...ir.declaration import attribute_kinds as kinds
from ...ir.dims import ONE, Dim, product
from ...ir.op import (
    Linear,
    MadeOf,
    NoGradient,
    Op,
    Promotion,
    Pullback,
    Reduction,
    RuleCall,
    Sample,
    ShapeBehaviour,
    TensorSpec,
    attribute,
    operand,
)
from ...ir.types import AnyDType, TensorType, Type, bool_, float32, float64, show
from ..shared.operands import on_tensor
from ..shared.reducing import (
    DTYPE,
    OVER_DIM,
    OVER_DIMS,
    accumulated_dtype,
    count,
    float_dtype,
    float_reductions,
    integer_reductions,
    kept,
    reduced_type,
    to_operand,
)
from ..shared.samples import filled
from .scan import recurrence

if TYPE_CHECKING:
    from ..builder import Value


def _bool_dtype(call: RuleCall, dtype: AnyDType) -> AnyDType:
    return bool_


def _sum_samples() -> Iterable[Sample]:
    yield from float_reductions()
    yield from integer_reductions()
    yield Sample((TensorSpec((0, 3)),))
    yield Sample((TensorSpec((0, 3)),), {"dim": 0, "keepdim": True})
    yield Sample((TensorSpec((3, 4)),), {"dim": 1, "dtype": float64})
    yield Sample((TensorSpec((3, 4), "int64", -5, 5),), {"dtype": float32})


def _sum_grad(p: Pullback) -> Sequence[Value | None]:
    x = p.args[0]
    return (to_operand(kept(p.g, x, p.attrs["dim"]).expand(x.shape), x),)


def _sum(torch: Any, x: Any, dim: Any, keepdim: bool, dtype: Any) -> Any:
    if dtype is not None:
        return x.sum(dim, keepdim, dtype=dtype)
    # Arguments that are not needed take a fifth of the time of a small sum.
    if keepdim:
        return x.sum(dim, keepdim)
    if dim is None:
        return x.sum()
    return x.sum(dim[0] if len(dim) == 1 else dim)


sum_: Final = Op(
    name="sum",
    doc="Sum of elements; 0 for none. Integers and bools are summed as int64.",
    params=(operand("input"), *OVER_DIMS, DTYPE),
    type_rule=reduced_type(accumulated_dtype),
    lowering=Reduction("add", on_tensor(_sum)),
    push=Linear(("input",)),
    grad=_sum_grad,
    samples=_sum_samples,
)


def _mean_grad(p: Pullback) -> Sequence[Value | None]:
    x, dims = p.args[0], p.attrs["dim"]
    share = kept(p.g, x, dims) / p.g.builder.size(count(x, dims))
    return (to_operand(share.expand(x.shape), x),)


def _mean(torch: Any, x: Any, dim: Any, keepdim: bool, dtype: Any) -> Any:
    return x.mean(dim, keepdim, dtype=dtype)


mean: Final = Op(
    name="mean",
    doc="Arithmetic mean of elements; integers and bools become float32 first.",
    params=(operand("input", promote=True), *OVER_DIMS, DTYPE),
    promotion=Promotion.FLOAT,
    type_rule=reduced_type(float_dtype),
    lowering=Reduction("mean", on_tensor(_mean)),
    push=Linear(("input",)),
    grad=_mean_grad,
    samples=lambda: (
        *float_reductions(),
        *integer_reductions(),
        Sample((TensorSpec((3, 4)),), {"dim": 1, "dtype": float64}),
    ),
)


def _prod_grad(p: Pullback) -> Sequence[Value | None]:
    # The product of the others, from both ends: exact where elements are 0, unlike out / x.
    x, dim = p.args[0], p.attrs["dim"]
    line = x.cast(p.out.dtype)
    line = line.reshape(product(x.shape)) if dim is None else line
    axis = 0 if dim is None else dim
    none = p.g.builder.zeros(line.tensor)
    before = recurrence(line, none, dim=axis, initial=1.0)
    after = recurrence(line, none, dim=axis, reverse=True, initial=1.0)
    others = (before * after).reshape(*x.shape)
    return (to_operand(kept(p.g, x, None if dim is None else (dim,)) * others, x),)


def _prod(torch: Any, x: Any, dim: int | None, keepdim: bool, dtype: Any) -> Any:
    if dim is not None:
        return x.prod(dim, keepdim, dtype=dtype)
    whole = x.prod(dtype=dtype)
    return whole.reshape((1,) * x.dim()) if keepdim else whole


def _prod_samples() -> Iterable[Sample]:
    yield from (s for s in float_reductions() if not isinstance(s.attrs.get("dim"), tuple))
    yield from integer_reductions()
    yield from (Sample((filled(0.0, n),)) for n in (1, 2, 3))
    yield Sample((filled(0.0, 2, 2),), {"dim": 1})
    yield Sample((TensorSpec((0, 3)),), {"dim": 0})
    yield Sample((TensorSpec((3, 4)),), {"dim": 1, "dtype": float64})


prod: Final = Op(
    name="prod",
    doc="Product of elements; 1 for none. Integers and bools are multiplied as int64.",
    params=(operand("input"), *OVER_DIM, DTYPE),
    type_rule=reduced_type(accumulated_dtype),
    lowering=Reduction("mul", on_tensor(_prod)),
    grad=_prod_grad,
    samples=_prod_samples,
)


def _truth(*, name: str, doc: str, combine: str, body: Callable[..., Any]) -> Op:
    """Return a reduction of truth values; a number is true unless it is 0."""
    return Op(
        name=name,
        doc=doc,
        params=(operand("input"), *OVER_DIMS),
        type_rule=reduced_type(_bool_dtype),
        lowering=Reduction(combine, on_tensor(body)),
        grad=NoGradient("a truth value"),
        samples=_truth_samples,
    )


def _truth_samples() -> Iterable[Sample]:
    for dim in (0, (0, -1), None):
        yield Sample((TensorSpec((2, 2, 3), "bool"),), {"dim": dim})
        yield Sample((TensorSpec((2, 2, 3), "bool"),), {"dim": dim, "keepdim": True})
    yield Sample((TensorSpec((0, 3), "bool"),))
    yield Sample((TensorSpec((), "bool"),))
    yield Sample((TensorSpec((2, 3), "int64", -1, 2),), {"dim": 1})
    yield Sample((TensorSpec((4, 3), contiguous=False),), {"dim": 1})


all_: Final = _truth(
    name="all",
    doc="Whether all elements are true; True for none.",
    combine="and",
    body=lambda torch, x, dim, keepdim: torch.all(x.bool(), dim, keepdim),
)

any_: Final = _truth(
    name="any",
    doc="Whether at least one element is true; False for none.",
    combine="or",
    body=lambda torch, x, dim, keepdim: torch.any(x.bool(), dim, keepdim),
)


def _sum_to_type(call: RuleCall) -> Type:
    ty, size = call.tensor(0), call.attrs["size"]
    if len(size) > ty.rank:
        call.clash(f"`sum_to` cannot add dims to {show(ty)}", 0)
    for have, want in zip(ty.shape[ty.rank - len(size) :], size, strict=True):
        if want != ONE:
            message = f"`sum_to` cannot make size {want} of {have} in {show(ty)}"
            call.unify_dims(have, want, 0, message)
    return TensorType(size, ty.dtype)


def _sum_to_code(x: Value, size: tuple[Dim, ...]) -> Value:
    lead = x.rank - len(size)
    pairs = enumerate(zip(x.shape[lead:], size, strict=True), lead)
    gone = (*range(lead), *(d for d, (have, want) in pairs if want == ONE != have))
    return sum_(x, dim=gone, dtype=x.dtype).reshape(*size) if gone else x.reshape(*size)


sum_to: Final = Op(
    name="sum_to",
    doc="Sum over the dims along which a tensor of shape `size` was broadcast to this one.",
    params=(operand("input"), attribute("size", convert=kinds.shape)),
    type_rule=_sum_to_type,
    shape=ShapeBehaviour.FIXED,
    lowering=Reduction(
        "add",
        on_tensor(lambda torch, x, size: x.sum_to_size(size)),
        is_fresh=False,
        fused=MadeOf(lambda args, attrs: _sum_to_code(args[0], attrs["size"])),
    ),
    push=Linear(("input",)),
    grad=lambda p: (p.g.expand(p.args[0].shape),),
    torch_name="Tensor.sum_to_size",
    samples=lambda: (
        Sample((TensorSpec((3, 4)),), {"size": (3, 1)}),
        Sample((TensorSpec((2, 3, 4)),), {"size": (4,)}),
        Sample((TensorSpec((2, 3, 4), contiguous=False),), {"size": (2, 1, 4)}),
        Sample((TensorSpec((2, 3)),), {"size": ()}),
        Sample((TensorSpec((2, 3)),), {"size": (2, 3)}),
        Sample((TensorSpec((0, 3)),), {"size": (1, 3)}),
        Sample((TensorSpec((2, 3), "int64", -5, 5),), {"size": (3,)}),
    ),
)
