"""The operands of a call of a kernel or region: what its preparation depends on of them.

An operand is a tensor, or a Python number.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from typing import Any, Final, TypeAlias

from ..ir.dims import Dim, product
from ..ir.expr import Function, type_of
from ..ir.types import SizeType, TensorType, TupleType, Type
from .calling import Form, Layout, Sizes
from .reading import bindings_of

WIDE: Final = 2**31
"""Places of tensors with so many elements need 64 bits."""

LEAST_UNIT: Final = 8
"""So many float32 are 32 bytes, the least that is read from memory."""


def is_number(value: Any) -> bool:
    """Return whether an operand is a Python number, not a tensor."""
    return isinstance(value, int | float)


def tensors_in(operands: Sequence[Any]) -> Iterator[Any]:
    """Yield the operands that are tensors."""
    return (o for o in operands if not is_number(o))


def key_of(operands: Sequence[Any], types: Sequence[Type]) -> tuple[Any, ...]:
    """Return the key of a call's preparation: shapes and strides of its operands, and sizes."""
    found: list[Any] = []
    for value, ty in zip(operands, types, strict=True):
        if not is_number(value):
            found += (value.shape, value.stride())
        else:
            found.append(value if isinstance(ty, SizeType) else type(value))
    return tuple(found)


def form_of(value: Any) -> Form:
    """Return the form of an operand."""
    if is_number(value):
        return Form.NUMBER
    return Form.CONTIGUOUS if value.is_contiguous() else Form.STRIDED


def unit_of(value: Any) -> int | None:
    """Return the dim along which the elements of a tensor that does not lie row by row lie one
    behind the other. What is shorter than the least that is read from memory is not worth a
    kernel."""
    if form_of(value) is not Form.STRIDED:
        return None
    axes = zip(range(value.dim()), value.shape, value.stride(), strict=True)
    return max(
        (axis for axis, size, step in axes if step == 1 and size >= LEAST_UNIT), default=None
    )


def contiguous_strides(shape: Sequence[int]) -> tuple[int, ...]:
    """Return the strides of a tensor that lies row by row."""
    strides: list[int] = []
    step = 1
    for size in reversed(shape):
        strides.append(step)
        step *= max(size, 1)
    return tuple(reversed(strides))


def layout_of(operands: Sequence[Any], sizes: Sizes, counts: Sequence[Dim]) -> Layout:
    """Return how operands lie in memory; `counts` are the element counts of the tensors in the
    kernel function."""
    most = max([0, *map(extent, tensors_in(operands)), *sizes.known(counts)])
    units = tuple(map(unit_of, operands))
    return Layout(tuple(map(form_of, operands)), is_wide=most >= WIDE, units=units)


def counts_of(function: Function) -> tuple[Dim, ...]:
    """Return the element counts of the tensors in a function: parameters, values and results."""
    types = [type_of(v) for v in (*function.params, *bindings_of(function.body), function.body)]
    found: dict[Dim, None] = {}
    while types:
        match types.pop():
            case TensorType(shape):
                found[product(shape)] = None
            case TupleType(fields):
                types += fields
            case _:
                pass
    return tuple(found)


def is_shared(operands: Sequence[Any], written: Collection[int]) -> bool:
    """Return whether an operand at one of the positions `written` may lie where another one does.
    Tensors whose elements lie between each other's count as sharing. A kernel could read there what
    it has written, since its programs run in any order."""
    addresses = [o.data_ptr() for o in operands if not is_number(o)]
    return do_overlap(addresses, spans_of(operands, written))


Span: TypeAlias = tuple[int, bool]
"""The bytes from the first to the last element of a tensor, and whether it is written to."""


def spans_of(operands: Sequence[Any], written: Collection[int]) -> tuple[Span, ...]:
    """Return the spans of the tensors among operands, of which those at the positions `written` are
    written to: they follow from shapes and strides."""
    return tuple(
        (extent(o) * o.itemsize if o.numel() else 0, i in written)
        for i, o in enumerate(operands)
        if not is_number(o)
    )


def do_overlap(addresses: Sequence[int], spans: Sequence[Span]) -> bool:
    """Return whether a span that is written to, begun at its address, overlaps another."""
    any_end = written_end = 0
    for begin, (size, is_written) in sorted(zip(addresses, spans, strict=True)):
        if size and begin < (any_end if is_written else written_end):
            return True
        any_end = max(any_end, begin + size)
        if is_written:
            written_end = max(written_end, begin + size)
    return False


def extent(tensor: Any) -> int:
    """Return the element count between the first and the last element of a tensor."""
    reach = sum((s - 1) * abs(d) for s, d in zip(tensor.shape, tensor.stride(), strict=True))
    return max(reach + 1, tensor.numel())
