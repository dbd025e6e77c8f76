"""Scans: running sums, products and linear recurrences along a dim."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, Final

from ...ir.declaration import attribute_kinds as kinds
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
from ...ir.rules import axis
from ...ir.types import Type, float32, float64, is_float
from ..shared.operands import on_tensor
from ..shared.reducing import accumulated_dtype, along_dim, to_operand
from ..shared.samples import filled
from .view import flip

if TYPE_CHECKING:
    from ..builder import Value


def _running_samples() -> Iterable[Sample]:
    yield Sample((TensorSpec((3, 4)),), {"dim": 0})
    yield Sample((TensorSpec((2, 3, 4)),), {"dim": -2})
    yield Sample((TensorSpec((4, 3), contiguous=False),), {"dim": 1})
    yield Sample((TensorSpec((0, 3)),), {"dim": 0})
    yield Sample((TensorSpec((2, 0)),), {"dim": 0})
    yield Sample((TensorSpec((1,)),), {"dim": 0})
    yield Sample((TensorSpec((3, 4), "int64", -5, 5),), {"dim": 1})
    yield Sample((TensorSpec((3,), "bool"),), {"dim": 0})
    yield Sample((TensorSpec((3, 4)),), {"dim": 1, "dtype": float64})
    yield Sample((TensorSpec((3, 4), "int32", -5, 5),), {"dim": 1, "dtype": float32})


def _cumsum_grad(p: Pullback) -> Sequence[Value | None]:
    x, dim = p.args[0], p.attrs["dim"]
    behind = flip(cumsum(flip(p.g, dims=(dim,)), dim=dim), dims=(dim,))
    return (to_operand(behind, x),)


_RUNNING: Final = (
    operand("input"),
    attribute("dim", convert=kinds.axis),
    attribute("dtype", None, kinds.optional(kinds.dtype)),
)

cumsum: Final = Op(
    name="cumsum",
    doc="Sum of the elements up to each one along `dim`; integers and bools as int64.",
    params=_RUNNING,
    type_rule=along_dim(accumulated_dtype),
    shape=ShapeBehaviour.IDENTITY,
    lowering=Library(on_tensor(lambda torch, x, dim, dtype: x.cumsum(dim, dtype=dtype))),
    push=Linear(("input",)),
    grad=_cumsum_grad,
    samples=_running_samples,
)


def _cumprod_grad(p: Pullback) -> Sequence[Value | None]:
    # No division by elements, so zeros are nothing special: d out[k] / d x[m] is the product of
    # the elements before m, times those between m and k.
    dim = p.attrs["dim"]
    x = p.args[0].cast(p.out.dtype)
    none = p.g.builder.zeros(x.tensor)
    before = recurrence(x, none, dim=dim, initial=1.0)
    after = p.g + recurrence(x, x * p.g, dim=dim, reverse=True)
    return (to_operand(before * after, p.args[0]),)


cumprod: Final = Op(
    name="cumprod",
    doc="Product of the elements up to each one along `dim`; integers and bools as int64.",
    params=_RUNNING,
    type_rule=along_dim(accumulated_dtype),
    shape=ShapeBehaviour.IDENTITY,
    lowering=Library(on_tensor(lambda torch, x, dim, dtype: x.cumprod(dim, dtype=dtype))),
    grad=_cumprod_grad,
    samples=lambda: (
        *_running_samples(),
        Sample((filled(0.0, 3),), {"dim": 0}),
        Sample((filled(0.0, 2, 2),), {"dim": 1}),
    ),
)


def _recurrence_type(call: RuleCall) -> Type:
    factor, term = call.tensor(0), call.tensor(1)
    axis(call, call.attrs["dim"], factor.rank)
    call.solver.unify(factor, term)
    if not is_float(call.known_dtype(factor.dtype)):
        call.clash("`recurrence` takes float tensors", 0)
    return factor


def _recurrence(torch: Any, factor: Any, term: Any, dim: int, reverse: bool, initial: float) -> Any:
    if factor.shape[dim] == 0:
        return factor.clone()
    if reverse:
        factor, term = factor.flip(dim), term.flip(dim)
    # Each step composes affine maps twice as far apart: logarithmically many steps, not one each.
    distance, length = 1, factor.shape[dim] - 1
    scale, shift = factor.narrow(dim, 0, length), term.narrow(dim, 0, length)
    while distance < length:
        near = length - distance
        head = (scale.narrow(dim, 0, distance), shift.narrow(dim, 0, distance))
        late = scale.narrow(dim, distance, near)
        moved = late * shift.narrow(dim, 0, near) + shift.narrow(dim, distance, near)
        scale = torch.cat((head[0], late * scale.narrow(dim, 0, near)), dim)
        shift = torch.cat((head[1], moved), dim)
        distance *= 2
    first = torch.full_like(factor.narrow(dim, 0, 1), initial)
    found = torch.cat((first, scale * initial + shift), dim)
    return found.flip(dim) if reverse else found


def _recurrence_grad(p: Pullback) -> Sequence[Value | None]:
    factor, attrs = p.args[0], p.attrs
    back = recurrence(factor, p.g, dim=attrs["dim"], reverse=not attrs["reverse"])
    return back * p.out, back


recurrence: Final = Op(
    name="recurrence",
    doc=(
        "Along `dim`, `initial` and then out[k] = factor[k-1] out[k-1] + term[k-1]; from the end "
        "under `reverse`."
    ),
    params=(
        operand("factor"),
        operand("term"),
        attribute("dim", convert=kinds.axis),
        attribute("reverse", False, kinds.flag),
        attribute("initial", 0.0, kinds.real),
    ),
    type_rule=_recurrence_type,
    shape=ShapeBehaviour.IDENTITY,
    lowering=Library(_recurrence),
    grad=_recurrence_grad,
    samples=lambda: (
        Sample((TensorSpec((7,)), TensorSpec((7,))), {"dim": 0}),
        Sample((TensorSpec((7,)), TensorSpec((7,))), {"dim": 0, "reverse": True}),
        Sample((TensorSpec((2, 5, 3)), TensorSpec((2, 5, 3))), {"dim": -2, "initial": 1.0}),
        Sample((TensorSpec((4, 3), contiguous=False), TensorSpec((4, 3))), {"dim": 1}),
        Sample((TensorSpec((1, 2)), TensorSpec((1, 2))), {"dim": 0, "initial": 2.0}),
        Sample((TensorSpec((0, 2)), TensorSpec((0, 2))), {"dim": 0}),
        Sample((filled(0.0, 4), TensorSpec((4,))), {"dim": 0, "initial": 1.0}),
    ),
)
