"""Indexing element by element: which element `x[...]` takes, and which it writes.

Bodies of `Elementwise` and `Scatter`. Each returns None for a call that it cannot express: the
number of elements that a mask selects is unknown, a slice whose bound only the running program
knows may count from the end, and positions determine where to read but not what is written where.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from ...ir.dims import ZERO, Dim
from ...ir.types import bool_
from .index_spec import Run, Spec, run_of
from .moving import broadcast_index

if TYPE_CHECKING:
    from ...ir.declaration.elements import Elements, Place, Source

_Indices: TypeAlias = "tuple[Source, ...] | None"
"""The run-time indices; no tuple where there are none."""

_WHOLE: Final = ("slice", None, None, None)


def read(k: Elements, place: Place, x: Source, given: _Indices, spec: Spec) -> Any:
    """Return the element of `x[...]` at a place."""
    indices = _tensors(given)
    if not _is_certain(place.shape, x.shape, indices, spec):
        return None
    return x(*_places(k, place.index, x.shape, indices, spec))


def added(k: Elements, place: Place, x: Source, given: _Indices, value: Source, spec: Spec) -> Any:
    """Return where in `x[...]` an element of `value` is added, and the element."""
    indices = _tensors(given)
    if not _is_certain(value.shape, x.shape, indices, spec):
        return None
    return _places(k, place.index, x.shape, indices, spec), value(*place.index)


def written(
    k: Elements, place: Place, x: Source, given: _Indices, value: Source, spec: Spec
) -> Any:
    """Return the element of a tensor of which `x[...]` is replaced by `value`."""
    indices = _tensors(given)
    if any(i.shape or i.dtype == bool_ for i in indices):
        return None
    tests: list[Any] = []
    at: list[Dim] = []
    for entry, dim in _entries(spec, len(x.shape)):
        if dim is None:
            at.append(ZERO)
        elif entry[0] == "int":
            chosen = k.coordinate(indices[entry[1]](), x.shape[dim])
            tests.append(k.eq(k.number(place.index[dim]), k.number(chosen)))
        else:
            run = run_of(x.shape[dim], *entry[1:])
            at.append(_along(k, place.index[dim], x.shape[dim], run, tests))
            if _is_open(entry) and (len(at) > len(value.shape) or run.count not in value.shape):
                return None
    source = broadcast_index(at, value.shape)
    if not tests:
        return value(*source)
    inside = tests[0]
    for test in tests[1:]:
        inside = k.logical_and(inside, test)
    return value.within(source, inside, x(*place.index))


def _tensors(given: _Indices) -> tuple[Source, ...]:
    return given or ()


def _along(k: Elements, here: Dim, size: Dim, run: Run, tests: list[Any]) -> Dim:
    """Return the number in a run of the element at a coordinate; add what must hold if it has
    one."""
    if run == Run(ZERO, 1, size):
        return here
    away = here - run.first if run.step > 0 else run.first - here
    number = away // abs(run.step)
    tests.append(k.ge(k.number(away), k.number(ZERO)))
    tests.append(k.lt(k.number(number), k.number(run.count)))
    if abs(run.step) > 1:
        tests.append(k.eq(k.number(away % abs(run.step)), k.number(ZERO)))
    return number


def _is_certain(
    selected: Sequence[Dim], shape: Sequence[Dim], indices: Sequence[Source], spec: Spec
) -> bool:
    """Return whether the index selects elements of this shape, one for each place, whatever the
    values of its positions and bounds."""
    if any(i.dtype == bool_ for i in indices):
        return False
    entries = _entries(spec, len(shape))
    width = max((len(i.shape) for i in indices), default=0)
    kept = [entry for entry in entries if entry[0][0] != "int"]
    if len(selected) != len(kept) + width:
        return False
    _, sizes = _apart(selected, entries, indices)
    return all(
        dim is None or not _is_open(entry) or run_of(shape[dim], *entry[1:]).count == size
        for (entry, dim), size in zip(kept, sizes, strict=True)
    )


def _is_open(entry: tuple[Any, ...]) -> bool:
    return any(isinstance(bound, Dim) for bound in entry[1:])


def _places(
    k: Elements, index: Sequence[Dim], shape: Sequence[Dim], indices: Sequence[Source], spec: Spec
) -> tuple[Dim, ...]:
    """Return where the element of `x[...]` at a place is in `x`."""
    entries = _entries(spec, len(shape))
    block, rest = _apart(index, entries, indices)
    others = iter(rest)
    found: list[Dim] = []
    for entry, dim in entries:
        if dim is None:
            next(others)
        elif entry[0] == "slice":
            run = run_of(shape[dim], *entry[1:])
            found.append(run.first + next(others) * run.step)
        else:
            positions = indices[entry[1]]
            value = positions(*broadcast_index(block, positions.shape))
            found.append(k.coordinate(value, shape[dim]))
    return tuple(found)


def _entries(spec: Spec, rank: int) -> list[tuple[tuple[Any, ...], int | None]]:
    """Return each entry, the ellipsis written out, with the dim of the tensor that it speaks of."""
    used = sum(entry[0] in ("int", "slice") for entry in spec)
    dots = spec.index(("ellipsis",)) if ("ellipsis",) in spec else len(spec)
    full = (*spec[:dots], *(_WHOLE,) * (rank - used), *spec[dots + 1 :])
    found: list[tuple[tuple[Any, ...], int | None]] = []
    dim = 0
    for entry in full:
        is_new = entry == ("new",)
        found.append((entry, None if is_new else dim))
        dim += not is_new
    return found


def _apart(
    dims: Sequence[Dim],
    entries: Sequence[tuple[tuple[Any, ...], int | None]],
    indices: Sequence[Source],
) -> tuple[Sequence[Dim], Sequence[Dim]]:
    """Split one entry for each dim of the result into those of the dims that index tensors bring,
    and those of the others. The former stand where the tensors do, if these are neighbours, else
    in front."""
    ranks = [len(indices[e[1]].shape) if e[0] == "int" else None for e, _ in entries]
    is_tensor = [rank is not None for rank in ranks if rank != 0]
    places = [i for i, found in enumerate(is_tensor) if found]
    if not places:
        return (), dims
    width = max(rank or 0 for rank in ranks)
    at = places[0] if places[-1] - places[0] == len(places) - 1 else 0
    return dims[at : at + width], (*dims[:at], *dims[at + width :])
