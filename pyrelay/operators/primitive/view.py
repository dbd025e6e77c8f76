"""Views: the same elements under another shape or in another order."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from ...ir.declaration import attribute_kinds as kinds
from ...ir.dims import ONE, Dim, DimHole, product
from ...ir.op import (
    Clash,
    Elementwise,
    Expansion,
    Library,
    Linear,
    MadeOf,
    Op,
    Precision,
    Pullback,
    RuleCall,
    Sample,
    ShapeBehaviour,
    Stuck,
    TensorSpec,
    View,
    attribute,
    operand,
)
from ...ir.rules import axes, axis
from ...ir.types import TensorType, Type, show
from ..shared import moving
from ..shared.operands import on_tensor
from ..shared.reshaping import INFER, first_hole, reshape_type, shape_text

if TYPE_CHECKING:
    from ..builder import Value


def _restore_shape(p: Pullback) -> tuple[Value]:
    return (p.g.reshape(*p.args[0].shape),)


reshape: Final = Op(
    name="reshape",
    doc="The same elements, row by row, in another shape; one size may be -1.",
    params=(operand("input"), attribute("shape", convert=kinds.shape)),
    type_rule=reshape_type,
    shape=ShapeBehaviour.FIXED,
    lowering=View(on_tensor(lambda torch, x, shape: x.reshape(shape)), moving.reshaped),
    push=Linear(("input",)),
    grad=_restore_shape,
    samples=lambda: (
        Sample((TensorSpec((2, 6)),), {"shape": (3, 4)}),
        Sample((TensorSpec((2, 3, 4)),), {"shape": (2, -1)}),
        Sample((TensorSpec((4, 3), contiguous=False),), {"shape": (12,)}),
        Sample((TensorSpec(()),), {"shape": (1, 1)}),
        Sample((TensorSpec((0, 3)),), {"shape": (3, 0)}),
    ),
)


def _flatten_type(call: RuleCall) -> Type:
    source = call.tensor(0)
    if source.rank == 0:
        return TensorType((ONE,), source.dtype)
    start = axis(call, call.attrs["start_dim"], source.rank)
    end = axis(call, call.attrs["end_dim"], source.rank)
    if start > end:
        call.clash(f"`flatten` has start_dim {start} behind end_dim {end}", 0)
    shape = tuple(call.solver.resolve_dim(d) for d in source.shape)
    merged = product(shape[start : end + 1])
    return TensorType((*shape[:start], merged, *shape[end + 1 :]), source.dtype)


flatten: Final = Op(
    name="flatten",
    doc="The dims from `start_dim` to `end_dim` made one.",
    params=(
        operand("input"),
        attribute("start_dim", 0, kinds.axis),
        attribute("end_dim", -1, kinds.axis),
    ),
    type_rule=_flatten_type,
    shape=ShapeBehaviour.N_DIMENSIONAL,
    lowering=View(on_tensor(lambda torch, x, start, end: x.flatten(start, end)), moving.reshaped),
    push=Linear(("input",)),
    grad=_restore_shape,
    samples=lambda: (
        Sample((TensorSpec((2, 3, 4)),)),
        Sample((TensorSpec((2, 3, 4)),), {"start_dim": 1}),
        Sample((TensorSpec((2, 3, 4, 5)),), {"start_dim": -3, "end_dim": 2}),
        Sample((TensorSpec(()),)),
        Sample((TensorSpec((4, 3), contiguous=False),)),
        Sample((TensorSpec((0, 3, 2)),), {"start_dim": 1}),
    ),
)


def _swapped(call: RuleCall, first: int, second: int) -> Type:
    source = call.tensor(0)
    if source.rank == 0 and first in (0, -1) and second in (0, -1):
        return source
    a, b = axis(call, first, source.rank), axis(call, second, source.rank)
    shape = list(source.shape)
    shape[a], shape[b] = shape[b], shape[a]
    return TensorType(tuple(shape), source.dtype)


def _pair_samples(first: str, second: str) -> Iterable[Sample]:
    yield Sample((TensorSpec((2, 3)),), {first: 0, second: 1})
    yield Sample((TensorSpec((2, 3, 4)),), {first: -1, second: 0})
    yield Sample((TensorSpec((4, 3), contiguous=False),), {first: 1, second: 0})
    yield Sample((TensorSpec((0, 3, 2)),), {first: 1, second: 1})


transpose: Final = Op(
    name="transpose",
    doc="Two dims exchanged.",
    params=(
        operand("input"),
        attribute("dim0", convert=kinds.axis),
        attribute("dim1", convert=kinds.axis),
    ),
    type_rule=lambda call: _swapped(call, call.attrs["dim0"], call.attrs["dim1"]),
    shape=ShapeBehaviour.N_DIMENSIONAL,
    lowering=View(on_tensor(lambda torch, x, a, b: x.transpose(a, b)), moving.exchanged),
    push=Linear(("input",)),
    grad=lambda p: (transpose(p.g, dim0=p.attrs["dim0"], dim1=p.attrs["dim1"]),),
    samples=lambda: _pair_samples("dim0", "dim1"),
)


def _swapaxes_code(args: tuple[Value, ...], attrs: Mapping[str, Any]) -> Value:
    return transpose(args[0], dim0=attrs["axis0"], dim1=attrs["axis1"])


swapaxes: Final = Op(
    name="swapaxes",
    doc="Two dims exchanged, under numpy's name.",
    params=(
        operand("input"),
        attribute("axis0", convert=kinds.axis),
        attribute("axis1", convert=kinds.axis),
    ),
    type_rule=lambda call: _swapped(call, call.attrs["axis0"], call.attrs["axis1"]),
    shape=ShapeBehaviour.N_DIMENSIONAL,
    lowering=View(on_tensor(lambda torch, x, a, b: x.transpose(a, b)), MadeOf(_swapaxes_code)),
    grad=Expansion(_swapaxes_code),
    samples=lambda: _pair_samples("axis0", "axis1"),
)


def _permute_type(call: RuleCall) -> Type:
    source, order = call.tensor(0), call.attrs["dims"]
    if len(order) != source.rank:
        way = "the last two are exchanged by `x.mT`" if order == (-1, -2) else None
        call.clash(f"`permute` names {len(order)} dims of a tensor of {source.rank}", 0, help=way)
    found = axes(call, order, source.rank)
    return TensorType(tuple(source.shape[d] for d in found), source.dtype)


def inverse(order: Sequence[int]) -> tuple[int, ...]:
    """Return the order of dims that undoes another."""
    places = [d % len(order) for d in order]
    return tuple(places.index(d) for d in range(len(order)))


permute: Final = Op(
    name="permute",
    doc="The dims in another order.",
    params=(operand("input"), attribute("dims", convert=kinds.axes)),
    type_rule=_permute_type,
    shape=ShapeBehaviour.N_DIMENSIONAL,
    lowering=View(on_tensor(lambda torch, x, dims: x.permute(dims)), moving.permuted),
    push=Linear(("input",)),
    grad=lambda p: (permute(p.g, dims=inverse(p.attrs["dims"])),),
    samples=lambda: (
        Sample((TensorSpec((2, 3, 4)),), {"dims": (2, 0, 1)}),
        Sample((TensorSpec((2, 3)),), {"dims": (-1, 0)}),
        Sample((TensorSpec((4, 3), contiguous=False),), {"dims": (0, 1)}),
        Sample((TensorSpec(()),), {"dims": ()}),
        Sample((TensorSpec((0, 3, 2)),), {"dims": (1, 2, 0)}),
    ),
)


permute_copy: Final = Op(
    name="permute_copy",
    doc="The dims in another order, and the elements in the order of these.",
    params=(operand("input"), attribute("dims", convert=kinds.axes)),
    type_rule=permute.type_rule,
    shape=ShapeBehaviour.N_DIMENSIONAL,
    precision=permute.precision,
    lowering=Library(
        lambda torch, x, dims: torch.permute_copy(x, dims),
        is_fresh=True,
        fused=Elementwise(moving.permuted),
    ),
    body=MadeOf(lambda args, attrs: permute(args[0], dims=attrs["dims"])),
    push=Linear(("input",)),
    grad=lambda p: (permute_copy(p.g, dims=inverse(p.attrs["dims"])),),
    samples=permute.samples,
)


def _order_of_movedim(rank: int, source: tuple[int, ...], to: tuple[int, ...]) -> tuple[int, ...]:
    """Return the order of dims, counted from 0, in which `permute` moves dims."""
    moved = {t % rank: s % rank for s, t in zip(source, to, strict=True)}
    rest = iter(d for d in range(rank) if d not in moved.values())
    return tuple(moved[d] if d in moved else next(rest) for d in range(rank))


def _movedim_type(call: RuleCall) -> Type:
    ty, source, to = call.tensor(0), call.attrs["source"], call.attrs["destination"]
    if len(source) != len(to):
        call.clash(f"`movedim` moves as many dims as it has places: {source} against {to}")
    for dims in (source, to):
        axes(call, dims, ty.rank)
    return TensorType(tuple(ty.shape[d] for d in _order_of_movedim(ty.rank, source, to)), ty.dtype)


def _movedim_code(args: tuple[Value, ...], attrs: Mapping[str, Any]) -> Value:
    (x,) = args
    return permute(x, dims=_order_of_movedim(x.rank, attrs["source"], attrs["destination"]))


movedim: Final = Op(
    name="movedim",
    doc="Some dims moved to other places; the others keep their order.",
    params=(
        operand("input"),
        attribute("source", convert=kinds.axes),
        attribute("destination", convert=kinds.axes),
    ),
    type_rule=_movedim_type,
    shape=ShapeBehaviour.N_DIMENSIONAL,
    lowering=View(
        on_tensor(lambda torch, x, source, to: torch.movedim(x, source, to)), MadeOf(_movedim_code)
    ),
    grad=Expansion(_movedim_code),
    samples=lambda: (
        Sample((TensorSpec((2, 3, 4)),), {"source": 0, "destination": -1}),
        Sample((TensorSpec((2, 3, 4)),), {"source": (-1, 0), "destination": (0, 1)}),
        Sample((TensorSpec((4, 3), contiguous=False),), {"source": 1, "destination": 0}),
        Sample((TensorSpec((0, 3, 2)),), {"source": 2, "destination": 0}),
    ),
)


def _unsqueeze_type(call: RuleCall) -> Type:
    source = call.tensor(0)
    place = axis(call, call.attrs["dim"], source.rank + 1)
    return TensorType((*source.shape[:place], ONE, *source.shape[place:]), source.dtype)


unsqueeze: Final = Op(
    name="unsqueeze",
    doc="A dim of size 1 inserted at `dim`.",
    params=(operand("input"), attribute("dim", convert=kinds.axis)),
    type_rule=_unsqueeze_type,
    shape=ShapeBehaviour.N_DIMENSIONAL,
    lowering=View(on_tensor(lambda torch, x, dim: x.unsqueeze(dim)), moving.reshaped),
    push=Linear(("input",)),
    grad=_restore_shape,
    samples=lambda: (
        Sample((TensorSpec((2, 3)),), {"dim": 0}),
        Sample((TensorSpec((2, 3)),), {"dim": -1}),
        Sample((TensorSpec(()),), {"dim": 0}),
        Sample((TensorSpec((4, 3), contiguous=False),), {"dim": 1}),
        Sample((TensorSpec((0,)),), {"dim": 1}),
    ),
)


def _squeeze_type(call: RuleCall) -> Type:
    source, dims = call.tensor(0), call.attrs["dim"]
    named = axes(call, dims, source.rank) if source.rank else ()
    kept = tuple(
        d for i, d in enumerate(source.shape) if i not in named or not _is_one(call, d, dims)
    )
    return TensorType(kept, source.dtype)


def _is_one(call: RuleCall, size: Dim, dims: tuple[int, ...] | None) -> bool:
    """Return whether a dim goes. Raises Stuck or Clash where that is not known before running."""
    if size.constant is not None:
        return size == ONE
    hole = first_hole(size)
    if hole is None:
        advice = "leave it out, or give the dim the size 1 in the annotation"
        if dims is None:
            advice = "drop the others by name: squeeze(x, dim=...)"
        call.clash(f"`squeeze` cannot tell whether the size {size} is 1", 0, help=advice)
    if not call.solver.settling:
        raise Stuck(hole)
    call.solver.unify_dims(size, ONE)
    return True


def _squeeze(torch: Any, x: Any, dim: tuple[int, ...] | None) -> Any:
    return x.squeeze() if dim is None else x.squeeze(dim)


squeeze: Final = Op(
    name="squeeze",
    doc="Dims of size 1 removed: those named, or all.",
    params=(operand("input"), attribute("dim", None, kinds.optional(kinds.axes))),
    type_rule=_squeeze_type,
    shape=ShapeBehaviour.DYNAMIC,
    lowering=View(on_tensor(_squeeze), moving.reshaped),
    push=Linear(("input",)),
    grad=_restore_shape,
    samples=lambda: (
        Sample((TensorSpec((1, 3, 1)),)),
        Sample((TensorSpec((1, 3, 1)),), {"dim": -1}),
        Sample((TensorSpec((1, 3, 1)),), {"dim": (0, 2)}),
        Sample((TensorSpec((2, 3)),), {"dim": 0}),
        Sample((TensorSpec(()),)),
        Sample((TensorSpec((1, 0)),), {"dim": 0}),
    ),
)


def _expand_dim(call: RuleCall, source: TensorType, have: Dim, want: Dim) -> Dim:
    have = call.solver.resolve_dim(have)
    if want in (INFER, have) or have == ONE:
        return have if want == INFER else want
    if isinstance(have.single, DimHole) and not call.solver.settling:
        raise Stuck(have)
    call.unify_dims(
        have,
        want,
        0,
        f"`expand` cannot make shape {shape_text(call.attrs['size'])} of {show(source)}: "
        f"size {have} is neither 1 nor {want}",
    )
    return want


def _expand_type(call: RuleCall) -> Type:
    source = call.tensor(0)
    size = tuple(call.solver.resolve_dim(d) for d in call.attrs["size"])
    lead = len(size) - source.rank
    if lead < 0:
        call.clash(f"`expand` cannot drop dims: {show(source)} to {shape_text(size)}", 0)
    if INFER in size[:lead]:
        call.clash(f"`expand` has no size to keep for -1 in the new dims of {shape_text(size)}", 0)
    pairs = zip(source.shape, size[lead:], strict=True)
    kept = tuple(_expand_dim(call, source, have, want) for have, want in pairs)
    return TensorType(size[:lead] + kept, source.dtype)


expand: Final = Op(
    name="expand",
    doc="Dims of size 1 repeated, and new leading dims added, without copying; -1 keeps a size.",
    params=(operand("input"), attribute("size", convert=kinds.shape)),
    type_rule=_expand_type,
    shape=ShapeBehaviour.FIXED,
    precision=Precision.GIVEN,  # its derivative adds up
    lowering=View(on_tensor(lambda torch, x, size: x.expand(size)), moving.expanded),
    push=Linear(("input",)),
    grad=lambda p: (p.g.sum_to(p.args[0].shape),),
    torch_name="Tensor.expand",
    samples=lambda: (
        Sample((TensorSpec((3, 1)),), {"size": (3, 4)}),
        Sample((TensorSpec((3, 1)),), {"size": (2, -1, 4)}),
        Sample((TensorSpec(()),), {"size": (2, 3)}),
        Sample((TensorSpec((1, 3)),), {"size": (0, 3)}),
        Sample((TensorSpec((4, 3), contiguous=False),), {"size": (2, 4, 3)}),
    ),
)


def _flip_type(call: RuleCall) -> Type:
    source = call.tensor(0)
    axes(call, call.attrs["dims"], source.rank)
    return source


flip: Final = Op(
    name="flip",
    doc="The order of elements reversed along dims.",
    params=(operand("input"), attribute("dims", convert=kinds.axes)),
    type_rule=_flip_type,
    shape=ShapeBehaviour.IDENTITY,
    lowering=Library(
        on_tensor(lambda torch, x, dims: x.flip(dims)), fused=Elementwise(moving.flipped)
    ),
    push=Linear(("input",)),
    grad=lambda p: (flip(p.g, dims=p.attrs["dims"]),),
    samples=lambda: (
        Sample((TensorSpec((3, 4)),), {"dims": (0,)}),
        Sample((TensorSpec((3, 4)),), {"dims": (0, -1)}),
        Sample((TensorSpec((4, 3), contiguous=False),), {"dims": (1,)}),
        Sample((TensorSpec((0, 3)),), {"dims": (1,)}),
    ),
)


def _roll_type(call: RuleCall) -> Type:
    source = call.tensor(0)
    shifts, dims = call.attrs["shifts"], call.attrs["dims"]
    # A dim may be rolled twice, so this is not `axes`, which refuses a repeat.
    for d in () if dims is None else dims:
        axis(call, d, source.rank)
    if len(shifts) != (1 if dims is None else len(dims)):
        raise Clash("`roll` takes one shift per dim")
    return source


def _roll(torch: Any, x: Any, shifts: tuple[int, ...], dims: tuple[int, ...] | None) -> Any:
    return x.roll(shifts) if dims is None else x.roll(shifts, dims)


roll: Final = Op(
    name="roll",
    doc="Elements moved along dims, those that leave at one end entering at the other.",
    params=(
        operand("input"),
        attribute("shifts", convert=kinds.sizes),
        attribute("dims", None, kinds.optional(kinds.axes)),
    ),
    type_rule=_roll_type,
    shape=ShapeBehaviour.IDENTITY,
    lowering=Library(on_tensor(_roll), fused=Elementwise(moving.rolled)),
    push=Linear(("input",)),
    grad=lambda p: (roll(p.g, shifts=tuple(-s for s in p.attrs["shifts"]), dims=p.attrs["dims"]),),
    samples=lambda: (
        Sample((TensorSpec((3, 4)),), {"shifts": 1, "dims": 0}),
        Sample((TensorSpec((3, 4)),), {"shifts": (1, -2), "dims": (0, 1)}),
        Sample((TensorSpec((3, 4)),), {"shifts": 5}),
        Sample((TensorSpec((4, 3), contiguous=False),), {"shifts": 1, "dims": -1}),
        Sample((TensorSpec((0, 3)),), {"shifts": 1, "dims": 1}),
    ),
)
