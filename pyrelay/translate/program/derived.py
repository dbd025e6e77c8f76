"""Signatures of what transforms make of relay functions outside of compiled code."""

from __future__ import annotations

from collections.abc import Container, Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import TYPE_CHECKING

from ...ir.derived_types.batch_dims import NoBatch, with_batch
from ...ir.derived_types.differentiable import is_differentiable
from ...ir.dims import Dim
from ...ir.expr import Batching
from ...ir.names import Names
from ...ir.transforms import Axes
from ...ir.types import TupleType, TypeVar, dim_names
from ..source.definition import Definition, DerivedFunction
from ..types.number_places import gradient_of, together
from .signature import Parameter, Signature

if TYPE_CHECKING:
    from ...ir.module import AdtDef


def derived_signature(
    mentioned: Definition | DerivedFunction,
    base: Signature,
    adts: Mapping[str, AdtDef] = MappingProxyType({}),
) -> Signature:
    """Return the signature of a function from that of the definition at the bottom. Where it is not
    said what the data types hold, `adts`, batches of data have the types of their elements."""
    layers: list[DerivedFunction] = []
    while isinstance(mentioned, DerivedFunction):
        layers.append(mentioned)
        mentioned = mentioned.base
    for layer in reversed(layers):
        if layer.rule.takes_tangents:
            base = _of_tuples(layer, base)
        elif isinstance(layer.options, Batching):
            base = _of_batches(layer.options, base, adts)
    return base


def without(
    mentioned: DerivedFunction, signature: Signature, names: Container[str]
) -> DerivedFunction:
    """Return transforms of a function for its parameters but those of these names, which are in
    place already."""
    takes = derived_signature(mentioned.base, signature).explicit
    kept = [i for i, p in enumerate(takes) if p.name not in names]
    base = mentioned.base
    if isinstance(base, DerivedFunction):
        base = without(base, signature, names)
    options = mentioned.options
    if isinstance(options, Batching):
        axes = _axes_without(options.in_axes, mentioned.base, signature, names)
        return replace(mentioned, base=base, options=replace(options, in_axes=axes))
    return replace(mentioned, base=base, options=options.keeping(kept))


def _axes_without(
    axes: Axes, of: Definition | DerivedFunction, signature: Signature, names: Container[str]
) -> Axes:
    """Return the axes of the parameters of a function but for those of these names, which are in
    the first tuple where it is one of tuples. Axes that do not fit are left to inference."""
    while isinstance(of, DerivedFunction) and not of.rule.takes_tangents:
        of = of.base
    if not isinstance(axes, tuple) or not axes:
        return axes
    if isinstance(of, DerivedFunction):
        primals, *rest = axes
        return (_axes_without(primals, of.base, signature, names), *rest)
    own = signature.explicit
    if len(own) != len(axes):
        return axes
    return tuple(a for p, a in zip(own, axes, strict=True) if p.name not in names)


def _of_batches(options: Batching, base: Signature, adts: Mapping[str, AdtDef]) -> Signature:
    """Return the signature of a function of batches. Axes that do not fit are left to inference,
    which reports them."""
    own = base.explicit
    sizes = Names(n for p in own for n in dim_names(p.ty))
    size = Dim.of(sizes.fresh("batch"))
    try:
        axes = options.axes(len(own))
        batches = {
            p.name: replace(p, ty=with_batch(p.ty, a, size, adts), numbers=None)
            for p, a in zip(own, axes, strict=True)
        }
    except (ValueError, NoBatch):
        return base
    return replace(base, parameters=tuple(batches.get(p.name, p) for p in base.parameters))


def _of_tuples(layer: DerivedFunction, base: Signature) -> Signature:
    """Return the signature of a function of two tuples: the arguments, and their tangents."""
    own = base.explicit
    moved = [p for p in own if _is_moved(p, layer)]
    span = layer.definition.source.head
    primals = Parameter(
        "primals",
        TupleType(tuple(p.ty for p in own)),
        span,
        numbers=together(p.numbers for p in own),
    )
    tangents = Parameter(
        "tangents",
        TupleType(tuple(p.ty for p in moved)),
        span,
        numbers=together(gradient_of(p.numbers) for p in moved),
    )
    rest = (p for p in base.parameters if p not in own)
    return replace(base, parameters=(primals, tangents, *rest))


def _is_moved(parameter: Parameter, layer: DerivedFunction) -> bool:
    """Return whether a function is differentiated in a parameter."""
    if layer.wrt is not None:
        return parameter.name in layer.wrt
    return is_differentiable(parameter.ty) or isinstance(parameter.ty, TypeVar)
