"""Type parameters whose values are compared: what is put in their place must have an equality.

A function that calls `relay.equal` on values of a type parameter, or calls one that does, compares
whatever its caller passes. Each call of one names its type arguments, so a call that passes
functions is refused where it stands.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from ...diagnostics.catalogue.data import NoEquality
from ...diagnostics.diagnostic import Problem
from ...ir.dims import Dim
from ...ir.expr import Call, Function, GlobalVar
from ...ir.traverse import post_order
from ...ir.types import AdtType, FnType, RefType, Type, TypeVar, show, substitution, subtypes
from ...operators.host.whole import same_values

if TYPE_CHECKING:
    from ...ir.module import AdtDef


def without_equality(
    functions: Mapping[str, Function], adts: Mapping[str, AdtDef]
) -> list[Problem]:
    """Return the calls in typed functions that pass values without an equality to what compares."""
    calls = {n: list(_calls(f)) for n, f in functions.items()}
    compared = {n: {v for c in found for v in _in_operands(c)} for n, found in calls.items()}
    pending = [n for n, names in compared.items() if names]
    callers: dict[str, list[str]] = {}
    for name, found in calls.items():
        for call in found:
            if isinstance(call.callee, GlobalVar):
                callers.setdefault(call.callee.name, []).append(name)
    while pending:
        for caller in callers.get(pending.pop(), ()):
            passed = {v for c in calls[caller] for ty in _passed(c, functions, compared)
                      for v in _variables(ty)}  # fmt: skip
            if not passed <= compared[caller]:
                compared[caller] |= passed
                pending.append(caller)
    return [
        NoEquality(call.span, functions[call.callee.name].name, show(ty))
        for found in calls.values()
        for call in found
        if isinstance(call.callee, GlobalVar)
        for ty in _passed(call, functions, compared)
        if _has_functions(ty, adts)
    ]


def _calls(function: Function) -> Iterator[Call]:
    for node in post_order(function):
        if isinstance(node, Call) and (node.callee is same_values or node.type_args):
            yield node


def _in_operands(call: Call) -> Iterator[str]:
    if call.callee is same_values and call.args[0].ty is not None:
        yield from _variables(call.args[0].ty)


def _variables(ty: Type) -> Iterator[str]:
    yield from (part.name for part in subtypes(ty) if isinstance(part, TypeVar))


def _passed(
    call: Call, functions: Mapping[str, Function], compared: Mapping[str, set[str]]
) -> Iterator[Type]:
    """Return the type arguments of a call whose values are compared."""
    if not isinstance(call.callee, GlobalVar) or call.callee.name not in functions:
        return
    name = call.callee.name
    for param, arg in zip(functions[name].type_params, call.type_args, strict=False):
        if param.name in compared[name] and not isinstance(arg, Dim):
            yield arg


def _has_functions(ty: Type, adts: Mapping[str, AdtDef]) -> bool:
    """Return whether values of a type hold functions or cells, in data too."""
    pending, seen = [ty], set[Type]()
    while pending:
        for part in subtypes(pending.pop()):
            if isinstance(part, FnType | RefType):
                return True
            if isinstance(part, AdtType) and part not in seen and part.name in adts:
                seen.add(part)
                at = substitution(adts[part.name].type_params, part.args)
                fields = adts[part.name].fields
                # Type arguments that grow never end, but what is in them shows at once.
                pending += map(at, fields) if len(seen) < _LIMIT else fields
    return False


_LIMIT = 64
"""How many instances of data are looked into at their own type arguments."""
