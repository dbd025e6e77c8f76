"""Instantiation of the names in a declared type at its uses."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, final

from ..ir.dims import Dim, DimVar
from ..ir.types import (
    AdtType,
    FnType,
    RefType,
    SizeType,
    TensorType,
    TupleType,
    Type,
    TypeParam,
    TypeVar,
)


@final
class Matching:
    """The instances of the names in declared types."""

    def __init__(self) -> None:
        self.dims: Final[dict[str, Dim]] = {}
        self.types: Final[dict[str, Type]] = {}

    def arg(self, param: TypeParam) -> Type | Dim | None:
        """Return the type of a type parameter, if it was met."""
        return (self.dims if isinstance(param, DimVar) else self.types).get(param.name)

    def match(self, declared: Type, actual: Type) -> None:
        """Note what makes a declared type equal to the actual one."""
        match declared, actual:
            case TypeVar(name), _:
                self.types.setdefault(name, actual)
            case TensorType(left), TensorType(right):
                self._all(left, right)
            case SizeType(left), SizeType(right):
                self._all((left,), (right,))
            case TupleType(left), TupleType(right):
                self._all(left, right)
            case FnType(), FnType():
                self._all((*declared.params, declared.result), (*actual.params, actual.result))
            case RefType(left), RefType(right):
                self.match(left, right)
            case AdtType(args=left), AdtType(args=right):
                self._all(left, right)
            case _:
                pass

    def _all(self, left: Sequence[Type | Dim], right: Sequence[Type | Dim]) -> None:
        for declared, actual in zip(left, right, strict=True):
            if isinstance(declared, Dim) or isinstance(actual, Dim):
                assert isinstance(declared, Dim)
                assert isinstance(actual, Dim)
                if declared.name is not None:
                    self.dims.setdefault(declared.name, actual)
            else:
                self.match(declared, actual)
