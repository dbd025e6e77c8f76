"""Whether the result of an implementation has its declared type.

Types name their sizes. Those that the operands show are known; one that only the result shows,
as that of `nonzero`, is learnt from its first mention and must be the same at the others.
"""

from __future__ import annotations

from typing import Any, Final, cast, final

import torch

from ...dataclass import dataclass
from ...ir.dims import Dim, DimVar
from ...ir.types import (
    DTYPES,
    DType,
    DTypeKind,
    SizeType,
    StrType,
    TensorType,
    TupleType,
    Type,
    show,
)
from ...lower_torch.constants import torch_dtype
from ...lower_torch.scalars import tensor_of
from ..border.argument_sizes import NoSize, solve_dim
from ..values.text import describe
from ..values.values import follow, size_paths, tensor_type


@final
@dataclass(frozen=True, slots=True)
class Fitted:
    """Whether a value fits, and the value in the form that programs have it in."""

    fits: bool
    value: Any = None


_NO: Final = Fitted(False)


@final
class Shapes:
    """The sizes that types of one call mention, as far as they are known."""

    def __init__(self, device: torch.device) -> None:
        self._device: Final = device
        self._names: Final[dict[str, int]] = {}
        self._dims: Final[dict[Dim, int]] = {}

    def learn(self, ty: Type, value: Any) -> None:
        """Read sizes off a value of a type; None is a value that was left out."""
        if value is None:
            return
        for dim, path in size_paths(ty):
            self.learn_dim(dim, follow(value, path))

    def learn_dim(self, dim: Dim, value: int) -> None:
        """Note the value of a size, and that of the one unknown name in it."""
        if dim.name is not None:
            self._names.setdefault(dim.name, value)
            return
        self._dims.setdefault(dim, value)
        unknown = sorted(dim.names() - self._names.keys())
        if len(unknown) != 1:
            return
        try:
            found = solve_dim(dim, DimVar(unknown[0]), value, self._names)
        except NoSize:
            return  # the arguments were checked; what is known of this size is wrong
        if found is not None:
            self._names[unknown[0]] = found

    def size(self, dim: Dim) -> int | None:
        """Return the value of a size if it is known."""
        if dim in self._dims:
            return self._dims[dim]
        try:
            return dim.evaluate(self._names)
        except KeyError:
            return None

    def known(self, ty: Type) -> Type:
        """Return a type with the sizes that are known as numbers."""
        match ty:
            case TensorType(shape, dtype):
                return TensorType(tuple(map(self._known_dim, shape)), dtype)
            case SizeType(dim):
                return SizeType(self._known_dim(dim))
            case TupleType(fields):
                return TupleType(tuple(self.known(f) for f in fields))
            case _:
                return ty

    def _known_dim(self, dim: Dim) -> Dim:
        value = self.size(dim)
        return dim if value is None else Dim.of(value)

    def fitted(self, value: Any, ty: Type) -> Fitted:
        """Return whether a value has a type. Data, functions and cells are not looked into."""
        match ty:
            case TensorType(shape, DType() as dtype):
                return self._tensor(value, shape, dtype)
            case SizeType(dim):
                is_size = isinstance(value, int) and not isinstance(value, bool)
                return Fitted(True, value) if is_size and self._agrees(dim, value) else _NO
            case TupleType(()) if value is None:
                return Fitted(True, ())
            case TupleType(fields):
                return self._tuple(value, fields)
            case StrType():
                return Fitted(isinstance(value, str), value)
            case _:
                return Fitted(True, value)

    def _tuple(self, value: Any, fields: tuple[Type, ...]) -> Fitted:
        if not isinstance(value, tuple | list):
            return _NO
        items = cast("tuple[Any, ...]", tuple(value))  # torch returns tuples with named fields
        if len(items) != len(fields):
            return _NO
        found = [self.fitted(v, t) for v, t in zip(items, fields, strict=True)]
        return Fitted(all(f.fits for f in found), tuple(f.value for f in found))

    def _tensor(self, value: Any, shape: tuple[Dim, ...], dtype: DType) -> Fitted:
        if isinstance(value, bool | int | float) and not shape:
            return self._number(value, dtype)
        if not isinstance(value, torch.Tensor) or value.dim() != len(shape):
            return _NO
        if value.dtype is not torch_dtype(dtype) or not self._is_here(value):
            return _NO
        sizes = zip(shape, value.shape, strict=True)
        return Fitted(True, value) if all(self._agrees(d, int(n)) for d, n in sizes) else _NO

    def _number(self, value: float, dtype: DType) -> Fitted:
        match dtype.kind:
            case DTypeKind.BOOL:
                return Fitted(isinstance(value, bool), value)
            case DTypeKind.INT:
                return Fitted(type(value) is int, value)
            case DTypeKind.FLOAT:
                is_float = type(value) is float
                made = tensor_of(value, torch_dtype(dtype), self._device) if is_float else None
                return Fitted(is_float, made)

    def _is_here(self, value: torch.Tensor) -> bool:
        here, there = self._device, value.device
        if here.type != there.type:
            return False
        return here.index is None or there.index is None or here.index == there.index

    def _agrees(self, dim: Dim, value: int) -> bool:
        known = self.size(dim)
        if known is None:
            self.learn_dim(dim, value)
            return True
        return known == value

    def described(self, value: Any) -> str:
        """Return the description of a value in the words of annotations."""
        match value:
            case torch.Tensor() if str(value.dtype).removeprefix("torch.") in DTYPES:
                text = show(tensor_type(value, ""))
                return text if self._is_here(value) else f"{text} on {value.device}"
            case tuple() if value:
                fields = cast("tuple[Any, ...]", value)
                return f"tuple[{', '.join(map(self.described, fields))}]"
            case _:
                return describe(value)
