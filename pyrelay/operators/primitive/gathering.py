"""Elements picked, added and counted, at positions that tensors of integers hold."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from ...ir.declaration import attribute_kinds as kinds
from ...ir.dims import ONE, Dim, product
from ...ir.op import (
    Elementwise,
    Library,
    Linear,
    MadeOf,
    NoGradient,
    Op,
    Promotion,
    Pullback,
    RuleCall,
    Sample,
    Scatter,
    ShapeBehaviour,
    TensorSpec,
    attribute,
    operand,
    optional,
)
from ...ir.rules import INDEX_DTYPE, axis, expect, floating, integral, with_rank
from ...ir.types import TensorType, Type, int64, show
from ..shared import moving
from ..shared.operands import as_positions, as_tensor, is_given
from . import create, index
from .compare import equal
from .embedding import rows_grad

if TYPE_CHECKING:
    from ...ir.declaration.elements import Elements, Place, Source
    from ..builder import Value

_INT: Final = ("int", 0)
_ROW: Final = (("int", 0),)
_MATRIX: Final = TensorSpec((4, 3))


def _along(call: RuleCall, source: TensorType, positions: TensorType) -> int:
    """Return the dim along which positions count; elsewhere they lie within the source."""
    dim = axis(call, call.attrs["dim"], max(source.rank, 1))
    if positions.rank != source.rank:
        call.clash(
            f"`{call.op.name}` takes positions of the rank of the input: "
            f"{show(positions)} against {show(source)}",
            0,
            1,
        )
    for d, (have, limit) in enumerate(zip(positions.shape, source.shape, strict=True)):
        if d == dim or have.constant is None or limit.constant is None:
            continue
        if have.constant > limit.constant:
            call.clash(f"`{call.op.name}` has {have} positions in dim {d} of size {limit}", 0, 1)
    return dim


def _gather_type(call: RuleCall) -> Type:
    source, positions = call.tensor(0), integral(call, 1)
    _along(call, source, positions)
    return TensorType(positions.shape, source.dtype)


def _gather(torch: Any, x: Any, positions: Any, dim: int) -> Any:
    return torch.gather(x, dim, as_positions(torch, positions))


def _picked(
    k: Elements, place: Place, positions: Source, shape: Sequence[Dim], dim: int
) -> list[Dim]:
    """Return the place with its coordinate along a dim replaced by a position."""
    at = list(place.index)
    if at:
        at[dim] = k.coordinate(positions(*place.index), shape[dim], from_end=False)
    return at


gather: Final = Op(
    name="gather",
    doc="Elements picked along a dim: `out[i][j] = input[index[i][j]][j]` for `dim=0`.",
    params=(operand("input"), attribute("dim", convert=kinds.axis), operand("index")),
    type_rule=_gather_type,
    shape=ShapeBehaviour.FIXED,
    lowering=Library(
        _gather,
        fused=Elementwise(
            lambda k, place, x, positions, dim: x(*_picked(k, place, positions, x.shape, dim))
        ),
    ),
    push=Linear(("input",)),
    grad=lambda p: (
        scatter_add(index.zeros_of(p.args[0]), p.args[1], p.g, dim=p.attrs["dim"]),
        None,
    ),
    samples=lambda: (
        Sample((_MATRIX, TensorSpec((2, 3), "int64", 0, 4)), {"dim": 0}),
        Sample((_MATRIX, TensorSpec((4, 5), "int64", 0, 3)), {"dim": -1}),
        Sample((_MATRIX, TensorSpec((0, 3), "int64", 0, 4)), {"dim": 0}),
        Sample(
            (TensorSpec((4, 3), contiguous=False), TensorSpec((4, 3), "int64", 0, 3)), {"dim": 1}
        ),
    ),
)


def _scatter_type(call: RuleCall) -> Type:
    target, positions, source = call.tensor(0), integral(call, 1), call.tensor(2)
    _along(call, target, positions)
    expect(call, 2, TensorType(positions.shape, source.dtype), "`src` has the shape of `index`")
    return target


def _scatter_add(torch: Any, x: Any, positions: Any, source: Any, dim: int) -> Any:
    return torch.scatter_add(x, dim, as_positions(torch, positions), source)


def _scatter_add_in_place(torch: Any, x: Any, positions: Any, source: Any, dim: int) -> Any:
    return x.scatter_add_(dim, as_positions(torch, positions), source)


scatter_add: Final = Op(
    name="scatter_add",
    doc="Elements of `src` added at positions along a dim; the reverse of `gather`. On a GPU "
    "elements at one position are added in any order.",
    params=(
        operand("input", promote=True),
        attribute("dim", convert=kinds.axis),
        operand("index"),
        operand("src", promote=True),
    ),
    promotion=Promotion.COMMON,
    type_rule=_scatter_type,
    shape=ShapeBehaviour.FIXED,
    lowering=Library.updating(
        _scatter_add,
        _scatter_add_in_place,
        Scatter(
            base=0,
            over=2,
            body=lambda k, place, x, positions, source, dim: (
                _picked(k, place, positions, x.shape, dim),
                source(*place.index),
            ),
        ),
    ),
    push=Linear(("input", "src")),
    grad=lambda p: (p.g, None, gather(p.g, p.args[1], dim=p.attrs["dim"])),
    samples=lambda: (
        Sample((_MATRIX, TensorSpec((2, 3), "int64", 0, 4), TensorSpec((2, 3))), {"dim": 0}),
        Sample((_MATRIX, TensorSpec((4, 5), "int64", 0, 3), TensorSpec((4, 5))), {"dim": 1}),
        Sample((_MATRIX, TensorSpec((0, 3), "int64", 0, 4), TensorSpec((0, 3))), {"dim": 0}),
        Sample(
            (
                TensorSpec((4, 3), contiguous=False),
                TensorSpec((4, 3), "int64", 0, 3),
                TensorSpec((4, 3), contiguous=False),
            ),
            {"dim": -1},
        ),
    ),
)


def _take_grad(p: Pullback) -> tuple[Value, None]:
    source, positions = p.args
    flat = index.zeros_of(source.reshape(product(source.shape)))
    spread = index.index_accumulate(flat, p.g.builder.tuple((positions,)), p.g, spec=_ROW)
    return spread.reshape(*source.shape), None


def _take(torch: Any, x: Any, positions: Any) -> Any:
    return torch.take(x, as_positions(torch, positions, x))


def _take_element(k: Elements, place: Place, x: Source, positions: Source) -> Any:
    total = product(x.shape)
    number = k.coordinate(positions(*place.index), total)
    return x(*moving.counted_over((number,), (total,), x.shape))


take: Final = Op(
    name="take",
    doc="Elements by their positions in the flattened tensor.",
    params=(operand("input"), operand("index")),
    type_rule=lambda call: TensorType(integral(call, 1).shape, call.tensor(0).dtype),
    shape=ShapeBehaviour.FIXED,
    lowering=Library(_take, fused=Elementwise(_take_element)),
    push=Linear(("input",)),
    grad=_take_grad,
    samples=lambda: (
        Sample((_MATRIX, TensorSpec((2, 5), "int64", 0, 12))),
        Sample((_MATRIX, TensorSpec((), "int64", 0, 12))),
        Sample((_MATRIX, TensorSpec((0,), "int64", 0, 12))),
        Sample((TensorSpec((4, 3), contiguous=False), TensorSpec((3,), "int64", 0, 12))),
    ),
)


def _index_select_type(call: RuleCall) -> Type:
    source, positions = call.tensor(0), integral(call, 1)
    with_rank(call, 1, 0, 1)
    dim = axis(call, call.attrs["dim"], source.rank)
    count = positions.shape[0] if positions.rank else Dim.of(1)
    return TensorType((*source.shape[:dim], count, *source.shape[dim + 1 :]), source.dtype)


def _index_select_grad(p: Pullback) -> tuple[Value, None]:
    source, positions = p.args
    flat = positions if positions.rank else positions.unsqueeze(0)
    dim = p.attrs["dim"] % source.rank
    if dim == 0:
        return rows_grad(p.g, flat, source), None
    spec = (*(("slice", None, None, None),) * dim, _INT)
    picked = p.g.builder.tuple((flat,))
    return index.index_accumulate(index.zeros_of(source), picked, p.g, spec=spec), None


def _index_select(torch: Any, x: Any, positions: Any, dim: int) -> Any:
    return torch.index_select(x, dim, as_tensor(torch, positions, x))


def _index_select_element(k: Elements, place: Place, x: Source, positions: Source, dim: int) -> Any:
    at = list(place.index)
    position = positions(*(at[dim] for _ in positions.shape))
    at[dim] = k.coordinate(position, x.shape[dim], from_end=False)
    return x(*at)


index_select: Final = Op(
    name="index_select",
    doc="Slices along a dim, by their positions.",
    params=(operand("input"), attribute("dim", convert=kinds.axis), operand("index")),
    type_rule=_index_select_type,
    shape=ShapeBehaviour.N_DIMENSIONAL,
    lowering=Library(_index_select, fused=Elementwise(_index_select_element)),
    push=Linear(("input",)),
    grad=_index_select_grad,
    samples=lambda: (
        Sample((_MATRIX, TensorSpec((6,), "int64", 0, 4)), {"dim": 0}),
        Sample((_MATRIX, TensorSpec((2,), "int64", 0, 3)), {"dim": -1}),
        Sample((_MATRIX, TensorSpec((0,), "int64", 0, 4)), {"dim": 0}),
        Sample((TensorSpec((4, 3), contiguous=False), TensorSpec((2,), "int64", 0, 3)), {"dim": 1}),
    ),
)


def _one_hot_type(call: RuleCall) -> Type:
    source = integral(call, 0)
    return TensorType((*source.shape, Dim.of(call.attrs["num_classes"])), INDEX_DTYPE)


def _one_hot(torch: Any, x: Any, classes: int) -> Any:
    return torch.nn.functional.one_hot(as_positions(torch, x), classes)


def _one_hot_code(args: tuple[Value, ...], attrs: Mapping[str, Any]) -> Value:
    classes, count, builder = args[0].cast(INDEX_DTYPE), attrs["num_classes"], args[0].builder
    numbers = builder.call(create.arange, (), {"end": count})
    found = equal(classes.unsqueeze(-1), numbers).cast(INDEX_DTYPE)
    # Reads a zero at the class, so that one that does not exist is an error, as to torch.
    zeros = builder.zeros(TensorType((Dim.of(count),), INDEX_DTYPE))
    read = index_select(zeros, classes.reshape(product(classes.shape)), dim=0)
    return found + read.reshape(*classes.shape, ONE)


one_hot: Final = Op(
    name="one_hot",
    doc="A 1 at the place of each class, in a last dim of `num_classes`.",
    params=(operand("input"), attribute("num_classes", convert=kinds.size)),
    type_rule=_one_hot_type,
    shape=ShapeBehaviour.FIXED,
    lowering=Library(_one_hot, fused=MadeOf(_one_hot_code)),
    grad=NoGradient("takes and gives integers"),
    torch_name="nn.functional.one_hot",
    samples=lambda: (
        Sample((TensorSpec((4,), "int64", 0, 3),), {"num_classes": 3}),
        Sample((TensorSpec((2, 3), "int64", 0, 3),), {"num_classes": 5}),
        Sample((TensorSpec((), "int64", 0, 3),), {"num_classes": 3}),
        Sample((TensorSpec((0,), "int64", 0, 3),), {"num_classes": 3}),
    ),
)


def _nonzero_type(call: RuleCall) -> Type:
    source = call.tensor(0)
    return TensorType((call.solver.fresh_dim("nonzero"), Dim.of(source.rank)), INDEX_DTYPE)


nonzero: Final = Op(
    name="nonzero",
    doc="The positions of the elements that are not zero, one row each.",
    params=(operand("input"),),
    type_rule=_nonzero_type,
    shape=ShapeBehaviour.DYNAMIC,
    lowering=Library(lambda torch, x: torch.nonzero(as_tensor(torch, x))),
    grad=NoGradient("gives integers"),
    samples=lambda: (
        Sample((TensorSpec((4, 3), "int64", 0, 2),)),
        Sample((TensorSpec((5,), "bool"),)),
        Sample((TensorSpec((0, 3)),)),
        Sample((TensorSpec((4, 3), contiguous=False),)),
    ),
)


def place(values: Value, positions: Value, operand: Value, dim: int) -> Value:
    """Return zeros like the operand with values at positions along `dim`: the cotangent of an
    operator that selects elements."""
    # Positions along one dim never repeat, so nothing is really added.
    return scatter_add(operand.builder.zeros(operand.tensor), positions, values, dim=dim)


def _bincount_type(call: RuleCall) -> Type:
    integral(call, 0)
    source = with_rank(call, 0, 1)
    bins = call.solver.fresh_dim("bins")
    if not call.given(1):
        return TensorType((bins,), int64)
    floating(call, 1)
    weights = with_rank(call, 1, 1)
    message = f"`bincount` takes one weight for each integer: {show(weights)} for {show(source)}"
    call.unify_dims(weights.shape[0], source.shape[0], 1, message)
    return TensorType((bins,), weights.dtype)


def _bincount_grad(p: Pullback) -> tuple[None, Value | None]:
    source, weights = p.args
    return None, index_select(p.g, source, dim=0) if is_given(weights) else None


def _bincount(torch: Any, x: Any, weights: Any, minlength: int) -> Any:
    found = torch.bincount(x, weights, minlength)
    return found if weights is None else found.to(weights.dtype)


_WHOLE: Final = TensorSpec((7,), "int64", 0, 5)

bincount: Final = Op(
    name="bincount",
    doc="How often each of the integers from 0 occurs, or the sum of the weights of those that are "
    "equal to it: as many as the largest asks for, and at least `minlength`. A negative integer "
    "stops the program. On a GPU weights are added in any order.",
    params=(
        operand("input"),
        optional("weights"),
        attribute("minlength", 0, kinds.at_least(0, kinds.whole)),
    ),
    type_rule=_bincount_type,
    shape=ShapeBehaviour.DYNAMIC,
    lowering=Library(_bincount, is_fresh=True),
    push=Linear(("weights",)),
    grad=_bincount_grad,
    samples=lambda: (
        Sample((_WHOLE, None)),
        Sample((_WHOLE, None), {"minlength": 9}),
        Sample((_WHOLE, TensorSpec((7,)))),
        Sample((_WHOLE, TensorSpec((7,), "float64")), {"minlength": 2}),
        Sample((TensorSpec((0,), "int64", 0, 5), None)),
        Sample((TensorSpec((7,), "int32", 0, 5), TensorSpec((7,), contiguous=False))),
    ),
)
