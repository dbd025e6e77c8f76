"""Places of largest elements as 32-bit integers.

A pool with places returns 64-bit integers, as torch does. Where nothing but gradients of pools
reads them and the image has fewer than 2^31 elements, 32 bits say as much: half of the memory, and
vectors of as many places as of floats. Torch's own pools would have to convert, so this is for
kernels.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from typing import ClassVar, Final, final

from ...analysis.bindings import definitions, uses
from ...dataclass import dataclass
from ...ir.dims import product
from ...ir.expr import Binding, Call, Expr, Function, LetBlock, TupleGet, Var, type_of
from ...ir.module import Module
from ...ir.traverse import rewrite
from ...ir.types import TensorType, TupleType, Type, int32
from ...ir.verify import Stage
from ...operators.primitive.pool import max_pool2d_backward, max_pool2d_with_indices
from ..base import Context, Opaque, Pass, nothing_opaque

_END: Final = 2**31


def narrow_places(module: Module, opaque: Opaque = nothing_opaque) -> Module:
    """Return a module in A-normal form whose pools store their places in 32 bits where they can."""
    if opaque(max_pool2d_with_indices) or opaque(max_pool2d_backward):
        return module
    return module.map_functions(_narrowed)


@final
@dataclass(frozen=True, slots=True)
class NarrowPlaces(Pass):
    """Store the places that gradients of pools read in 32 bits."""

    name: ClassVar = "narrow-places"
    needs: ClassVar = Stage.DERIVED

    def run(self, module: Module, context: Context) -> Module:
        """Return the module after the pass."""
        return narrow_places(module, context.opaque)


def _narrowed(function: Function) -> Function:
    """Return a function with narrow places."""
    new = _new_vars(function)
    if not new:
        return function

    def change(node: Expr) -> Expr:
        if isinstance(node, Var):
            return new.get(node, node)
        if not isinstance(node, LetBlock) or all(b.var not in new for b in node.bindings):
            return node
        return replace(node, bindings=tuple(_bound(b, new) for b in node.bindings))

    return replace(function, body=rewrite(function.body, change))


def _bound(binding: Binding, new: Mapping[Expr, Var]) -> Binding:
    var = new.get(binding.var)
    if var is None:
        return binding
    match binding.value:
        case Call(attrs=attrs) as call:
            narrow = {**attrs, "index_dtype": int32}
            return Binding(var, replace(call, attrs=narrow, ty=var.ty))
        case value:
            return Binding(var, replace(value, ty=var.ty))


def _new_vars(function: Function) -> dict[Expr, Var]:
    """Return the variables whose places become narrow, with those that take their place."""
    made, counts = definitions(function), uses(function)
    fields: dict[Expr, list[tuple[Var, int]]] = {}
    read: Counter[Expr] = Counter()
    for var, value in made.items():
        match value:
            case TupleGet(pair, index) if isinstance(var, Var):
                fields.setdefault(pair, []).append((var, index))
            case Call(callee, (_, _, places)) if callee is max_pool2d_backward:
                read[places] += 1
            case _:
                pass
    new: dict[Expr, Var] = {}
    for pair, found in fields.items():
        places = [var for var, index in found if index == 1]
        is_whole = len(found) == counts[pair] and all(read[p] == counts[p] for p in places)
        if not places or not is_whole or not _is_small_pool(made.get(pair)):
            continue
        for var in (pair, *places):
            assert isinstance(var, Var)
            new[var] = Var(var.name, _narrow(type_of(var)), span=var.span)
    return new


def _is_small_pool(value: Expr | None) -> bool:
    if not isinstance(value, Call) or value.callee is not max_pool2d_with_indices:
        return False
    image = type_of(value.args[0])
    size = product(image.shape[-2:]).constant if isinstance(image, TensorType) else None
    return size is not None and size < _END


def _narrow(ty: Type) -> Type:
    match ty:
        case TupleType((pooled, places)):
            return TupleType((pooled, _narrow(places)))
        case _:
            assert isinstance(ty, TensorType)
            return TensorType(ty.shape, int32)
