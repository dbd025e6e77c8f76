"""Instances passed as a list where a program takes a batch of them: one instance of their tensors,
stacked."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, cast

import torch

from ...ir.traverse import Steps, run
from ...ir.types import DType, TensorType, element_name
from ...lower_torch.constants import torch_dtype
from ...prelude.values import List
from ..values.text import describe
from .schema import Data, Elements, Leaf, Maybe, Plan, opened

if TYPE_CHECKING:
    from .binder import Binder
    from .places import Place


class _Different(Exception):  # noqa: N818  becomes a diagnostic where the argument is known
    """Instances that cannot lie side by side, and why."""


def side_by_side(binder: Binder, place: Place, value: Any, plan: Plan) -> Any:
    """Return a list or a tuple of instances as the batch that a program takes; other values as they
    are. Raises RunError for instances of different structure."""
    if not _is_list(value) or type(plan) is not Data or element_name(plan.type.name) is None:
        return value
    try:
        return run(_stacked(tuple(cast("Sequence[Any]", value)), plan))
    except _Different as error:
        way = f"pass values of one structure: {error}"
        binder.wrong(place, value, way)


def _stacked(values: Sequence[Any], plan: Plan) -> Steps[Any]:
    """Return the batch of values of one structure."""
    if type(plan) is Leaf:
        return _leaf(values, plan)
    if type(plan) is Data:
        values = yield _rows(values, plan)
    each = [opened(v, plan, is_given=True) for v in values]
    counts = sorted({len(parts) for parts, _, _ in each})
    if len(counts) > 1:
        raise _Different(f"some have {counts[0]} parts here and some {counts[-1]}")
    made: list[Any] = []
    for index, inner in zip(range(counts[0]), each[0][1], strict=False):
        made.append((yield _stacked([parts[index] for parts, _, _ in each], inner)))
    if isinstance(plan, Elements):
        return List.of(made)
    return None if isinstance(plan, Maybe) and not made else each[0][2](*made)


def _rows(values: Sequence[Any], plan: Data) -> Steps[Sequence[Any]]:
    """Return instances of one class; lists among the values, in a batch of batches, become such."""
    rows = list(values)
    for index, value in enumerate(values):
        if _is_list(value):
            rows[index] = yield _stacked(tuple(value), plan)
    classes = {type(v): type(v).__name__ for v in rows}
    if len(classes) > 1:
        raise _Different(f"some are {' and some '.join(sorted(classes.values()))}")
    if not classes.keys() <= plan.cases.keys():
        raise _Different(f"the elements are {', '.join(classes.values())}")
    return rows


def _is_list(value: Any) -> bool:
    return isinstance(value, list | tuple | List) and bool(value)


def _leaf(values: Sequence[Any], plan: Leaf) -> Any:
    ty, first = plan.type, values[0]
    if not isinstance(ty, TensorType) or not isinstance(ty.dtype, DType):
        if any(v != first for v in values):
            raise _Different(f"{describe(first)} is the same for all in a batch")
        return first
    tensors = [_tensor(v, torch_dtype(ty.dtype)) for v in values]
    shapes = dict.fromkeys(tuple(t.shape) for t in tensors)
    if len(shapes) > 1:
        raise _Different(f"tensors have the shapes {' and '.join(map(str, shapes))}")
    return torch.stack(tensors)


def _tensor(value: Any, dtype: torch.dtype) -> torch.Tensor:
    """Return a leaf as a tensor. A number becomes one of the dtype where it is of its kind; the
    check of the batch reports others."""
    if isinstance(value, torch.Tensor):
        return value
    fits = type(value) is int and dtype is not torch.bool
    fits = fits or (type(value) is float and dtype.is_floating_point)
    return torch.as_tensor(value, dtype=dtype if fits else None)
