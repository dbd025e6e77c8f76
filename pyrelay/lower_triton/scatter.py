"""Kernels of a scatter: the result as it starts, then additions at places that are computed.

The additions are atomic, so in which order they happen at one place is open, and sums of floats
may differ in the last bits from run to run.
"""

from __future__ import annotations

from typing import Final

from ..ir.declaration.elements import Place
from ..ir.dims import product
from ..ir.expr import type_of
from ..ir.types import DType, float32, float64, int32, int64
from ..kernels.groups import Group, Scattered
from ..kernels.places import linear
from ..kernels.reading import dtype_of, shape_of
from .emit import KernelText
from .kernel import Kernel, Layout, Lowered, NoKernel, Written
from .pointwise import FLAT, begin, finish
from .supplier import TermSupplier

_ADDED: Final = frozenset((float32, float64, int32, int64))
"""What every target adds atomically."""


def lower_scatter(group: Group, layout: Layout) -> Lowered:
    """Return the kernels of a group that is a scatter. Raises NoKernel."""
    found = group.scattered
    assert found is not None
    dtype = dtype_of(type_of(found.var))
    if dtype not in _ADDED:
        raise NoKernel(f"{dtype} is not added atomically")
    added = _additions(group, found, layout, dtype)
    if found.lowering.base is None:
        return Lowered((added,))
    return Lowered((_start(group, found, layout, dtype), added))


def _start(group: Group, found: Scattered, layout: Layout, dtype: DType) -> Kernel:
    """Return the kernel that copies what the result starts as."""
    assert found.lowering.base is not None
    supplier = TermSupplier(group.function, layout, {})
    shape = shape_of(type_of(found.var))
    flat = supplier.places.coordinate(FLAT, product(shape))
    index = supplier.places.relocated((flat,), (product(shape),), shape)
    term = supplier.element(found.call.args[found.lowering.base], index)
    kernel = KernelText(group.function, supplier.terms, supplier.places, "_start")
    kernel.count([term])
    block = begin(kernel, flat, product(shape), layout)
    pointer = kernel.argument(Written(0, dtype, shape), f"{found.var.name}_out")
    block.store(pointer, supplier.places.simplified(linear(index, shape)), term)
    return finish(kernel, block, flat, product(shape))


def _additions(group: Group, found: Scattered, layout: Layout, dtype: DType) -> Kernel:
    """Return the kernel that adds to what the result starts as."""
    supplier = TermSupplier(group.function, layout, {})
    places, call, over = supplier.places, found.call, found.lowering.over
    shape, result = shape_of(type_of(call.args[over])), shape_of(type_of(found.var))
    flat = places.coordinate(FLAT, product(shape))
    index = places.relocated((flat,), (product(shape),), shape)
    elements = supplier.elements(dtype, index)
    operands = supplier.reader.operands(call)
    said = found.lowering.body(elements, Place(index, shape), *operands, *call.attrs.values())
    if said is None:
        raise NoKernel("its places are not said one by one")
    target, value = said
    term = elements.cast(value, dtype)
    at = places.simplified(linear([places.simplified(d) for d in target], result))
    kernel = KernelText(group.function, supplier.terms, places)
    kernel.count([term, *(kernel.terms.coordinates[n][0] for n in kernel.terms.found(at))])
    # The mask is a block where place and value are one for all, and are added for each.
    block = begin(kernel, flat, product(shape), layout, is_masked=True)
    starts_zero = found.lowering.base is None
    written = Written(0, dtype, result, starts_zero=starts_zero)
    pointer = kernel.argument(written, f"{found.var.name}_out")
    block.add(pointer, at, term)
    return finish(kernel, block, flat, product(shape))
