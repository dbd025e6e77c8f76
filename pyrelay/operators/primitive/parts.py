"""Parts of a tensor along one dim: one place, a run of places, even parts, all places."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from ...ir.declaration import attribute_kinds as kinds
from ...ir.declaration.elements import Elements, Place, Source, number_element
from ...ir.dims import ZERO, Dim, DimHole
from ...ir.op import (
    Elementwise,
    Expansion,
    Layouts,
    Library,
    Linear,
    MadeOf,
    Op,
    Promotion,
    Pullback,
    RuleCall,
    Sample,
    Scatter,
    ShapeBehaviour,
    Stuck,
    TensorSpec,
    View,
    attribute,
    operand,
)
from ...ir.rules import axis, common_dtype, integral, with_rank
from ...ir.types import SizeType, TensorType, TupleType, Type
from ..shared import moving
from ..shared.operands import as_positions, as_tensors, fields
from . import gathering, index, join

if TYPE_CHECKING:
    from ..builder import Value

_WHOLE: Final = ("slice", None, None, None)
_MATRIX: Final = TensorSpec((4, 3))


def _with_size(source: TensorType, dim: int, *sizes: Dim) -> TensorType:
    """Return the type with other sizes in place of a dim counted from 0."""
    return TensorType((*source.shape[:dim], *sizes, *source.shape[dim + 1 :]), source.dtype)


def _select_type(call: RuleCall) -> Type:
    source = call.tensor(0)
    dim = axis(call, call.attrs["dim"], source.rank)
    integral(call, 1)
    with_rank(call, 1, 0)
    place, size = call.type(1), source.shape[dim].constant
    value = place.dim.constant if isinstance(place, SizeType) else None
    if value is not None and size is not None and not -size <= value < size:
        call.clash(f"index {value} is out of range for a dim of size {size}", 0)
    return _with_size(source, dim)


def _select_code(args: tuple[Value, ...], dim: int) -> Value:
    source, place = args
    spec = (*(_WHOLE,) * (dim % source.rank), ("int", 0))
    return index.index(source, source.builder.tuple((place,)), spec=spec)


def _select_element(k: Elements, place: Place, x: Source, at: Source, dim: int) -> Any:
    dim %= len(x.shape)
    chosen = k.coordinate(at(), x.shape[dim])
    return x(*place.index[:dim], chosen, *place.index[dim:])


select: Final = Op(
    name="select",
    doc="The elements at one place along a dim, the dim dropped.",
    params=(operand("input"), attribute("dim", convert=kinds.axis), operand("index")),
    type_rule=_select_type,
    shape=ShapeBehaviour.N_DIMENSIONAL,
    lowering=Library(
        lambda torch, x, place, dim: torch.select(x, dim, int(place)),
        fused=Elementwise(_select_element),
    ),
    grad=Expansion(lambda args, attrs: _select_code(args, attrs["dim"])),
    samples=lambda: (
        Sample((_MATRIX, 1), {"dim": 0}),
        Sample((_MATRIX, -1), {"dim": -1}),
        Sample((TensorSpec((0, 3)), 2), {"dim": 1}),
        Sample((TensorSpec((4, 3), contiguous=False), 2), {"dim": 1}),
    ),
)


def _narrow_type(call: RuleCall) -> Type:
    source = call.tensor(0)
    dim = axis(call, call.attrs["dim"], source.rank)
    size = source.shape[dim].constant
    start, length = call.attrs["start"], call.attrs["length"]
    if isinstance(size, int) and isinstance(start, int) and isinstance(length, int):
        first = start + size if start < 0 else start
        if length < 0 or not 0 <= first <= size - length:
            call.clash(f"{length} elements from {start} do not lie in a dim of size {size}", 0)
    return _with_size(source, dim, Dim.of(length))


def _narrow_grad(p: Pullback) -> tuple[Value]:
    source = p.args[0]
    dim, start = p.attrs["dim"] % source.rank, Dim.of(p.attrs["start"])
    if (start.constant or 0) < 0:
        start = source.shape[dim] + start
    spec = (*(_WHOLE,) * dim, ("slice", start, start + p.attrs["length"], None))
    blank = source.builder.zeros(source.ty)
    return (index.index_accumulate(blank, source.builder.unit(), p.g, spec=spec),)


narrow: Final = Op(
    name="narrow",
    doc="The `length` elements from `start` on along a dim; unlike a slice it never clamps.",
    params=(
        operand("input"),
        attribute("dim", convert=kinds.axis),
        attribute("start", convert=kinds.size),
        attribute("length", convert=kinds.size),
    ),
    type_rule=_narrow_type,
    shape=ShapeBehaviour.N_DIMENSIONAL,
    lowering=View(
        lambda torch, x, dim, start, length: torch.narrow(x, dim, start, length), moving.narrowed
    ),
    push=Linear(("input",)),
    grad=_narrow_grad,
    samples=lambda: (
        Sample((_MATRIX,), {"dim": 0, "start": 1, "length": 2}),
        Sample((_MATRIX,), {"dim": -1, "start": -2, "length": 2}),
        Sample((TensorSpec((0, 3)),), {"dim": 0, "start": 0, "length": 0}),
        Sample((TensorSpec((4, 3), contiguous=False),), {"dim": 1, "start": 0, "length": 1}),
    ),
)


def _size_along(call: RuleCall) -> tuple[TensorType, int, Dim]:
    """Return the operand, the dim counted from 0, and its size. Raises Stuck on an unknown size."""
    source = call.tensor(0)
    dim = axis(call, call.attrs["dim"], source.rank)
    size = call.solver.resolve_dim(source.shape[dim])
    if isinstance(size.single, DimHole):
        raise Stuck(size)
    return source, dim, size


def _chunk_sizes(call: RuleCall, size: Dim, chunks: int) -> tuple[Dim, ...]:
    if chunks < 1:
        call.clash(f"`chunk` makes at least one part, not {chunks}")
    if not size.constant:
        each = size // chunks
        message = f"`chunk` makes {chunks} parts of one size, which {size} cannot be cut into"
        call.unify_dims(size, chunks * each, 0, message)
        return (each,) * chunks
    each = -(-size.constant // chunks)
    starts = range(0, size.constant, each)
    return tuple(Dim.of(min(each, size.constant - s)) for s in starts)


def _chunk_type(call: RuleCall) -> Type:
    source, dim, size = _size_along(call)
    sizes = _chunk_sizes(call, size, call.attrs["chunks"])
    return TupleType(tuple(_with_size(source, dim, s) for s in sizes))


chunk: Final = Op(
    name="chunk",
    doc="A tensor cut along a dim into `chunks` parts, the last of which may be smaller; a tuple. "
    "A named size must be a multiple of `chunks`.",
    params=(
        operand("input"),
        attribute("chunks", convert=kinds.whole),
        attribute("dim", 0, kinds.axis),
    ),
    type_rule=_chunk_type,
    shape=ShapeBehaviour.N_DIMENSIONAL,
    lowering=View(
        lambda torch, x, chunks, dim: tuple(torch.chunk(x, chunks, dim)),
        MadeOf(lambda args, attrs: _cut_as(chunk, args[0], attrs)),
    ),
    push=Linear(("input",)),
    grad=lambda p: (join.cat(p.g, dim=p.attrs["dim"]),),
    samples=lambda: (
        Sample((_MATRIX,), {"chunks": 2}),
        Sample((TensorSpec((5, 3)),), {"chunks": 4}),
        Sample((TensorSpec((2, 6)),), {"chunks": 3, "dim": -1}),
        Sample((TensorSpec((0, 3)),), {"chunks": 2}),
        Sample((TensorSpec((4, 3), contiguous=False),), {"chunks": 2}),
    ),
)


def _cut_as(op: Op, source: Value, attrs: Mapping[str, Any]) -> Value:
    """Return the parts along the attribute `dim` into which an operator cuts a tensor, as views."""
    ty = source.builder.result_type(op, (source,), attrs)
    assert isinstance(ty, TupleType)
    dim = attrs["dim"]
    parts: list[Value] = []
    start = ZERO
    for part in ty.fields:
        assert isinstance(part, TensorType)
        parts.append(narrow(source, dim=dim, start=start, length=part.shape[dim]))
        start = start + part.shape[dim]
    return source.builder.tuple(parts)


def _sections(value: Any) -> Any:
    """Return one size as it is, several as a tuple: the normal form of `split`."""
    return kinds.sizes(value) if isinstance(value, tuple | list) else kinds.size(value)


def _split_sizes(call: RuleCall, size: Dim) -> tuple[Dim, ...]:
    wanted = call.attrs["split_size_or_sections"]
    if isinstance(wanted, tuple):
        sizes = tuple(Dim.of(s) for s in wanted)
        total = sum(sizes, ZERO)
        call.unify_dims(total, size, 0, f"`split` has sections of {total} for a size of {size}")
        return sizes
    if isinstance(size.single, DimHole):
        raise Stuck(size)
    each = Dim.of(wanted)
    a, b = size.constant, each.constant
    if a is not None and b:
        rest = (Dim.of(a % b),) if a % b else ()
        return (each,) * (a // b) + rest or (ZERO,)
    count = size.exact_quotient(each)
    if count is None or count.constant is None:
        call.clash(
            f"`split` cannot tell how many parts of {each} a size of {size} has",
            0,
            help="write the sections: split(x, (n, m))",
        )
    return (each,) * count.constant


def _split_type(call: RuleCall) -> Type:
    source = call.tensor(0)
    dim = axis(call, call.attrs["dim"], source.rank)
    sizes = _split_sizes(call, source.shape[dim])
    shape = source.shape
    return TupleType(
        tuple(TensorType((*shape[:dim], s, *shape[dim + 1 :]), source.dtype) for s in sizes)
    )


def _split(torch: Any, x: Any, sizes: Any, dim: int) -> Any:
    # torch.split is written in Python, and slower.
    if isinstance(sizes, tuple):
        return x.split_with_sizes(sizes, dim)
    return tuple(torch.split(x, sizes, dim))


def _split_grad(p: Pullback) -> tuple[Value]:
    return (join.cat(p.g, dim=p.attrs["dim"]),)


split: Final = Op(
    name="split",
    doc="A tensor cut along a dim into parts of one size, or of the sizes given; a tuple.",
    params=(
        operand("tensor"),
        attribute("split_size_or_sections", convert=_sections),
        attribute("dim", 0, kinds.axis),
    ),
    type_rule=_split_type,
    shape=ShapeBehaviour.N_DIMENSIONAL,
    layouts=Layouts.IMAGES,
    lowering=View(_split, MadeOf(lambda args, attrs: _cut_as(split, args[0], attrs))),
    push=Linear(("tensor",)),
    grad=_split_grad,
    samples=lambda: (
        Sample((TensorSpec((5, 3)),), {"split_size_or_sections": 2}),
        Sample((TensorSpec((5, 3)),), {"split_size_or_sections": (1, 4)}),
        Sample((TensorSpec((2, 6)),), {"split_size_or_sections": 3, "dim": -1}),
        Sample((TensorSpec((0, 3)),), {"split_size_or_sections": 2}),
        Sample((TensorSpec((4, 3), contiguous=False),), {"split_size_or_sections": 2}),
    ),
)


def _unbind_type(call: RuleCall) -> Type:
    source, dim, size = _size_along(call)
    if size.constant is None:
        call.clash(
            f"`unbind` gives a tuple, whose length must be known: it cannot be {size}",
            0,
            help="loop over the tensor: `for row in x:`",
        )
    return TupleType((_with_size(source, dim),) * size.constant)


def _unbind_grad(p: Pullback) -> tuple[Value]:
    source = p.args[0]
    if not source.shape[p.attrs["dim"]].constant:
        return (source.builder.zeros(source.ty),)
    return (join.stack(p.g, dim=p.attrs["dim"]),)


def _unbind_code(args: tuple[Value, ...], attrs: Mapping[str, Any]) -> Value:
    (source,) = args
    dim = attrs["dim"] % source.rank
    rest = (*source.shape[:dim], *source.shape[dim + 1 :])
    rows = range(source.shape[dim].constant or 0)
    parts = [narrow(source, dim=dim, start=i, length=1).reshape(*rest) for i in rows]
    return source.builder.tuple(parts)


unbind: Final = Op(
    name="unbind",
    doc="The parts of a tensor at each place along a dim, the dim dropped; a tuple.",
    params=(operand("input"), attribute("dim", 0, kinds.axis)),
    type_rule=_unbind_type,
    shape=ShapeBehaviour.N_DIMENSIONAL,
    lowering=View(lambda torch, x, dim: tuple(torch.unbind(x, dim)), MadeOf(_unbind_code)),
    push=Linear(("input",)),
    grad=_unbind_grad,
    samples=lambda: (
        Sample((_MATRIX,)),
        Sample((_MATRIX,), {"dim": -1}),
        Sample((TensorSpec((2, 0)),)),
        Sample((TensorSpec((4, 3), contiguous=False),), {"dim": 1}),
    ),
)


def _stacked(name: str, doc: str, least_rank: int, dim: int) -> Op:
    """Return the operator that joins tensors along `dim`, each with at least `least_rank` dims:
    of fewer dims, a tensor is first made one row."""

    def along(rank: int) -> int:
        return dim if rank > dim else 0

    def raised(shape: tuple[Dim, ...]) -> tuple[Dim, ...]:
        return (*(Dim.of(1),) * (least_rank - len(shape)), *shape)

    def type_rule(call: RuleCall) -> Type:
        given = join.parts(call)
        tensors = [TensorType(raised(t.shape), t.dtype) for t in given]
        place = along(tensors[0].rank)
        shape = join.joined_shape(call, tensors, place)
        return TensorType(shape, common_dtype(call, tensors))

    def code(args: tuple[Value, ...]) -> Value:
        whole = [v.reshape(*raised(v.shape)) for v in fields(args[0])]
        return join.cat(args[0].builder.tuple(whole), dim=along(whole[0].rank))

    return Op(
        name=name,
        doc=doc,
        params=(operand("tensors", promote=True),),
        promotion=Promotion.COMMON,
        type_rule=type_rule,
        shape=ShapeBehaviour.VARIADIC,
        lowering=Library(
            lambda torch, tensors: getattr(torch, name)(as_tensors(torch, tensors)),
            fused=MadeOf(lambda args, _: code(args)),
        ),
        grad=Expansion(lambda args, _: code(args)),
        samples=lambda: (
            Sample(((TensorSpec((2, 3)), TensorSpec((2, 3), contiguous=False)),)),
            Sample(((TensorSpec((3,)), TensorSpec((3,))),)),
            Sample(((TensorSpec(()), TensorSpec(()), 2.5),)),
            Sample(((TensorSpec((0, 3)), TensorSpec((0, 3))),)),
        ),
    )


hstack: Final = _stacked("hstack", "Tensors joined along the columns; vectors end to end.", 1, 1)
vstack: Final = _stacked("vstack", "Tensors joined along the rows; a vector is one row.", 2, 0)


def _index_add_type(call: RuleCall) -> Type:
    target, source = call.tensor(0), call.tensor(2)
    positions = integral(call, 1)
    with_rank(call, 1, 1)
    dim = axis(call, call.attrs["dim"], target.rank)
    wanted = _with_size(target, dim, positions.shape[0])
    if source.rank != target.rank:
        call.clash("`index_add` adds a tensor of the rank of the input", 0, 2)
    for have, want in zip(source.shape, wanted.shape, strict=True):
        message = f"`index_add` adds one slice for each position: {have} is not {want}"
        call.unify_dims(have, want, 2, message)
    return target


def _index_add(torch: Any, x: Any, at: Any, source: Any, dim: int, alpha: float) -> Any:
    return torch.index_add(x, dim, as_positions(torch, at, x), source, alpha=alpha)


def _index_add_in_place(torch: Any, x: Any, at: Any, source: Any, dim: int, alpha: float) -> Any:
    return x.index_add_(dim, as_positions(torch, at, x), source, alpha=alpha)


def _index_add_grad(p: Pullback) -> tuple[Value, None, Value]:
    picked = gathering.index_select(p.g, p.args[1], dim=p.attrs["dim"])
    return p.g, None, picked if p.attrs["alpha"] == 1 else picked * p.attrs["alpha"]


def _index_add_element(
    k: Elements, place: Place, x: Source, at: Source, source: Source, dim: int, alpha: Any
) -> Any:
    index = list(place.index)
    index[dim] = k.coordinate(at(index[dim]), x.shape[dim], from_end=False)
    value = source(*place.index)
    if alpha == 1:
        return index, value
    return index, k.mul(value, number_element(k, alpha, source.dtype))


index_add: Final = Op(
    name="index_add",
    doc="The tensor with slices of `source`, times `alpha`, added at positions along a dim. On a "
    "GPU slices at one position are added in any order.",
    params=(
        operand("input", promote=True),
        attribute("dim", convert=kinds.axis),
        operand("index"),
        operand("source", promote=True),
        attribute("alpha", 1, kinds.number),
    ),
    promotion=Promotion.COMMON,
    type_rule=_index_add_type,
    shape=ShapeBehaviour.N_DIMENSIONAL,
    lowering=Library.updating(
        _index_add, _index_add_in_place, Scatter(base=0, over=2, body=_index_add_element)
    ),
    push=Linear(("input", "source")),
    grad=_index_add_grad,
    samples=lambda: (
        Sample((_MATRIX, TensorSpec((5,), "int64", 0, 4), TensorSpec((5, 3))), {"dim": 0}),
        Sample(
            (_MATRIX, TensorSpec((2,), "int64", 0, 3), TensorSpec((4, 2))),
            {"dim": -1, "alpha": 2.5},
        ),
        Sample((_MATRIX, TensorSpec((0,), "int64", 0, 4), TensorSpec((0, 3))), {"dim": 0}),
        Sample(
            (
                TensorSpec((4, 3), contiguous=False),
                TensorSpec((3,), "int64", 0, 4),
                TensorSpec((3, 3), contiguous=False),
            ),
            {"dim": 0},
        ),
    ),
)
