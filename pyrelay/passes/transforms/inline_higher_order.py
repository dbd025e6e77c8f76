"""Functions that transform what they are passed, brought to where it is known.

What is passed to a transform, and is a function, is captured instead: `grad(f)(g, x)`, in `x`, is
the gradient of a local function of `x` that calls `f(g, x)`.

A transform of a parameter cannot be expanded where it stands. Its function is inlined into those
that call it, again and again, until the parameter is a function whose code is at hand. A function
that calls itself, passing such parameters on unchanged, is first made one that does not, around a
local function that does.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from ...analysis.bindings import definitions, used_as_values
from ...analysis.call_graph import CallGraph, callees
from ...ir.expr import (
    Binding,
    Call,
    Expr,
    Flavour,
    Function,
    GlobalVar,
    LetBlock,
    Transform,
    Tuple,
    TupleGet,
    Var,
    function_type,
    type_of,
)
from ...ir.module import Module
from ...ir.names import Names
from ...ir.traverse import free_globals, post_order, rewrite
from ...ir.types import FnType, TupleType, Type, as_arguments
from ..deriving.instantiation import match_types, type_arguments
from ..normalise.flavours import with_flavours
from ..simplify.inline import inline_calls

if TYPE_CHECKING:
    from collections.abc import Collection, Container, Iterator, Mapping, Sequence

    from ...ir.dims import Dim
    from ..deriving.store import Store


def with_functions_captured(store: Store, function: Function) -> Function:
    """Return a function in A-normal form in which transforms are passed no functions, where that
    can be; itself if there are none."""
    known = definitions(function)
    taken = {
        var: value
        for var, value in known.items()
        if isinstance(value, Transform) and _captured(value) and var not in used_as_values(function)
    }
    if not taken:
        return function

    def change(node: Expr) -> Expr:
        match node:
            case Call(Var() as callee) if callee in taken:
                return _with_captures(store, node, taken[callee], known)
            case LetBlock(bindings):
                return replace(node, bindings=tuple(_flat(bindings, taken)))
            case _:
                return node

    changed = rewrite(function, change)
    assert isinstance(changed, Function)
    return changed


def _flat(bindings: Sequence[Binding], dropped: Container[Expr]) -> Iterator[Binding]:
    for binding in bindings:
        value = binding.value
        if isinstance(value, LetBlock):
            yield from value.bindings
            value = value.body
        if binding.var not in dropped:
            yield replace(binding, value=value)


def _captured(transform: Transform) -> frozenset[int]:
    """Return the positions of the arguments of a transform that are functions."""
    ty = function_type(transform.function)
    own = enumerate(ty.params[transform.captures :])
    wrt = transform.options.indices
    found = (i for i, p in own if isinstance(p, FnType) and i not in wrt)
    return frozenset(found)


def _with_captures(
    store: Store, call: Call, transform: Transform, known: Mapping[Expr, Expr]
) -> LetBlock:
    """Return a call of a transform as one of the transform of a local function of fewer
    arguments."""
    captured, span = _captured(transform), call.span
    inner_type = function_type(transform.function)
    assert not transform.captures, "captures come with the conversion of the whole program"
    before, given = _arguments(call, transform, known)
    kept = [i for i in range(len(given)) if i not in captured]
    types = tuple(inner_type.params[i] for i in kept)
    params = {i: Var(f"x{i}", t, span=span) for i, t in zip(kept, types, strict=True)}
    args = tuple(params.get(i, a) for i, a in enumerate(given))
    result = inner_type.result
    type_args: tuple[Type | Dim, ...] = ()
    if isinstance(transform.function, GlobalVar):
        callee = store.functions[transform.function.name]
        wanted = [type_of(p) for p in callee.params]
        found = match_types(callee.type_params, wanted, [type_of(a) for a in args])
        type_args = type_arguments(callee.type_params, found)
    body = Call(transform.function, args, type_args=type_args, ty=result, span=span)
    ty = FnType(types, result)
    local = Var("passed", ty, span=span)
    function = Function(tuple(params.values()), body, result, (), "passed", ty=ty, span=span)
    rest = tuple(given[i] for i in kept)
    if transform.rule.takes_tangents:
        primals = Var("primals", TupleType(types), span=span)
        before.append(Binding(primals, Tuple(rest, primals.ty, span=span)))
        rest = primals, *call.args[1:]
    outer_type = FnType(tuple(map(type_of, rest)), type_of(call))
    options = transform.options.keeping(kept)
    inner = replace(transform, function=local, options=options, ty=outer_type)
    var = Var("transformed", outer_type, span=span)
    new = Call(var, rest, ty=call.ty, span=span)
    bindings = (*before, Binding(local, function), Binding(var, inner))
    return LetBlock(bindings, new, Flavour.PURE, ty=call.ty, span=span)


def _arguments(
    call: Call, transform: Transform, known: Mapping[Expr, Expr]
) -> tuple[list[Binding], tuple[Expr, ...]]:
    """Return the arguments for the parameters of the function that a transform is of, which in
    forward mode are the fields of the first argument of the call; and what binds them."""
    if not transform.rule.takes_tangents:
        return [], call.args
    primals = call.args[0]
    made = known.get(primals)
    if isinstance(made, Tuple):
        return [], made.fields
    types = function_type(transform.function).params
    bound = [
        Binding(Var(f"x{i}", t, span=call.span), TupleGet(primals, i, t, span=call.span))
        for i, t in enumerate(types)
    ]
    return bound, tuple(b.var for b in bound)


def returns_functions(function: Function) -> bool:
    """Return whether what a function returns is a function, or a tuple with functions in it."""
    return _has_functions(function.result)


def _has_functions(ty: Type | None) -> bool:
    match ty:
        case FnType():
            return True
        case TupleType(fields):
            return any(map(_has_functions, fields))
        case _:
            return False


def bring_to_callers(store: Store, names: Collection[str]) -> bool:
    """Inline functions into those that call them, local ones where they return functions; return
    whether that changed any."""
    groups = CallGraph(store.functions).groups
    alone = {name for group in groups if len(group) == 1 for name in group}
    ready: list[str] = []
    for name in names:
        around = _without_recursion(name, store.functions[name]) if name in alone else None
        if around is not None:
            store.functions[name] = around
            ready.append(name)
    module = with_flavours(Module(store.functions, store.adts))
    changed = inline_calls(module, ready)
    if changed is module:
        return False
    store.functions.update(changed.functions)
    return True


def _without_recursion(name: str, function: Function) -> Function | None:
    """Return a function that does not mention itself; None if that cannot be, as where functions
    call each other."""
    if name not in callees(function):
        return function
    kept = _passed_on(name, function)
    if not any(isinstance(type_of(function.params[i]), FnType) for i in kept):
        return None
    names = Names()
    rest = [p for i, p in enumerate(function.params) if i not in kept]
    given = {p: replace(p, name=names.fresh(p.name)) for p in rest}
    result = function.result
    assert result is not None
    ty = FnType(tuple(type_of(p) for p in rest), result)
    local = Var(name, ty, span=function.span)

    def change(node: Expr) -> Expr:
        match node:
            case Call(GlobalVar(callee), args) if callee == name:
                passed = tuple(a for i, a in enumerate(args) if i not in kept)
                return replace(node, callee=local, args=passed, type_args=())
            case _:
                return node

    body = rewrite(function.body, change)
    if name in free_globals(body):
        return None  # it is also passed around
    inner = Function(tuple(rest), body, result, (), name, ty=ty, span=function.span)
    call = Call(local, tuple(given.values()), ty=result, span=function.span)
    block = LetBlock((Binding(local, inner),), call, Flavour.REC, ty=result, span=function.span)
    params = tuple(given.get(p, p) for p in function.params)
    return replace(function, params=params, body=block)


def _passed_on(name: str, function: Function) -> frozenset[int]:
    """Return the positions of the parameters that every call of itself passes on unchanged; none if
    it calls itself at other types."""
    kept = set(range(len(function.params)))
    own = as_arguments(function.type_params)
    for node in post_order(function):
        if isinstance(node, Call) and isinstance(node.callee, GlobalVar):
            if node.callee.name != name:
                continue
            if node.type_args not in ((), own):
                return frozenset()
            kept = {i for i in kept if node.args[i] is function.params[i]}
    return frozenset(kept)
