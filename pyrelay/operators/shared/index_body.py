"""Indexing in torch.

Reading is one Python index, after dims with a negative step are flipped. Writing needs a view of
the place first, and then the index tensors, because torch adds at repeated positions only so.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from .index_spec import Spec

_WHOLE: Final = ("slice", None, None, None)


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
