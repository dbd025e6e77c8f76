"""Reading and writing elements by position.

In torch reading is one Python index, after dims with a negative step are flipped. Writing needs a
view of the place first, and then the index tensors, because torch adds at repeated positions only
so.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from ...ir.op import (
    Elementwise,
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
    TensorSpec,
    attribute,
    operand,
)
from ...ir.types import DTypeKind, TensorType, Type
from ..shared import index_element
from ..shared.index_spec import Spec, normal_spec, result_shape, write_type
from ..shared.operands import as_tensor, fields, is_given
from .compare import less, where
from .embedding import rows_grad

if TYPE_CHECKING:
    from ...ir.dims import Dim
    from ..builder import Value


def python_index(
    torch: Any, x: Any, spec: Spec, indices: Sequence[Any]
) -> tuple[tuple[int, ...], tuple[Any, ...]]:
    """Return the dims of `x` to flip first, and then the index: torch has no negative steps."""
    flips: list[int] = []
    items: list[Any] = []
    place = 0
    for entry in _written_out(torch, x.dim(), spec, indices):
        match entry:
            case ("new",):
                items.append(None)
            case ("slice", start, stop, step):
                if step is not None and step < 0:
                    flips.append(place)
                    items.append(_flipped(x.shape[place], start, stop, step))
                else:
                    items.append(slice(start, stop, step))
                place += 1
            case (_, k):
                value = indices[k]
                items.append(value)
                place += value.dim() if _is_mask(torch, value) else 1
            case _:
                raise AssertionError(entry)
    return tuple(flips), tuple(items)


def _is_mask(torch: Any, value: Any) -> bool:
    # The dtype comes first: it is known where a number and a 0-d tensor differ only at run time.
    return getattr(value, "dtype", None) == torch.bool and isinstance(value, torch.Tensor)


def _written_out(torch: Any, rank: int, spec: Spec, indices: Sequence[Any]) -> Spec:
    used = sum(
        indices[entry[1]].dim()
        if entry[0] == "int" and _is_mask(torch, indices[entry[1]])
        else entry[0] in ("int", "slice")
        for entry in spec
    )
    if ("ellipsis",) not in spec:
        return spec  # the dims behind it come whole
    place = spec.index(("ellipsis",))
    return (*spec[:place], *(_WHOLE,) * (rank - used), *spec[place + 1 :])


def _flipped(size: int, start: Any, stop: Any, step: int) -> slice:
    first, last, step = slice(start, stop, step).indices(size)
    return slice(size - 1 - first, size - 1 - last, -step)


def split_index(torch: Any, items: Sequence[Any]) -> tuple[tuple[Any, ...], list[Any] | None]:
    """Return an index as two steps: one that makes a view, and the tensors that index the view."""
    basic: list[Any] = []
    tensors: list[Any] = []
    for item in items:
        if isinstance(item, torch.Tensor) and item.dim():
            basic += [slice(None)] * (item.dim() if item.dtype == torch.bool else 1)
            tensors.append(item)
        else:
            basic.append(item)
            tensors += () if isinstance(item, int | torch.Tensor) else (None,)
    return tuple(basic), tensors if any(t is not None for t in tensors) else None


_INT: Final = ("int", 0)
_ROW: Final = (("int", 0),)
_WHOLE: Final = ("slice", None, None, None)
_MATRIX: Final = TensorSpec((4, 3))


def zeros_of(value: Value) -> Value:
    """Return zeros of the type of a value."""
    return value.builder.zeros(value.ty)


def _shaped_as(value: Value, like: Value) -> Value:
    """Return the value under the shape of `like`, where a mask made another name for one size."""
    return value.reshape(*like.shape)


def _index_type(call: RuleCall) -> Type:
    source = call.tensor(0)
    return TensorType(result_shape(call, source, masked=None), source.dtype)


def _index(torch: Any, x: Any, indices: tuple[Any, ...], spec: Any) -> Any:
    x = as_tensor(torch, x)
    flips, items = python_index(torch, x, spec, indices)
    return (x.flip(flips) if flips else x)[items[0] if len(items) == 1 else items]


def _spec_samples(value: tuple[TensorSpec, ...] = ()) -> list[Sample]:
    """Return samples of every form of index, with a value to write if `value` has a shape maker."""
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


def _index_grad(p: Pullback) -> Value:
    """Return the cotangent of the indexed value; for rows of a table by their numbers that of an
    embedding, whose updates touch these rows alone."""
    table, indices, spec = p.args[0], p.args[1], p.attrs["spec"]
    if not _has_rows(indices, spec):
        return index_accumulate(zeros_of(table), indices, p.g, spec=spec)
    numbers, rows = indices[0], p.g
    if any(part != _WHOLE for part in spec[1:]):
        empty = p.g.builder.zeros(TensorType((*numbers.shape, *table.shape[1:]), table.dtype))
        others = [indices[i] for i in range(1, len(fields(indices)))]
        within = (*(_WHOLE,) * numbers.rank, *map(_before, spec[1:]))
        rows = index_accumulate(empty, p.g.builder.tuple(others), p.g, spec=within)
    return rows_grad(rows, from_start(numbers, table.shape[0]), table)


def _has_rows(indices: Value, spec: Sequence[tuple[Any, ...]]) -> bool:
    """Return whether an index takes rows by a tensor of their numbers, and of each the same."""
    if spec[:1] != _ROW or any(part[0] not in ("int", "slice") for part in spec):
        return False
    numbers, *others = (indices[part[1]] for part in spec if part[0] == "int")
    if any(isinstance(o.ty, TensorType) and o.rank for o in others):
        return False
    return bool(numbers.rank) and numbers.dtype.kind is DTypeKind.INT


def _before(part: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return a part of an index where there is one index less."""
    return ("int", part[1] - 1) if part[0] == "int" else part


def from_start(numbers: Value, count: Dim) -> Value:
    """Return numbers of `count` rows with those below zero, which count from the end, counted from
    the start."""
    from_end = numbers + numbers.builder.size(count)
    return where(less(numbers, 0), from_end, numbers)


index: Final = Op(
    name="index",
    doc="The elements that `input[...]` selects.",
    params=(operand("input"), operand("indices"), attribute("spec", convert=normal_spec)),
    type_rule=_index_type,
    shape=ShapeBehaviour.DYNAMIC,
    lowering=Library(_index, fused=Elementwise(index_element.read)),
    push=Linear(("input",)),
    grad=lambda p: (_index_grad(p), None),
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
    type_rule=_index_type,
    shape=ShapeBehaviour.DYNAMIC,
    lowering=Library(
        lambda torch, *args: _index(torch, *args).clone(),
        is_fresh=True,
        fused=Elementwise(index_element.read),
    ),
    push=Linear(("input",)),
    grad=index.grad,
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


_WRITTEN: Final = (
    operand("input", promote=True),
    operand("indices"),
    operand("value", promote=True),
    attribute("spec", convert=normal_spec),
)

set_at: Final = Op(
    name="set_at",
    doc="The tensor with `input[...]` replaced by `value`; `input` itself does not change.",
    params=_WRITTEN,
    promotion=Promotion.COMMON,
    type_rule=write_type,
    shape=ShapeBehaviour.IDENTITY,
    lowering=Library.updating(_set_at, _set_in_place, Elementwise(index_element.written)),
    push=Linear(("input", "value")),
    grad=_set_at_grad,
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
    """Return the sum as two: where places are known, nothing need be added twice at one."""
    x, indices, value = args
    positions = fields(indices) if is_given(indices) else []
    if any(isinstance(i.ty, TensorType) and i.rank for i in positions):
        return scatter_at(x, indices, value, **attrs)
    if x.builder.is_zero(x):
        return set_at(x, indices, value, **attrs)
    return x + set_at(zeros_of(x), indices, value, **attrs)


index_accumulate: Final = Op(
    name="index_accumulate",
    doc="The tensor with `value` added at `input[...]`; a position named twice gets both, on a GPU "
    "in any order.",
    params=_WRITTEN,
    promotion=Promotion.COMMON,
    type_rule=write_type,
    shape=ShapeBehaviour.IDENTITY,
    lowering=Library.updating(_index_accumulate, _accumulate_in_place, MadeOf(_accumulate_code)),
    push=Linear(("input", "value")),
    grad=lambda p: (
        p.g,
        None,
        _shaped_as(index(p.g, p.args[1], spec=p.attrs["spec"]).sum_to(p.args[2].shape), p.args[2]),
    ),
    samples=lambda: (
        *_spec_samples((_MATRIX,)),
        Sample((_MATRIX, (TensorSpec((5,), "int64", 0, 2),), TensorSpec((5, 3))), {"spec": _ROW}),
        Sample((_MATRIX, (TensorSpec((4,), "bool"),), TensorSpec((3,))), {"spec": _ROW}),
    ),
)


scatter_at: Final = replace(
    index_accumulate,
    name="scatter_at",
    torch_name=None,
    doc="`index_accumulate` at positions that are tensors: several may be one.",
    lowering=Library.updating(
        _index_accumulate, _accumulate_in_place, Scatter(base=0, over=2, body=index_element.added)
    ),
)


SLICING: Final = (index, extract, set_at, index_accumulate, scatter_at)
"""The operators whose sizes are bounds of slices."""
