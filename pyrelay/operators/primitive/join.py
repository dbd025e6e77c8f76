"""Tensors put together and taken apart: joining, splitting, padding, repeating."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from ...ir.declaration import attribute_kinds as kinds
from ...ir.dims import ONE, ZERO, Dim
from ...ir.op import (
    Clash,
    Elementwise,
    Expansion,
    Layouts,
    Library,
    Linear,
    MadeOf,
    Op,
    Promotion,
    Pullback,
    Pushforward,
    RuleCall,
    Sample,
    Scatter,
    ShapeBehaviour,
    TensorSpec,
    attribute,
    operand,
)
from ...ir.rules import axis, common_dtype, joined_dim
from ...ir.types import TensorType, Type, show
from ..shared import joining
from ..shared.operands import as_tensor, as_tensors, fields, on_tensor
from . import index

if TYPE_CHECKING:
    from ..builder import Value


def parts(call: RuleCall) -> tuple[TensorType, ...]:
    """Return the types of one or more tensors of one rank. Raises Stuck or Clash."""
    tensors = call.tensors(0)
    if not tensors:
        raise Clash(f"`{call.op.name}` needs at least one tensor", labels={0: "this is empty"})
    ranks = sorted({t.rank for t in tensors})
    if len(ranks) > 1:
        call.clash(
            f"`{call.op.name}` takes tensors of one rank, not of {ranks[0]} and {ranks[-1]} dims", 0
        )
    return tensors


def _unify_but(call: RuleCall, tensors: Sequence[TensorType], dim: int | None) -> None:
    """Make the shapes equal, except in `dim`. Raises Clash."""
    first = tensors[0]
    for place, other in enumerate(tensors[1:], 1):
        for d, (have, want) in enumerate(zip(other.shape, first.shape, strict=True)):
            if d == dim:
                continue
            try:
                call.solver.unify_dims(have, want)
            except Clash:
                call.clash(
                    f"`{call.op.name}` takes tensors that agree in dim {d}: the first is "
                    f"{show(first)}, number {place + 1} is {show(other)}",
                    0,
                )


def _cat_type(call: RuleCall) -> Type:
    tensors = parts(call)
    if tensors[0].rank == 0:
        call.clash("`cat` takes no numbers", 0, help="relay.stack makes a tensor of numbers")
    dim = axis(call, call.attrs["dim"], tensors[0].rank)
    return TensorType(joined_shape(call, tensors, dim), common_dtype(call, tensors))


def joined_shape(call: RuleCall, tensors: Sequence[TensorType], dim: int) -> tuple[Dim, ...]:
    """Return the shape of tensors of one rank put one after the other along a dim counted from 0.
    Raises Clash."""
    _unify_but(call, tensors, dim)
    total = sum((t.shape[dim] for t in tensors), ZERO)
    shape = merged_shape(call, tensors)
    return (*shape[:dim], total, *shape[dim + 1 :])


def merged_shape(call: RuleCall, tensors: Sequence[TensorType]) -> tuple[Dim, ...]:
    """Return the shape of tensors, in each dim that of the tensor that says most."""
    shape = tensors[0].shape
    for other in tensors[1:]:
        shape = tuple(joined_dim(call, b, a) for a, b in zip(shape, other.shape, strict=True))
    return shape


def slice_along(value: Value, dim: int, start: Dim, stop: Dim) -> Value:
    """Return the part of a tensor from `start` to `stop` along a dim counted from 0."""
    whole = ("slice", None, None, None)
    spec = (*(whole,) * dim, ("slice", start, stop, None))
    return index.index(value, value.builder.unit(), spec=spec)


def _cat_grad(p: Pullback) -> tuple[Value]:
    dim = p.attrs["dim"] % p.g.rank
    parts: list[Value] = []
    start = ZERO
    for part in fields(p.args[0]):
        stop = start + part.shape[dim]
        parts.append(slice_along(p.g, dim, start, stop).reshape(*part.shape))
        start = stop
    return (p.g.builder.tuple(parts),)


_THREE: Final = (TensorSpec((2, 3)), TensorSpec((1, 3)), TensorSpec((2, 3), contiguous=False))


cat: Final = Op(
    name="cat",
    doc="Tensors put one after the other along a dim.",
    params=(operand("tensors", promote=True), attribute("dim", 0, kinds.axis)),
    promotion=Promotion.COMMON,
    type_rule=_cat_type,
    shape=ShapeBehaviour.VARIADIC,
    layouts=Layouts.IMAGES,
    lowering=Library(
        lambda torch, tensors, dim: torch.cat(as_tensors(torch, tensors), dim),
        fused=Elementwise(joining.one_after_another),
    ),
    push=Linear(("tensors",)),
    grad=_cat_grad,
    samples=lambda: (
        Sample((_THREE,)),
        Sample(((TensorSpec((2, 3)), TensorSpec((2, 1))),), {"dim": -1}),
        Sample(((TensorSpec((4,)),),)),
        Sample(((TensorSpec((4,)), TensorSpec((2,), "int64", 0, 5)),)),
        Sample(((TensorSpec((0, 3)), TensorSpec((2, 3))),)),
    ),
)


def _stack_type(call: RuleCall) -> Type:
    tensors = parts(call)
    dim = axis(call, call.attrs["dim"], tensors[0].rank + 1)
    _unify_but(call, tensors, None)
    shape = merged_shape(call, tensors)
    count = Dim.of(len(tensors))
    return TensorType((*shape[:dim], count, *shape[dim:]), common_dtype(call, tensors))


def _stack_grad(p: Pullback) -> tuple[Value]:
    parts = [select(p.g, p.attrs["dim"], i) for i in range(len(fields(p.args[0])))]
    return (p.g.builder.tuple(parts),)


def select(value: Value, dim: int, place: int) -> Value:
    """Return one element along a dim, the dim dropped."""
    builder = value.builder
    whole = ("slice", None, None, None)
    spec = (*(whole,) * (dim % value.rank), ("int", 0))
    return index.index(value, builder.tuple((builder.size(place),)), spec=spec)


stack: Final = Op(
    name="stack",
    doc="Tensors of one shape put side by side in a new dim.",
    params=(operand("tensors", promote=True), attribute("dim", 0, kinds.axis)),
    promotion=Promotion.COMMON,
    type_rule=_stack_type,
    shape=ShapeBehaviour.VARIADIC,
    lowering=Library(
        lambda torch, tensors, dim: torch.stack(as_tensors(torch, tensors), dim),
        fused=Elementwise(joining.side_by_side),
    ),
    push=Linear(("tensors",)),
    grad=_stack_grad,
    samples=lambda: (
        Sample(((TensorSpec((2, 3)), TensorSpec((2, 3), contiguous=False)),)),
        Sample(((TensorSpec((2, 3)), TensorSpec((2, 3))),), {"dim": -1}),
        Sample(((TensorSpec(()), TensorSpec(()), 2.5, 3),)),
        Sample(((TensorSpec((0, 3)), TensorSpec((0, 3))),), {"dim": 1}),
    ),
)


def _pad_pairs(call: RuleCall, rank: int) -> list[tuple[Any, Any]]:
    """Return the padding of each dim, from the first; torch counts pairs from the last."""
    pad: tuple[Any, ...] = call.attrs["pad"]
    if len(pad) % 2 or len(pad) > 2 * rank:
        call.clash(f"`pad` takes a pair per dim, from the last dim on, not {pad}", 0)
    pairs = [(pad[i], pad[i + 1]) for i in range(0, len(pad), 2)]
    return [(0, 0)] * (rank - len(pairs)) + pairs[::-1]


def _pad_type(call: RuleCall) -> Type:
    source = call.tensor(0)
    pairs = _pad_pairs(call, source.rank)
    mode = call.attrs["mode"]
    if mode not in _MODES:
        call.clash(f"`pad` knows the modes {', '.join(_MODES)}, not {mode}")
    sizes: list[Dim] = []
    for size, (before, after) in zip(source.shape, pairs, strict=True):
        padded = size + before + after
        sizes.append(padded)
        if padded.constant is not None and padded.constant < 0:
            call.clash(f"`pad` cuts {before} and {after} off a size of {size}", 0)
        if mode != "constant" and (before, after) != (0, 0):
            _check_copied(call, mode, size, before, after)
    return TensorType(tuple(sizes), source.dtype)


def _check_copied(call: RuleCall, mode: str, size: Dim, before: Any, after: Any) -> None:
    limit = size.constant
    if limit is None or isinstance(before, Dim) or isinstance(after, Dim):
        return
    most = {"reflect": limit - 1, "circular": limit}.get(mode, max(before, after))
    if max(before, after) > most:
        call.clash(f"`pad` with mode={mode!r} copies at most {most} of a size of {size}", 0)


_MODES: Final = ("constant", "reflect", "replicate", "circular")


def _source_places(torch: Any, size: int, before: int, after: int, mode: str, device: Any) -> Any:
    """Return the place that each place along a padded dim copies."""
    places = torch.arange(-before, size + after, device=device)
    if mode == "replicate":
        return places.clamp(0, size - 1)
    if mode == "circular":
        return places % size
    places = places.abs()
    return torch.where(places < size, places, 2 * (size - 1) - places)


def _pad(torch: Any, x: Any, pad: tuple[int, ...], mode: str, value: float | None) -> Any:
    x = as_tensor(torch, x)
    if mode == "constant":
        return torch.nn.functional.pad(x, pad, mode, value)
    # torch copies borders for some ranks only; taking them by position works for all.
    for i in range(0, len(pad), 2):
        dim = x.dim() - 1 - i // 2
        if pad[i] or pad[i + 1]:
            places = _source_places(torch, x.shape[dim], pad[i], pad[i + 1], mode, x.device)
            x = x.index_select(dim, places)
    return x


def _pad_grad(p: Pullback) -> tuple[Value]:
    if p.attrs["mode"] == "constant":
        return (pad(p.g, pad=tuple(-v for v in p.attrs["pad"])),)
    return (pad_fold(p.g, pad=p.attrs["pad"], mode=p.attrs["mode"]),)


def _pad_push(p: Pushforward) -> Value:
    (tangent,) = p.tangents
    assert tangent is not None
    return pad(tangent, pad=p.attrs["pad"], mode=p.attrs["mode"])


pad: Final = Op(
    name="pad",
    doc="A tensor with elements added before and after, pairs of numbers from the last dim on.",
    params=(
        operand("input"),
        attribute("pad", convert=kinds.sizes),
        attribute("mode", "constant", kinds.text),
        attribute("value", None, kinds.optional(kinds.scalar)),
    ),
    type_rule=_pad_type,
    shape=ShapeBehaviour.N_DIMENSIONAL,
    lowering=Library(_pad, fused=Elementwise(joining.padded)),
    grad=_pad_grad,
    push=_pad_push,
    torch_name="nn.functional.pad",
    samples=lambda: (
        Sample((TensorSpec((2, 3)),), {"pad": (1, 2)}),
        Sample((TensorSpec((2, 3)),), {"pad": (1, 0, 0, 2), "value": 1.5}),
        Sample((TensorSpec((2, 5)),), {"pad": (-1, -2)}),
        Sample((TensorSpec((0, 3)),), {"pad": (1, 1)}),
        Sample((TensorSpec((1, 2, 4)),), {"pad": (2, 1), "mode": "reflect"}),
        Sample((TensorSpec((1, 2, 4)),), {"pad": (2, 5), "mode": "replicate"}),
        Sample((TensorSpec((1, 2, 4), contiguous=False),), {"pad": (4, 1), "mode": "circular"}),
    ),
)


def _pad_fold_type(call: RuleCall) -> Type:
    source = call.tensor(0)
    pairs = _pad_pairs(call, source.rank)
    sizes = (d - before - after for d, (before, after) in zip(source.shape, pairs, strict=True))
    return TensorType(tuple(sizes), source.dtype)


def _pad_fold(torch: Any, g: Any, pad: tuple[int, ...], mode: str) -> Any:
    for i in range(0, len(pad), 2):
        dim = g.dim() - 1 - i // 2
        if not (pad[i] or pad[i + 1]):
            continue
        shape = list(g.shape)
        shape[dim] -= pad[i] + pad[i + 1]
        places = _source_places(torch, shape[dim], pad[i], pad[i + 1], mode, g.device)
        g = g.new_zeros(shape).index_add(dim, places, g)
    return g


pad_fold: Final = Op(
    name="pad_fold",
    doc="The elements that `pad` copied outwards added to those they came from.",
    params=(
        operand("input"),
        attribute("pad", convert=kinds.sizes),
        attribute("mode", convert=kinds.text),
    ),
    type_rule=_pad_fold_type,
    shape=ShapeBehaviour.N_DIMENSIONAL,
    lowering=Library(_pad_fold, fused=Scatter(base=None, over=0, body=joining.folded)),
    push=Linear(("input",)),
    grad=lambda p: (pad(p.g, pad=p.attrs["pad"], mode=p.attrs["mode"]),),
    samples=lambda: (
        Sample((TensorSpec((2, 7)),), {"pad": (2, 1), "mode": "reflect"}),
        Sample((TensorSpec((2, 7)),), {"pad": (2, 1), "mode": "replicate"}),
        Sample((TensorSpec((2, 7), contiguous=False),), {"pad": (2, 1), "mode": "circular"}),
        Sample((TensorSpec((0, 7)),), {"pad": (2, 1), "mode": "reflect"}),
    ),
)


def _copies(name: str, attr: str, doc: str, torch_name: str) -> Op:
    """Return the operator that puts copies of a tensor side by side; torch's names for it differ
    in the numbers that may be left out."""

    def both(call_shape: tuple[Dim, ...], times: Sequence[Any]) -> list[tuple[Dim, Dim]]:
        rank = max(len(call_shape), len(times))
        shape = (ONE,) * (rank - len(call_shape)) + call_shape
        counts = (ONE,) * (rank - len(times)) + tuple(map(Dim.of, times))
        return list(zip(counts, shape, strict=True))

    def type_rule(call: RuleCall) -> Type:
        source, times = call.tensor(0), call.attrs[attr]
        if len(times) < source.rank and name == "repeat":
            call.clash(f"`repeat` takes a number per dim: {len(times)} for {show(source)}", 0)
        return TensorType(tuple(t * n for t, n in both(source.shape, times)), source.dtype)

    def code(args: tuple[Value, ...], attrs: Mapping[str, Any]) -> Value:
        (x,) = args
        pairs = both(x.shape, attrs[attr])
        ones = x.reshape(*(d for _, n in pairs for d in (ONE, n)))
        return ones.expand(tuple(d for pair in pairs for d in pair)).reshape(
            *(t * n for t, n in pairs)
        )

    return Op(
        name=name,
        doc=doc,
        params=(operand("input"), attribute(attr, convert=kinds.sizes)),
        type_rule=type_rule,
        shape=ShapeBehaviour.FIXED,
        lowering=Library(
            on_tensor(lambda torch, x, times: getattr(x, name)(times)), fused=MadeOf(code)
        ),
        grad=Expansion(code),
        torch_name=torch_name,
        samples=lambda: (
            *((Sample((TensorSpec((2, 3)),), {attr: (2,)}),) if name == "tile" else ()),
            Sample((TensorSpec((2, 3)),), {attr: (2, 1)}),
            Sample((TensorSpec((2, 3)),), {attr: (2, 1, 3)}),
            Sample((TensorSpec(()),), {attr: (4,)}),
            Sample((TensorSpec((0, 3)),), {attr: (2, 2)}),
            Sample((TensorSpec((4, 3), contiguous=False),), {attr: (1, 2)}),
        ),
    )


repeat: Final = _copies(
    "repeat", "repeats", "A tensor repeated along each dim, as Tensor.repeat.", "Tensor.repeat"
)
tile: Final = _copies(
    "tile", "dims", "A tensor repeated along its last dims, as numpy's tile.", "tile"
)
