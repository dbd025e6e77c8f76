"""The form of a jacobian: for each tensor of the value, one for each tensor of the arguments."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TypeVar

from ..types import TensorType, TupleType, Type, is_float, show

T = TypeVar("T")


def tensors_in(ty: Type) -> Iterator[TensorType]:
    """Return the float tensors that a type consists of, through tuples. Raises ValueError for a
    part that is none, such as an integer or a value of a data type."""
    match ty:
        case TensorType(_, dtype) if is_float(dtype):
            yield ty
        case TupleType(fields):
            for field in fields:
                yield from tensors_in(field)
        case _:
            raise ValueError(show(ty))


def jacobian_type(value: Type, arguments: Sequence[Type], *, single: bool) -> Type:
    """Return the type of the derivatives of a value in some arguments: the form of the value, with
    the form of the arguments in place of each tensor, whose shapes follow that of the tensor.
    Raises ValueError where there are others than float tensors."""

    def of_pair(out: TensorType, given: TensorType) -> Type:
        return TensorType((*out.shape, *given.shape), out.dtype)

    def of_tensor(out: TensorType) -> Type:
        parts = [
            mapped(a, lambda t: of_pair(out, t), lambda p: TupleType(tuple(p))) for a in arguments
        ]
        return parts[0] if single else TupleType(tuple(parts))

    return mapped(value, of_tensor, lambda parts: TupleType(tuple(parts)))


def mapped(
    ty: Type, of_tensor: Callable[[TensorType], T], of_tuple: Callable[[Sequence[T]], T]
) -> T:
    """Return what is made of the tensors in a type, in order, put together as its tuples are.
    Raises ValueError."""
    if isinstance(ty, TupleType):
        return of_tuple([mapped(f, of_tensor, of_tuple) for f in ty.fields])
    (tensor,) = tensors_in(ty)
    return of_tensor(tensor)
