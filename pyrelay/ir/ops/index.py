"""Reading and writing elements by position."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from ..dims import Dim, product
from ..op import (
    Effect,
    Elementwise,
    Library,
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
)
from ..rules import INDEX_DTYPE, axis, expect, integral, with_rank
from ..types import TensorType, Type, show
from . import index_element, moving
from .index_body import python_index, split_index
from .index_spec import normal_spec, result_shape, write_type
from .operands import as_positions, as_tensor, fields, is_given, static

if TYPE_CHECKING:
    from ..build import Value
    from ..elements import Elements, Place, Source

_INT: Final = ("int", 0)
_ROW: Final = (("int", 0),)
_MATRIX: Final = TensorSpec((4, 3))


def _zeros_of(value: Value) -> Value:
    return value.builder.zeros(value.ty)


def _shaped_as(value: Value, like: Value) -> Value:
    """Give the value under the shape of `like`, where a mask made another name for one size."""
    return value.reshape(*like.shape)


def _index_type(call: RuleCall) -> Type:
    source = call.tensor(0)
    return TensorType(result_shape(call, source, masked=None), source.dtype)


def _index(torch: Any, x: Any, indices: tuple[Any, ...], spec: Any) -> Any:
    x = as_tensor(torch, x)
    flips, items = python_index(torch, x, spec, indices)
    return (x.flip(flips) if flips else x)[items[0] if len(items) == 1 else items]


def _spec_samples(value: tuple[TensorSpec, ...] = ()) -> list[Sample]:
    """Give samples of every form of index, with a value to write if `value` has a shape maker."""
    ints = TensorSpec((2,), "int64", 0, 3)
    whole = ("slice", None, None, None)
    cases: list[tuple[TensorSpec, tuple[Any, ...], tuple[Any, ...], tuple[int, ...]]] = [
        (_MATRIX, (1,), (_INT,), (3,)),
        (_MATRIX, (-1,), (whole, _INT), (4,)),
        (_MATRIX, (), (("slice", 1, -1, None),), (2, 3)),
        (_MATRIX, (), (("slice", None, None, -2), ("slice", 2, None, None)), (2, 1)),
        (_MATRIX, (), (("slice", 3, 1, None),), (0, 3)),
        (_MATRIX, (0,), (("new",), ("ellipsis",), _INT), (1, 4)),
        (_MATRIX, (ints,), (_INT,), (2, 3)),
        (_MATRIX, (ints, ints), (_INT, ("int", 1)), (2,)),
        (_MATRIX, (TensorSpec((2, 1), "int64", 0, 3), ints), (_INT, ("int", 1)), (2, 2)),
        (TensorSpec((4, 2, 3)), (ints, ints), (_INT, whole, ("int", 1)), (2, 2)),
        (TensorSpec((4, 2, 3)), (1, ints), (whole, ("int", 0), ("int", 1)), (4, 2)),
        (TensorSpec((4, 3), contiguous=False), (2,), (_INT,), (3,)),
        (TensorSpec((0, 3)), (), (("slice", 0, 2, None),), (0, 3)),
    ]
    if not value:
        return [Sample((x, indices), {"spec": spec}) for x, indices, spec, _ in cases]
    return [
        Sample((x, indices, TensorSpec(shape)), {"spec": spec}) for x, indices, spec, shape in cases
    ]


index: Final = Op(
    name="index",
    doc="The elements that `input[...]` selects.",
    params=(operand("input"), operand("indices"), attribute("spec", convert=normal_spec)),
    promotion=Promotion.NONE,
    type_rule=_index_type,
    effect=Effect.NONE,
    shape=ShapeBehaviour.DYNAMIC,
    lowering=Library(_index, fused=Elementwise(index_element.read)),
    grad=lambda p: (
        index_accumulate(_zeros_of(p.args[0]), p.args[1], p.g, spec=p.attrs["spec"]),
        None,
    ),
    hidden=(),
    hyper=(),
    torch_name=None,
    samples=lambda: (
        *_spec_samples(),
        Sample((_MATRIX, (TensorSpec((4,), "bool"),)), {"spec": _ROW}),
        Sample((_MATRIX, (TensorSpec((4, 3), "bool"),)), {"spec": _ROW}),
    ),
)


extract: Final = Op(
    name="extract",
    doc="The elements that `input[...]` selects, in storage of their own.",
    params=index.params,
    promotion=Promotion.NONE,
    type_rule=_index_type,
    effect=Effect.NONE,
    shape=ShapeBehaviour.DYNAMIC,
    lowering=Library(
        lambda torch, *args: _index(torch, *args).clone(),
        is_fresh=True,
        fused=Elementwise(index_element.read),
    ),
    grad=index.grad,
    hidden=(),
    hyper=(),
    torch_name=None,
    samples=index.samples,
)


def _set_at(torch: Any, x: Any, indices: tuple[Any, ...], value: Any, spec: Any) -> Any:
    x = as_tensor(torch, x)
    return _set_in_place(torch, x.clone(), indices, value, spec)


def _set_in_place(torch: Any, x: Any, indices: tuple[Any, ...], value: Any, spec: Any) -> Any:
    flips, items = python_index(torch, x, spec, indices)
    out = x.flip(flips) if flips else x
    out[items] = value
    return out.flip(flips) if flips else out


def _set_at_grad(p: Pullback) -> tuple[Value, None, Value]:
    target, indices, value = p.args
    spec = p.attrs["spec"]
    blank = value.builder.zeros(TensorType((), target.dtype))
    # Not a view: so the cotangent can be written in place.
    selected = extract(p.g, indices, spec=spec).sum_to(value.shape)
    return set_at(p.g, indices, blank, spec=spec), None, _shaped_as(selected, value)


set_at: Final = Op(
    name="set_at",
    doc="The tensor with `input[...]` replaced by `value`; `input` itself does not change.",
    params=(
        operand("input", promote=True),
        operand("indices"),
        operand("value", promote=True),
        attribute("spec", convert=normal_spec),
    ),
    promotion=Promotion.COMMON,
    type_rule=write_type,
    effect=Effect.NONE,
    shape=ShapeBehaviour.IDENTITY,
    lowering=Library.updating(_set_at, _set_in_place, Elementwise(index_element.written)),
    grad=_set_at_grad,
    hidden=(),
    hyper=(),
    torch_name=None,
    samples=lambda: (
        *(s for s in _spec_samples((_MATRIX,)) if not _has_tensor(s)),
        Sample((_MATRIX, (TensorSpec((1,), "int64", 0, 4),), TensorSpec((3,))), {"spec": _ROW}),
        Sample((_MATRIX, (TensorSpec((4,), "bool"),), TensorSpec(())), {"spec": _ROW}),
        Sample((_MATRIX, (), TensorSpec((3,))), {"spec": (("slice", 1, 3, None),)}),
        Sample((_MATRIX, (2,), 1.5), {"spec": _ROW}),
    ),
)


def _has_tensor(sample: Sample) -> bool:
    indices = sample.operands[1]
    return isinstance(indices, tuple) and any(isinstance(i, TensorSpec) for i in indices)


def _index_accumulate(torch: Any, acc: Any, indices: tuple[Any, ...], value: Any, spec: Any) -> Any:
    return _accumulate_in_place(torch, acc.clone(), indices, value, spec)


def _accumulate_in_place(
    torch: Any, acc: Any, indices: tuple[Any, ...], value: Any, spec: Any
) -> Any:
    flips, items = python_index(torch, acc, spec, indices)
    out = acc.flip(flips) if flips else acc
    basic, tensors = split_index(torch, items)
    if tensors is None:
        out[basic] += value
    else:
        value = as_tensor(torch, value, acc)
        torch.ops.aten.index_put_(out[basic], tensors, value, True)
    return out.flip(flips) if flips else out


def _accumulate_code(args: tuple[Value, ...], attrs: Mapping[str, Any]) -> Value:
    """Give the sum as two: where places are known, nothing need be added twice at one."""
    x, indices, value = args
    positions = fields(indices) if is_given(indices) else []
    if any(isinstance(i.ty, TensorType) and i.rank for i in positions):
        return scatter_at(x, indices, value, **attrs)
    return x + set_at(_zeros_of(x), indices, value, **attrs)


index_accumulate: Final = Op(
    name="index_accumulate",
    doc="The tensor with `value` added at `input[...]`; a position named twice gets both.",
    params=(
        operand("input", promote=True),
        operand("indices"),
        operand("value", promote=True),
        attribute("spec", convert=normal_spec),
    ),
    promotion=Promotion.COMMON,
    type_rule=write_type,
    effect=Effect.NONE,
    shape=ShapeBehaviour.IDENTITY,
    lowering=Library.updating(_index_accumulate, _accumulate_in_place, MadeOf(_accumulate_code)),
    grad=lambda p: (
        p.g,
        None,
        _shaped_as(index(p.g, p.args[1], spec=p.attrs["spec"]).sum_to(p.args[2].shape), p.args[2]),
    ),
    hidden=(),
    hyper=(),
    torch_name=None,
    samples=lambda: (
        *_spec_samples((_MATRIX,)),
        Sample((_MATRIX, (TensorSpec((5,), "int64", 0, 2),), TensorSpec((5, 3))), {"spec": _ROW}),
        Sample((_MATRIX, (TensorSpec((4,), "bool"),), TensorSpec((3,))), {"spec": _ROW}),
    ),
)


scatter_at: Final = replace(
    index_accumulate,
    name="scatter_at",
    doc="`index_accumulate` at positions that are tensors: several may be one.",
    lowering=Library.updating(
        _index_accumulate, _accumulate_in_place, Scatter(base=0, over=2, body=index_element.added)
    ),
)


SLICING: Final = (index, extract, set_at, index_accumulate, scatter_at)
"""The operators whose sizes are bounds of slices."""


def _along(call: RuleCall, source: TensorType, positions: TensorType) -> int:
    """Give the dim along which positions count; elsewhere they lie within the source."""
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


def _at(k: Elements, place: Place, positions: Source, shape: Sequence[Dim], dim: int) -> list[Dim]:
    """Give the place with its coordinate along a dim replaced by a position."""
    index = list(place.index)
    if index:
        index[dim] = k.coordinate(positions(*place.index), shape[dim])
    return index


gather: Final = Op(
    name="gather",
    doc="Elements picked along a dim: `out[i][j] = input[index[i][j]][j]` for `dim=0`.",
    params=(operand("input"), attribute("dim"), operand("index")),
    promotion=Promotion.NONE,
    type_rule=_gather_type,
    effect=Effect.NONE,
    shape=ShapeBehaviour.FIXED,
    lowering=Library(
        _gather,
        fused=Elementwise(
            lambda k, place, x, positions, dim: x(*_at(k, place, positions, x.shape, dim))
        ),
    ),
    grad=lambda p: (
        scatter_add(_zeros_of(p.args[0]), p.args[1], p.g, dim=p.attrs["dim"]),
        None,
    ),
    hidden=(),
    hyper=(),
    torch_name="gather",
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
    doc="Elements of `src` added at positions along a dim; the reverse of `gather`.",
    params=(
        operand("input", promote=True),
        attribute("dim"),
        operand("index"),
        operand("src", promote=True),
    ),
    promotion=Promotion.COMMON,
    type_rule=_scatter_type,
    effect=Effect.NONE,
    shape=ShapeBehaviour.FIXED,
    lowering=Library.updating(
        _scatter_add,
        _scatter_add_in_place,
        Scatter(
            base=0,
            over=2,
            body=lambda k, place, x, positions, source, dim: (
                _at(k, place, positions, x.shape, dim),
                source(*place.index),
            ),
        ),
    ),
    grad=lambda p: (p.g, None, gather(p.g, p.args[1], dim=p.attrs["dim"])),
    hidden=(),
    hyper=(),
    torch_name="scatter_add",
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
    flat = _zeros_of(source.reshape(product(source.shape)))
    spread = index_accumulate(flat, p.g.builder.tuple((positions,)), p.g, spec=_ROW)
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
    promotion=Promotion.NONE,
    type_rule=lambda call: TensorType(integral(call, 1).shape, call.tensor(0).dtype),
    effect=Effect.NONE,
    shape=ShapeBehaviour.FIXED,
    lowering=Library(_take, fused=Elementwise(_take_element)),
    grad=_take_grad,
    hidden=(),
    hyper=(),
    torch_name="take",
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
    spec = (*(("slice", None, None, None),) * dim, _INT)
    picked = p.g.builder.tuple((flat,))
    return index_accumulate(_zeros_of(source), picked, p.g, spec=spec), None


def _index_select(torch: Any, x: Any, positions: Any, dim: int) -> Any:
    return torch.index_select(x, dim, as_tensor(torch, positions, x))


def _index_select_element(k: Elements, place: Place, x: Source, positions: Source, dim: int) -> Any:
    index = list(place.index)
    position = positions(*(index[dim] for _ in positions.shape))
    index[dim] = k.coordinate(position, x.shape[dim])
    return x(*index)


index_select: Final = Op(
    name="index_select",
    doc="Slices along a dim, by their positions.",
    params=(operand("input"), attribute("dim"), operand("index")),
    promotion=Promotion.NONE,
    type_rule=_index_select_type,
    effect=Effect.NONE,
    shape=ShapeBehaviour.N_DIMENSIONAL,
    lowering=Library(_index_select, fused=Elementwise(_index_select_element)),
    grad=_index_select_grad,
    hidden=(),
    hyper=(),
    torch_name="index_select",
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


def _one_hot_element(k: Elements, place: Place, x: Source, classes: Any) -> Any:
    here = k.cast(x(*place.index[:-1]), INDEX_DTYPE)
    return k.cast(k.eq(here, k.number(place.index[-1])), INDEX_DTYPE)


one_hot: Final = Op(
    name="one_hot",
    doc="A 1 at the place of each class, in a last dim of `num_classes`.",
    params=(operand("input"), attribute("num_classes", convert=static)),
    promotion=Promotion.NONE,
    type_rule=_one_hot_type,
    effect=Effect.NONE,
    shape=ShapeBehaviour.FIXED,
    lowering=Library(_one_hot, fused=Elementwise(_one_hot_element)),
    grad=NoGradient("takes and gives integers"),
    hidden=(),
    hyper=(),
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
    promotion=Promotion.NONE,
    type_rule=_nonzero_type,
    effect=Effect.NONE,
    shape=ShapeBehaviour.DYNAMIC,
    lowering=Library(lambda torch, x: torch.nonzero(as_tensor(torch, x))),
    grad=NoGradient("gives integers"),
    hidden=(),
    hyper=(),
    torch_name="nonzero",
    samples=lambda: (
        Sample((TensorSpec((4, 3), "int64", 0, 2),)),
        Sample((TensorSpec((5,), "bool"),)),
        Sample((TensorSpec((0, 3)),)),
        Sample((TensorSpec((4, 3), contiguous=False),)),
    ),
)
