"""What each operator must equal: the torch function it names, or a function here.

An entry is needed where torch's own signature differs from ours or torch has no such function; all
others are called by their torch name with our argument names.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from operator import attrgetter
from typing import Any

import torch

from pyrelay.ir.build import promoted_dtype
from pyrelay.ir.dims import Dim
from pyrelay.ir.op import Op, Promotion, Role
from pyrelay.ir.types import DTYPES, DType
from pyrelay.lower_torch.constants import torch_dtype


def _reduce_all_by_default(function: Callable[..., Any]) -> Callable[..., Any]:
    def reference(x: torch.Tensor, dim: Any = None, **rest: Any) -> Any:
        return function(x, dim=tuple(range(x.dim())) if dim is None else dim, **rest)

    return reference


def _pair(function: Callable[..., Any]) -> Callable[..., Any]:
    def reference(x: torch.Tensor, dim: int | None = None, keepdim: bool = False) -> Any:
        if dim is not None:
            return tuple(function(x, dim, keepdim))
        return function(x).reshape((1,) * x.dim() if keepdim else ())

    return reference


def _prod(
    x: torch.Tensor, dim: int | None = None, keepdim: bool = False, dtype: Any = None
) -> torch.Tensor:
    if dim is not None:
        return torch.prod(x, dim, keepdim, dtype=dtype)
    return torch.prod(x, dtype=dtype).reshape((1,) * x.dim() if keepdim else ())


def _unbiased(function: Callable[..., Any]) -> Callable[..., Any]:
    def reference(
        x: torch.Tensor, dim: Any = None, unbiased: bool | None = None, **rest: Any
    ) -> Any:
        if unbiased is not None:
            rest["correction"] = int(unbiased)
        return function(x, dim=dim, **rest)

    return reference


def _recurrence(
    factor: torch.Tensor,
    term: torch.Tensor,
    dim: int,
    reverse: bool = False,
    initial: float = 0.0,
) -> torch.Tensor:
    pairs = list(zip(factor.unbind(dim), term.unbind(dim), strict=True))
    found: list[torch.Tensor] = []
    state = torch.full_like(factor.sum(dim), initial)
    for a, b in reversed(pairs) if reverse else pairs:
        found.append(state)
        state = a * state + b
    if not found:
        return factor
    return torch.stack(found[::-1] if reverse else found, dim)


REFERENCES: Mapping[str, Callable[..., Any]] = {
    "all": lambda x, dim=None, keepdim=False: torch.all(x.bool(), dim, keepdim),
    "any": lambda x, dim=None, keepdim=False: torch.any(x.bool(), dim, keepdim),
    "cast": lambda x, dtype: x.to(dtype),
    "max": _pair(torch.max),
    "mean": _reduce_all_by_default(torch.mean),
    "min": _pair(torch.min),
    "prod": _prod,
    "recurrence": _recurrence,
    "sort": lambda x, **attrs: tuple(torch.sort(x, **attrs)),
    "std": _unbiased(torch.std),
    "sum": _reduce_all_by_default(torch.sum),
    "topk": lambda x, **attrs: tuple(torch.topk(x, **attrs)),
    "var": _unbiased(torch.var),
}


def reference(op: Op) -> Callable[..., Any] | None:
    """Give the function that an operator must equal, if there is one."""
    if op.name in REFERENCES:
        return REFERENCES[op.name]
    return None if op.torch_name is None else attrgetter(op.torch_name)(torch)


def call_reference(op: Op, operands: Sequence[Any], attrs: Mapping[str, Any]) -> Any:
    """Give the reference's value: the first operand by position, all else under our names."""
    function = reference(op)
    assert function is not None, f"{op.name} has no reference"
    values = dict(zip((p.name for p in op.operands), promoted(op, operands), strict=False))
    named = {k: v for k, v in values.items() if v is not None}
    named |= {k: attribute(v) for k, v in attrs.items()}
    first = [named.pop(op.params[0].name)] if op.params[0].role is Role.OPERAND else []
    return function(*first, **named)


def attribute(value: Any) -> Any:
    """Give an attribute as torch takes it."""
    match value:
        case DType():
            return torch_dtype(value)
        case Dim():
            return value.constant
        case tuple() | list():
            return tuple(map(attribute, value))
        case _:
            return value


def promoted(op: Op, operands: Sequence[Any]) -> list[Any]:
    """Give the operands in the common dtype that the operator's promotion names."""
    if op.promotion is Promotion.NONE:
        return list(operands)
    marked = [v for v, p in zip(operands, op.operands, strict=False) if p.promote]
    found = [_dtype(v) for value in marked for v in _flat(value) if isinstance(v, torch.Tensor)]
    highest = max((d.kind.value for d in found), default=-1)
    found += [d for d in map(_number_dtype, _numbers(marked)) if d.kind.value > highest]
    dtype = torch_dtype(promoted_dtype(op, found))
    pairs = zip(operands, op.operands, strict=False)
    return [_to(v, dtype) if p.promote else v for v, p in pairs]


def _flat(value: Any) -> list[Any]:
    return [v for part in value for v in _flat(part)] if isinstance(value, tuple) else [value]


def _numbers(values: Sequence[Any]) -> list[Any]:
    flat = [v for value in values for v in _flat(value)]
    return [v for v in flat if isinstance(v, bool | int | float)]


def _dtype(value: torch.Tensor) -> DType:
    return DTYPES[str(value.dtype).removeprefix("torch.")]


def _number_dtype(number: float) -> DType:
    return DTYPES[{bool: "bool", int: "int64", float: "float32"}[type(number)]]


def _to(value: Any, dtype: torch.dtype) -> Any:
    if isinstance(value, tuple):
        return tuple(_to(v, dtype) for v in value)
    if isinstance(value, torch.Tensor):
        return value.to(dtype)
    return value if value is None else torch.tensor(value, dtype=dtype)
