"""Bringing a script's arguments to host values, and checking them against the signature.

Tensors pass as they are, numpy arrays and anything with `__dlpack__` without a copy, numbers
become what the annotation says. Named sizes are bound from shapes and must agree. Nothing is
converted silently: a dtype or device that differs is an error that shows the cast.
"""

from __future__ import annotations

import operator
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, NoReturn, cast

import numpy as np
import torch

from .. import annotations
from ..diagnostics.catalogue.call import (
    MixedDevices,
    WrongArgument,
    WrongSize,
)
from ..diagnostics.diagnostic import RunError
from ..diagnostics.source import Span
from ..ir.dims import Dim, DimVar
from ..ir.expr import Assumption
from ..ir.types import (
    ITERABLE,
    AdtType,
    DType,
    DTypeKind,
    RefType,
    SizeType,
    StrType,
    TensorType,
    TupleType,
    Type,
    show,
)
from .failure import check_assumption
from .values import Cell

_SHOWN: Final = 4
_INT_RANGE: Final = range(-(2**63), 2**63)


@dataclass(frozen=True, slots=True)
class Parameter:
    """A parameter of an entry: its name, checked type and the place of its annotation."""

    name: str
    type: Type
    span: Span


class Binder:
    """Converts the arguments of one call, binding named sizes on the way."""

    def __init__(self, function: str, device: torch.device) -> None:
        self._function: Final = function
        self._device: Final = device
        self.sizes: Final[dict[str, int]] = {}
        self._bound_by: Final[dict[str, str]] = {}
        self._derived: Final[list[tuple[Parameter, Dim, int, int]]] = []

    def bind(self, parameter: Parameter, value: Any) -> Any:
        """Give the host value of an argument. Raises RunError if it does not fit."""
        return self._convert(parameter, value, parameter.type)

    def finish(self, assumptions: Sequence[Assumption]) -> None:
        """Check sizes that are computed from others, and the assumptions. Raises RunError."""
        for parameter, dim, position, actual in self._derived:
            self._check_derived(parameter, dim, position, actual)
        for assumption in assumptions:
            self._check_assumption(assumption)

    def _convert(self, parameter: Parameter, value: Any, ty: Type) -> Any:
        match ty:
            case TensorType():
                return self._tensor(parameter, value, ty)
            case SizeType(dim):
                return self._size(parameter, value, dim)
            case TupleType(fields):
                if not isinstance(value, tuple | list) or len(value) != len(fields):
                    self._wrong(parameter, value)
                found = tuple(
                    [self._convert(parameter, v, f) for v, f in zip(value, fields, strict=True)]
                )
                # The same tuple when nothing changed, so that a plan sees there is nothing to do.
                is_same = all(map(operator.is_, found, value)) and isinstance(value, tuple)
                return value if is_same else found
            case StrType():
                if not isinstance(value, str):
                    self._wrong(parameter, value)
                return value
            case RefType():
                return self._cell(replace(parameter, type=ty), value)
            case AdtType(name) if name == ITERABLE.name:
                return self._stream(parameter, value)
            case _:
                if not callable(value):
                    self._wrong(parameter, value)
                return value

    def _cell(self, parameter: Parameter, value: Any) -> Any:
        from .reference import Reference  # what it holds is converted here

        if isinstance(value, Reference):
            return value.enter(parameter, self, self._device)
        if not isinstance(value, Cell):  # a model's cells are the program's own
            self._wrong(parameter, value, "make a cell: `relay.ref(v)`")
        return value

    def _stream(self, parameter: Parameter, value: Any) -> Any:
        from .stream import Stream  # its elements are converted here

        if not hasattr(value, "__iter__"):
            way = "pass what a `for` loop runs over: a DataLoader, a generator, a list"
            self._wrong(parameter, value, way)
        return Stream(value, self._function)

    def _tensor(self, parameter: Parameter, value: Any, ty: TensorType) -> Any:
        tensor = self._as_tensor(parameter, value, ty)
        if not isinstance(tensor, torch.Tensor):
            return tensor
        assert isinstance(ty.dtype, DType)
        if tensor.dtype is not torch_dtype(ty.dtype):
            self._wrong(parameter, tensor, _cast_help(parameter.name, ty.dtype))
        if tensor.dim() != len(ty.shape):
            self._wrong(parameter, tensor, _rank_help(parameter.name, tensor, ty))
        for position, (dim, actual) in enumerate(zip(ty.shape, tensor.shape, strict=True)):
            self._bind_dim(parameter, dim, position, actual)
        return tensor

    def _as_tensor(self, parameter: Parameter, value: Any, ty: TensorType) -> Any:
        if isinstance(value, torch.Tensor):
            return value
        if isinstance(value, bool | int | float) and not ty.shape:
            return self._number(parameter, value, ty)
        if isinstance(value, np.generic) and not ty.shape:
            return self._as_tensor(parameter, value.item(), ty)
        if isinstance(value, np.ndarray):
            array = cast("np.ndarray[Any, Any]", value)
            # torch warns of arrays that may not be written; arguments never are, unknown to it.
            shared = array if array.flags.writeable else array.copy()
            return torch.from_numpy(shared).to(self._device)
        if not hasattr(value, "__dlpack__"):
            is_list = isinstance(value, list | tuple)
            self._wrong(parameter, value, _list_help(parameter.name, ty) if is_list else None)
        return torch.from_dlpack(value)

    def _number(self, parameter: Parameter, value: bool | float, ty: TensorType) -> Any:
        assert isinstance(ty.dtype, DType)
        kind = ty.dtype.kind
        if isinstance(value, bool) is not (kind is DTypeKind.BOOL):
            self._wrong(parameter, value)
        if kind is DTypeKind.FLOAT:
            return torch.tensor(value, dtype=torch_dtype(ty.dtype), device=self._device)
        if isinstance(value, float):
            self._wrong(parameter, value)
        if value not in _INT_RANGE:
            self._wrong(parameter, value, "it does not fit into 64 bits")
        return value

    def _size(self, parameter: Parameter, value: Any, dim: Dim) -> int:
        if isinstance(value, torch.Tensor) and value.dim() == 0 and not value.is_floating_point():
            value = int(value)
        if not isinstance(value, int) or isinstance(value, bool):
            self._wrong(parameter, value)
        self._bind_dim(parameter, dim, 0, value)
        return value

    def _bind_dim(self, parameter: Parameter, dim: Dim, position: int, actual: int) -> None:
        name = dim.name
        if name is None:
            wanted = dim.constant
            if wanted is None:
                self._derived.append((parameter, dim, position, actual))
            elif wanted != actual:
                self._wrong_size(parameter, dim, wanted, "", actual, position)
            return
        known = self.sizes.setdefault(name, actual)
        self._bound_by.setdefault(name, parameter.name)
        if known != actual:
            because = f" because of `{self._bound_by[name]}`"
            self._wrong_size(parameter, dim, known, because, actual, position)

    def _check_derived(self, parameter: Parameter, dim: Dim, position: int, actual: int) -> None:
        unknown = [a for a in dim.atoms() if isinstance(a, DimVar) and a.name not in self.sizes]
        if unknown:
            solved = solve_dim(dim, unknown[0], actual, self.sizes)
            if solved is None:
                self._wrong_size(parameter, dim, -1, " (no size fits)", actual, position)
            self.sizes[unknown[0].name] = solved
            return
        wanted = dim.evaluate(self.sizes)
        if wanted != actual:
            self._wrong_size(parameter, dim, wanted, self._why(dim), actual, position)

    def _why(self, dim: Dim) -> str:
        return " because " + ", ".join(f"{n} is {self.sizes[n]}" for n in sorted(dim.names()))

    def _check_assumption(self, assumption: Assumption) -> None:
        names = assumption.left.names() | assumption.right.names()
        if not names <= self.sizes.keys():
            return  # about a size of a model's parameters, which were checked on their own
        check_assumption(assumption, lambda dim: dim.evaluate(self.sizes))

    def _wrong_size(
        self, parameter: Parameter, dim: Dim, wanted: int, why: str, actual: int, position: int
    ) -> NoReturn:
        raise RunError(
            WrongSize(
                self._function,
                parameter.name,
                parameter.span,
                str(dim),
                wanted,
                why,
                actual,
                position,
            )
        )

    def _wrong(self, parameter: Parameter, value: Any, way: str | None = None) -> NoReturn:
        raise RunError(
            WrongArgument(
                self._function,
                parameter.name,
                parameter.span,
                show(parameter.type),
                describe(value),
                way,
            )
        )


def solve_dim(dim: Dim, name: DimVar, actual: int, sizes: Mapping[str, int]) -> int | None:
    """Give the size that makes `dim` equal `actual`, for a dim linear in that one unknown name."""
    try:
        at_zero = dim.evaluate({**sizes, name.name: 0})
        slope = dim.evaluate({**sizes, name.name: 1}) - at_zero
    except KeyError:
        return None
    if slope == 0 or (actual - at_zero) % slope:
        return None
    found = (actual - at_zero) // slope
    fits = found >= 0 and dim.evaluate({**sizes, name.name: found}) == actual
    return found if fits else None


def torch_dtype(dtype: DType) -> torch.dtype:
    """Give torch's dtype of an IR dtype."""
    found = getattr(torch, dtype.name)
    assert isinstance(found, torch.dtype)
    return found


def describe(value: Any) -> str:
    """Give a value in the words of the annotations, as an error shows it."""
    if isinstance(value, torch.Tensor | np.ndarray):
        name = str(value.dtype).removeprefix("torch.")
        names = {"float32": "Float", "int64": "Int", "bool": "Bool"}
        shape = ", ".join(str(n) for n in value.shape)
        comma = "," if len(value.shape) == 1 else ""
        return f"Tensor[{names.get(name, name)}, ({shape}{comma})]"
    if isinstance(value, str | bool | int | float):
        return f"the {type(value).__name__} {value!r}"
    if isinstance(value, tuple | list):
        return _describe_items(cast("Sequence[Any]", value))
    meaning = getattr(value, "__relay__", None)
    if meaning is not None and hasattr(value, "__name__"):
        return f"the function `{value.__name__}`"
    return f"a {type(value).__name__}"


def _describe_items(items: Sequence[Any]) -> str:
    """Give a tuple with what is in it, the first few; a list too, unless it holds numbers."""
    if isinstance(items, list) and isinstance(items[0] if items else 0, bool | int | float):
        return "a list"
    is_number = [isinstance(v, str | bool | int | float) for v in items[:_SHOWN]]
    shown = [
        type(v).__name__ if n else describe(v)
        for v, n in zip(items[:_SHOWN], is_number, strict=True)
    ]
    more = ["..."] if len(items) > _SHOWN else []
    return f"{type(items).__name__}[{', '.join([*shown, *more])}]"


def _cast_help(name: str, dtype: DType) -> str:
    methods = {"float32": "float()", "float64": "double()", "int64": "long()", "bool": "bool()"}
    return f"cast it: {name}.{methods.get(dtype.name, f'to(torch.{dtype.name})')}"


def _list_help(name: str, ty: TensorType) -> str:
    return f"make it a tensor: torch.tensor({name}, dtype=torch.{ty.dtype})"


def _rank_help(name: str, tensor: torch.Tensor, ty: TensorType) -> str | None:
    if tensor.dim() + 1 == len(ty.shape):
        return f"add the missing dimension: {name}.unsqueeze(0) makes a batch of one"
    return None


def device_of(function: str, values: Sequence[Any]) -> torch.device:
    """Give the one device of all tensors among (nested) values; cpu if there is none.

    Raises RunError when there are several.
    """
    found: dict[str, torch.device] = {}
    pending = list(values)
    while pending:
        value = pending.pop()
        if isinstance(value, torch.Tensor):
            found[str(value.device)] = value.device
        elif isinstance(value, annotations.Ref):
            pending.append(value.value)
        elif isinstance(value, tuple | list):
            pending += value  # pyright: ignore[reportUnknownArgumentType]
    if len(found) > 1:
        raise RunError(MixedDevices(function, tuple(sorted(found))))
    return next(iter(found.values()), torch.device("cpu"))
