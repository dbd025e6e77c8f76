"""Sizes in C functions: expressions of dims, and of the bytes that tensors take."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ...ir.dims import Dim, DimOp, DimVar, product
from ...ir.expr import Call, Function
from ...ir.types import DType, TensorType, known_dtype
from ..math import element_of
from .c_types import NotInC


def dim_params(function: Function) -> list[DimVar]:
    """Return the sizes that a function takes. Raises NotInC for a type parameter."""
    for param in function.type_params:
        if not isinstance(param, DimVar):
            raise NotInC("it is for values of several types")
    return [p for p in function.type_params if isinstance(p, DimVar)]


def bytes_of(shape: Sequence[Dim], dtype: DType, size: Callable[[Dim], str]) -> str:
    """Return the expression of the bytes that a tensor takes."""
    count = product(shape) * element_of(dtype).bytes
    return size(count)


def tensor_bytes(ty: TensorType, size: Callable[[Dim], str]) -> str:
    """Return the expression of the bytes that a tensor of a type takes."""
    return bytes_of(ty.shape, known_dtype(ty), size)


def dim_text(dim: Dim, known: Callable[[Dim], str | None]) -> str:
    """Return the expression of a dim; `known` returns that of a dim that a variable has. Raises
    NotInC."""
    found = known(dim)
    if found is not None:
        return found
    if dim.constant is not None:
        return str(dim.constant)
    total: list[str] = []
    for monomial, factor in dim.terms:
        parts = [_atom_text(atom, known) for atom in monomial]
        total.append(" * ".join([*parts, *([str(factor)] if factor != 1 or not parts else [])]))
    return f"({' + '.join(total)})"


def _atom_text(atom: object, known: Callable[[Dim], str | None]) -> str:
    match atom:
        case DimVar() as var if (found := known(Dim.atom(var))) is not None:
            return found
        case DimOp("max", left, right):
            return f"RELAY_MAXIMUM({dim_text(left, known)}, {dim_text(right, known)})"
        case DimOp(kind, left, right):
            function = "relay_floor_divide" if kind == "floordiv" else "relay_modulo"
            return f"{function}({dim_text(left, known)}, {dim_text(right, known)})"
        case _:
            raise NotInC(f"it computes with the size {atom}, which only tensors show")


def sizes_inside(function: Function, call: Call) -> dict[Dim, Dim]:
    """Return the sizes that a callee names, as the caller has them."""
    return {
        Dim.atom(param): argument
        for param, argument in zip(function.type_params, call.type_args, strict=True)
        if isinstance(param, DimVar) and isinstance(argument, Dim)
    }
