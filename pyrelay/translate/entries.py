"""Entries around a translated function: functions that a script passes, derives or differentiates.

A program's entry is the function itself, or one that is put around it: with the relay functions in
place that a script passes, at the types that type parameters stand for, or with transforms over it.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

from ..diagnostics.diagnostic import CheckError
from ..diagnostics.source import Span
from ..ir.dims import Dim, DimVar
from ..ir.expr import Call, Expr, Function, GlobalVar, Transform, Tuple, Var
from ..ir.types import (
    UNKNOWN,
    Substitution,
    TupleType,
    Type,
    TypeParam,
    TypeVar,
    map_type,
    subtypes,
)
from .calls.mentions import lift, omitted, transform_of
from .program import described
from .program.context import Context
from .program.derived import derived_signature, without
from .program.described import Described
from .program.environment import Static
from .program.models import ModelInstance
from .program.program import SourceProgram
from .program.signature import Parameter, Signature
from .source.definition import (
    Definition,
    DerivedFunction,
    Implicit,
    InPlace,
    LeftOut,
    MadeFunction,
    Meaning,
    PassedFunction,
    PassedTuple,
)
from .source.scope import MISSING
from .types.annotation import NotData, type_names
from .types.number_places import parts_of


def specialised(
    program: SourceProgram,
    base: str,
    functions: dict[str, Function],
    signature: Signature,
    known: Substitution,
) -> tuple[str, dict[str, Function]]:
    """Add the entry for the functions that are passed to it, at the types known; return its name
    and all functions."""
    original = functions[base]
    span = original.span
    hidden = len(original.params) - len(signature.values)
    names = [*[""] * hidden, *(p.name for p in signature.values)]
    taken = [p.ty for p, n in zip(original.params, names, strict=True) if n in program.passed]
    open_ = {s for ty in taken if ty is not None for s in subtypes(ty) if isinstance(s, TypeVar)}
    args: list[Expr] = []
    params: list[Var] = []
    for param, name in zip(original.params, names, strict=True):
        if name in program.passed:
            args.append(program.passed[name])
            continue
        declared = _at(param, known)
        params.append(replace(declared, ty=_opened(declared.ty, open_)))
        args.append(params[-1])
    params += program.made
    name = program.fresh_name(f"{base}_with_{'_'.join(program.passed)}")
    body = Call(GlobalVar(base, span=span), tuple(args), span=span)
    mentioned = type_names(p.ty for p in params if p.ty is not None)
    kept = tuple(p for p in original.type_params if p in mentioned)
    types = (*kept, *(p for p in mentioned if p not in kept))
    made = Function(tuple(params), body, None, types, original.name, span=span)
    return name, {**functions, name: made}


def in_place(cx: Context, value: InPlace, parameter: Parameter) -> Expr:
    """Return the expression that stands in the program in the place of a parameter."""
    if isinstance(value, LeftOut):
        return omitted(cx, parameter, parameter.span)
    if isinstance(value, PassedTuple):
        return _passed_tuple(cx, value, parameter)
    return passed_function(cx, value, parameter.name, parameter.span)


def passed_function(cx: Context, function: PassedFunction, name: str, span: Span) -> Expr:
    """Return a relay function that a script passes by a name. One that a call has made is made
    again, of the arguments of that call, which the program then takes too."""
    if not isinstance(function, MadeFunction):
        return lift(cx, Static(Meaning(function)), name, span)
    program, maker = cx.program, function.maker
    signature = program.signature(maker)
    functions = dict(function.functions)
    here = name.replace(".", "_")
    renamed = Substitution(
        {
            p.name: Dim.of(f"{p.name}_{here}")
            for p in signature.type_params
            if isinstance(p, DimVar)
        },
        {},
    )
    args: list[Expr] = []
    for parameter in signature.values:
        inside = f"{name}.{parameter.name}"
        if parameter.name in functions:
            args.append(passed_function(cx, functions[parameter.name], inside, span))
            continue
        var = Var(parameter.name, renamed(parameter.ty), span=parameter.span)
        implicit = parameter.implicit or Implicit(inside, None, parameter.default)
        program.made[var] = replace(parameter, name=inside, implicit=implicit, keyword_only=True)
        args.append(var)
    callee = program.function_name(ModelInstance(maker, function.statics))
    return Call(GlobalVar(callee, span=span), tuple(args), span=span)


def _passed_tuple(cx: Context, value: PassedTuple, parameter: Parameter) -> Expr:
    """Return a tuple with functions that a script passes. The program takes the other fields."""
    assert isinstance(parameter.ty, TupleType)
    fields: list[Expr] = []
    numbers = parts_of(parameter.numbers, len(value.fields))
    for place, (field, ty) in enumerate(zip(value.fields, parameter.ty.fields, strict=True)):
        name = f"{parameter.name}.{place}"
        inside = replace(parameter, name=name, ty=ty, numbers=numbers[place], default=MISSING)
        if field is not None:
            fields.append(in_place(cx, field, inside))
            continue
        var = Var(name.replace(".", "_"), ty, span=parameter.span)
        implicit = Implicit(name, None, MISSING)
        cx.program.made[var] = replace(inside, implicit=implicit, keyword_only=True)
        fields.append(var)
    return Tuple(tuple(fields), span=parameter.span)


def _opened(ty: Type | None, params: Collection[TypeVar]) -> Type | None:
    """Return the type of a parameter with the type parameters left open that the functions passed
    beside it decide."""
    if ty is None:
        return None
    return map_type(ty, lambda t: UNKNOWN if t in params else None, lambda d: d)


def derived(
    program: SourceProgram,
    entry: DerivedFunction,
    signature: Signature,
    base: str,
    functions: dict[str, Function],
    known: Substitution,
) -> tuple[str, dict[str, Function]]:
    """Add the function that transforms made of the entry, for the types known; return its name and
    all functions."""
    span = entry.definition.source.head
    original = functions[base]
    entry = without(entry, program.signature(entry.definition), program.passed)
    typed = tuple(replace(p, ty=known(p.ty)) for p in signature.parameters)
    signature = replace(signature, parameters=typed)
    params = tuple(_at(p, known) for p in original.params)
    first = len(params) - len(signature.values)
    last = first + len(signature.explicit)
    hidden, values, implicit = params[:first], params[first:last], params[last:]
    made_of = derived_signature(entry, signature, program.adts)
    for parameter in made_of.explicit:
        program.data.define_derived(parameter.ty, span)
    function: Expr = GlobalVar(base, span=span)
    if hidden or implicit:
        inside = tuple(replace(p) for p in values)
        call = Call(function, (*hidden, *inside, *implicit), span=span)
        function = Function(inside, call, span=span)
    layers: list[DerivedFunction] = []
    layer: Definition | DerivedFunction = entry
    while isinstance(layer, DerivedFunction):
        layers.append(layer)
        layer = layer.base
    for each in reversed(layers):
        function = transform_of(each, function, derived_signature(each.base, signature), span)
    if made_of is not signature:
        values = tuple(Var(p.name, p.ty, span=span) for p in made_of.explicit)
        params = (*hidden, *values, *implicit)
    assert isinstance(function, Transform)
    name = program.fresh_name(entry.name)
    body = Call(function, values, span=span)
    made = Function(params, body, None, _quantified(original, params), entry.name, span=span)
    return name, {**functions, name: made}


def instantiation(
    program: SourceProgram, definition: Definition, types: Mapping[str, Described]
) -> Substitution:
    """Return the types that type parameters of the entry stand for. Raises CheckError."""
    span, seen = definition.source.head, program.scope(definition).namespace()
    try:
        return described.instantiation(types, program.data, seen, span)
    except NotData as error:
        raise CheckError(error.problem(span)) from None


def instantiated(
    program: SourceProgram, base: str, functions: dict[str, Function], known: Substitution
) -> tuple[str, dict[str, Function]]:
    """Add the entry for the types known; return its name and all functions."""
    original = functions[base]
    span = original.span
    params = tuple(_at(p, known) for p in original.params)
    name = program.fresh_name(f"{base}_at")
    body = Call(GlobalVar(base, span=span), params, span=span)
    own = _quantified(original, params)
    made = Function(params, body, None, own, original.name, span=span)
    return name, {**functions, name: made}


def _at(param: Var, known: Substitution) -> Var:
    return replace(param, ty=None if param.ty is None else known(param.ty))


def _quantified(original: Function, params: Sequence[Var]) -> tuple[TypeParam, ...]:
    """Return the type parameters that are left, and the sizes that come with what took the place of
    others."""
    found = type_names(p.ty for p in params if p.ty is not None)
    kept = tuple(p for p in original.type_params if p in found or isinstance(p, DimVar))
    return (*kept, *(p for p in found if p not in kept))
