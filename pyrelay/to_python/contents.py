"""The definitions that the file of a module needs, each in order of first mention."""

from __future__ import annotations

from collections.abc import Iterator
from collections.abc import Set as AbstractSet
from typing import Any

from ..ir.dims import Dim
from ..ir.expr import Call, Constant, Function, TensorData
from ..ir.module import Module
from ..ir.op import Op
from ..ir.traverse import bound_vars, nodes_of
from ..ir.types import Type, TypeVar, dim_names, subtypes
from ..operators.host.stream import element_type, next_element
from .sizes import static_dims


def _types(module: Module) -> Iterator[Type]:
    seen: set[Type] = set()
    for node in nodes_of(module):
        found = [node.ty, *(v.ty for v in bound_vars(node))]
        found += [node.result] if isinstance(node, Function) else []
        for ty in found:
            if ty is not None and ty not in seen:
                seen.add(ty)
                yield ty


def size_names(module: Module) -> list[str]:
    """Return the names of sizes in types, static arguments and type arguments."""
    names: dict[str, None] = {}
    for adt in module.adts.values():
        own = {p.name for p in adt.type_params}
        for constructor in adt.constructors:
            for ty in constructor.fields:
                names |= dict.fromkeys(sorted(dim_names(ty) - own))
    for ty in _types(module):
        names |= dict.fromkeys(sorted(dim_names(ty)))
    for node in nodes_of(module):
        if isinstance(node, Call):
            for dim in static_dims(node):
                names |= dict.fromkeys(sorted(dim.names()))
            for arg in node.type_args:
                inside = arg.names() if isinstance(arg, Dim) else dim_names(arg)
                names |= dict.fromkeys(sorted(inside))
            if reads_element(node):
                names |= dict.fromkeys(sorted(_sizes_of(node.attrs["element"])))
    return list(names)


def reads_element(call: Call) -> bool:
    """Return whether a call gives an element of an iterable, which it describes."""
    return call.callee is next_element


def _sizes_of(element: tuple[Any, ...]) -> AbstractSet[str]:
    return dim_names(element_type(element, Dim.of))


def type_variables(module: Module) -> list[str]:
    """Return the names of type variables."""
    names: dict[str, None] = {}
    for ty in _types(module):
        names |= {part.name: None for part in subtypes(ty) if isinstance(part, TypeVar)}
    return list(names)


def constants(module: Module) -> Iterator[TensorData]:
    """Return the constant tensors, each as often as it is mentioned."""
    for node in nodes_of(module):
        if isinstance(node, Constant) and isinstance(node.value, TensorData):
            yield node.value


def operators(module: Module) -> Iterator[Op]:
    """Return the operators, each as often as it is called."""
    for node in nodes_of(module):
        if isinstance(node, Call) and isinstance(node.callee, Op):
            yield node.callee
