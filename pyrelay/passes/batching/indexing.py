"""Batching rules of reading and writing elements by position.

Where the positions are rows, too, the numbers of the rows are one more index in front: then the
dims that index tensors select stand in front, and are moved to where they stand in one row.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, final

from ...dataclass import dataclass
from ...ir.dims import ONE, Dim, product
from ...ir.op import Op
from ...ir.types import TensorType, TupleType, bool_
from ...operators.builder import Value
from ...operators.primitive.activation import stop_gradient
from ...operators.primitive.compare import equal, where
from ...operators.primitive.embedding import embedding, embedding_grad
from ...operators.primitive.gathering import gather, index_select, scatter_add, take
from ...operators.primitive.index import extract, index, index_accumulate, scatter_at, set_at
from ...operators.primitive.parts import index_add
from ...operators.primitive.sort import searchsorted
from ...operators.primitive.view import permute
from ...operators.tiers import Body
from .rows import Mask, RowsCall, Rule
from .views import along

_WHOLE: Final = ("slice", None, None, None)
_ROW: Final = ("int", 0)


@final
@dataclass(frozen=True, slots=True)
class _Index:
    """One of the run-time indices: its value, whether it is a row, its rank in one row."""

    value: Value
    is_row: bool
    rank: int

    @property
    def is_mask(self) -> bool:
        """Whether it selects by truth."""
        ty = self.value.ty
        return isinstance(ty, TensorType) and ty.dtype == bool_

    def over(self, count: Dim, rank: int) -> Value:
        """Return it for rows whose indices have a rank together."""
        if not self.is_row:
            return self.value
        own = self.value.shape[1:]
        return self.value.reshape(count, *(ONE,) * (rank - self.rank), *own)


def _indices(rows: RowsCall) -> list[_Index]:
    pack, mask = rows.operands[1], rows.is_row[1]
    assert isinstance(pack.ty, TupleType)
    masks: tuple[Mask, ...] = mask if isinstance(mask, tuple) else (mask,) * len(pack.ty.fields)
    values = [pack[i] for i in range(len(masks))]
    return [_Index(v, bool(m), v.rank - bool(m)) for v, m in zip(values, masks, strict=True)]


def _aligned(rows: RowsCall, indices: Sequence[_Index]) -> list[tuple[Any, ...]]:
    """Return the spec of one row with the ellipsis, implied at the end, as whole slices."""
    spec = list(rows.attrs["spec"])
    used = sum(
        (indices[e[1]].rank if indices[e[1]].is_mask else 1) if e[0] == "int" else e[0] == "slice"
        for e in spec
    )
    if ("ellipsis",) not in spec:
        spec.append(("ellipsis",))
    place = spec.index(("ellipsis",))
    return [*spec[:place], *[_WHOLE] * (rows.rank() - used), *spec[place + 1 :]]


def _place(spec: Sequence[tuple[Any, ...]], together: frozenset[int]) -> int:
    """Return how many dims stand before those that index tensors select `together`: as many as
    before the first, if they are neighbours once indices of rank 0 are gone, else none."""
    kept = [e for e in spec if e[0] != "int" or e[1] in together]
    places = [i for i, e in enumerate(kept) if e[0] == "int"]
    if not places or places[-1] - places[0] != len(places) - 1:
        return 0
    return places[0]


def _moved(value: Value, start: int, width: int, to: int) -> Value:
    """Return a tensor with `width` neighbouring dims moved to another place."""
    order = [d for d in range(value.rank) if not start <= d < start + width]
    order[to:to] = range(start, start + width)
    return value if order == sorted(order) else permute(value, dims=tuple(order))


def _read(rows: RowsCall) -> Value | None:
    """Return elements read by position."""
    indices, spec = _indices(rows), rows.attrs["spec"]
    tensors = frozenset(k for k, i in enumerate(indices) if i.rank)
    aligned = _aligned(rows, indices)
    row_place = _place(aligned, tensors)
    if not any(i.is_row for i in indices) and not _moves(aligned, tensors):
        wanted = TensorType((rows.count, *rows.shape), rows.operands[0].dtype)
        return rows.emit_as(wanted, rows.operands, spec=(_WHOLE, *spec))
    if any(i.is_mask for i in indices):
        return None
    rank = max((i.rank for i in indices), default=0)
    together = tensors | {k for k, i in enumerate(indices) if i.is_row}
    found = [i.over(rows.count, rank) for i in indices]
    if rows.has(0):
        found.append(rows.places(rank))
        aligned = [("int", len(indices)), *aligned]
        place = 0
    else:
        place = _place(aligned, together)
    read = rows.emit((rows.operands[0], rows.builder.tuple(found)), spec=tuple(aligned))
    read = _moved(read, place, 1, 0)
    return _moved(read, place + 1, rank, row_place + 1)


def _moves(spec: Sequence[tuple[Any, ...]], together: frozenset[int]) -> bool:
    """Return whether index tensors are no neighbours, so that their dims stand in front."""
    kept = [e for e in spec if e[0] != "int" or e[1] in together]
    places = [i for i, e in enumerate(kept) if e[0] == "int"]
    return bool(places) and places[-1] - places[0] != len(places) - 1


def _write(rows: RowsCall) -> Value | None:
    """Return tensors with elements written, or added to, by position."""
    indices, spec = _indices(rows), rows.attrs["spec"]
    tensors = frozenset(k for k, i in enumerate(indices) if i.rank)
    aligned = _aligned(rows, indices)
    whole, pack, value = rows.whole(0), rows.operands[1], rows.operands[2]
    selected = len([e for e in aligned if e[0] != "int"])
    if any(i.is_row and i.is_mask for i in indices):
        return _write_masked(rows, whole, indices, aligned)
    if not any(i.is_row for i in indices) and not _moves(aligned, tensors):
        rank = selected + max((1 if i.is_mask else i.rank for i in indices), default=0)
        return rows.emit((whole, pack, rows.padded(2, rank)), spec=(_WHOLE, *spec))
    if any(i.is_mask for i in indices):
        return None
    rank = max((i.rank for i in indices), default=0)
    found = [*(i.over(rows.count, rank) for i in indices), rows.places(rank)]
    lead = (rows.count,) if rows.has(2) else (ONE,)
    own = rows.row_shape(2)
    value = value.reshape(*lead, *(ONE,) * (selected + rank - len(own)), *own)
    value = _moved(value, 1 + _place(aligned, tensors), rank, 1)
    spec = (("int", len(indices)), *aligned)
    return rows.emit((whole, rows.builder.tuple(found), value), spec=spec)


def _write_masked(
    rows: RowsCall, whole: Value, indices: Sequence[_Index], spec: Sequence[tuple[Any, ...]]
) -> Value | None:
    """Return tensors in which one value is written, or added, wherever a mask of the row is
    true."""
    places = [i for i, e in enumerate(spec) if e[0] == "int"]
    if len(places) != 1 or any(e not in (_WHOLE, _ROW) for e in spec):
        return None
    mask, rest = indices[0], len(spec) - 1 - places[0]
    if rows.rank(2) > rest:
        return None
    own = mask.value.shape[1:]
    chosen = mask.value.reshape(rows.count, *(ONE,) * places[0], *own, *(ONE,) * rest)
    value = rows.padded(2, whole.rank - 1)
    return where(chosen, value if rows.call.callee is set_at else whole + value, whole)


def _take_code(args: tuple[Value, ...], attrs: Mapping[str, Any]) -> Value:
    source, places = args
    flat = source.reshape(product(source.shape))
    return index(flat, places.builder.tuple((places,)), spec=(_ROW,))


def _slices(source: Value, dim: int) -> tuple[tuple[Any, ...], ...]:
    return (*(_WHOLE,) * (dim % source.rank), _ROW)


def _listed(places: Value) -> Value:
    """Return positions along a dim as the indices of a row of them."""
    flat = places if places.rank else places.unsqueeze(0)
    return places.builder.tuple((flat,))


def _select_code(args: tuple[Value, ...], attrs: Mapping[str, Any]) -> Value:
    return index(args[0], _listed(args[1]), spec=_slices(args[0], attrs["dim"]))


def _index_add_code(args: tuple[Value, ...], attrs: Mapping[str, Any]) -> Value:
    x, places, source = args
    scaled = source if attrs["alpha"] == 1 else source * attrs["alpha"]
    return index_accumulate(x, _listed(places), scaled, spec=_slices(x, attrs["dim"]))


def _shared_places(rows: RowsCall) -> Value | None:
    """Return slices selected, or added to, at the same positions in every row."""
    if rows.has(1) or not rows.rank():
        return None
    operands = [rows.operands[1] if i == 1 else rows.whole(i) for i in range(len(rows.operands))]
    return rows.emit(operands, dim=rows.attrs["dim"] % rows.rank() + 1)


def _numbered(rows: RowsCall, operand: int, each: Dim) -> Value:
    """Return numbers below `each` of every row as numbers among those of all rows."""
    numbers, rank = rows.whole(operand), rows.rank(operand)
    return numbers + rows.places(rank) * rows.builder.size(each)


def _embedding(rows: RowsCall) -> Value:
    """Return rows of a table; with a table for each row, of all tables one behind another."""
    if not rows.has(1):
        return rows.emit(rows.operands)
    tables, padding = rows.operands[1], rows.attrs["padding_idx"]
    _, size, width = tables.shape
    flat = tables.reshape(rows.count * size, width)
    found = rows.emit((_numbered(rows, 0, size), flat), padding_idx=None)
    if padding is None:
        return found
    return where(_is_padding(rows, 0, padding, size), stop_gradient(found), found)


def _embedding_grad(rows: RowsCall) -> Value:
    """Return the cotangents of the tables of all rows, one behind another."""
    size = Dim.of(rows.attrs["num_embeddings"])
    operands = rows.whole(0), _numbered(rows, 1, size)
    found = rows.emit(operands, num_embeddings=rows.count * size)
    return found.reshape(rows.count, *rows.shape)


def _is_padding(rows: RowsCall, operand: int, padding: Any, size: Dim) -> Value:
    number = Dim.of(padding)
    if number.constant is not None and number.constant < 0:
        number = number + size
    return equal(rows.whole(operand), rows.builder.size(number)).unsqueeze(-1)


def _searchsorted(rows: RowsCall) -> Value:
    """Return positions in sorted lines, of which there is one or one for each line of `input`."""
    if not rows.has(0) and rows.rank(0) == 1:
        return rows.emit(rows.operands)
    lines, values = rows.whole(0), rows.whole(1)
    if rows.rank(0) > 1:
        return rows.emit((lines, values))
    flat = values.reshape(rows.count, product(values.shape[1:]))
    return rows.emit((lines, flat)).reshape(rows.count, *rows.shape)


RULES: Final[Mapping[Op, Rule]] = {
    index: _read,
    extract: _read,
    set_at: _write,
    index_accumulate: _write,
    scatter_at: _write,
    gather: along("dim"),
    scatter_add: along("dim"),
    index_select: _shared_places,
    index_add: _shared_places,
    embedding: _embedding,
    embedding_grad: _embedding_grad,
    searchsorted: _searchsorted,
}

BODIES: Final[Mapping[Op, Body]] = {
    take: _take_code,
    index_select: _select_code,
    index_add: _index_add_code,
}
"""Equivalent code of one row, batched where a rule gives nothing."""
