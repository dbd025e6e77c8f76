"""Programs made of others: transforms, the pullback and the gradient for torch autograd.

A transform is a node of the IR around the base entry; inference and the gradient pass do the rest,
exactly as for a transform that a program mentions.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from ...ir.derived_types.differentiable import is_differentiable
from ...ir.expr import (
    Batching,
    Binding,
    Call,
    Differentiation,
    Expr,
    Function,
    GlobalVar,
    Options,
    RefWrite,
    Rule,
    Transform,
    Tuple,
    TupleGet,
    Var,
)
from ...ir.module import Module
from ...ir.op import Effect, Op
from ...ir.traverse import let, post_order
from ...ir.types import UNKNOWN, TupleType
from ...lazy import LazyModule
from .program import Program

if TYPE_CHECKING:
    from ...passes.simplify import promote_refs
else:
    promote_refs = LazyModule("pyrelay.passes.simplify.promote_refs")


def derive(
    module: Module,
    entry: str,
    rule: Rule,
    options: Options,
    policy: tuple[str, ...] = (),
    rules: tuple[Expr, ...] = (),
    *,
    fixed: int = 0,
) -> tuple[Module, str]:
    """Return a translated module with an entry that is a transform of another; and its name.

    The last parameters, as many as `fixed`, are not those of the function that is transformed,
    which captures them; the transform takes them at its end.
    """
    base = module.functions[entry]
    name = f"{rule.value}.{entry}"
    span = base.span.derived(f"{rule.value} of {base.name}")
    own = base.params[: len(base.params) - fixed]
    captured = tuple(replace(p) for p in base.params[len(own) :])
    params = tuple(replace(p) for p in own)
    function: Expr = GlobalVar(entry, span=span)
    if captured:
        inside = tuple(replace(p) for p in own)
        function = Function(inside, Call(function, (*inside, *captured), span=span), span=span)
    match options:
        case Differentiation() if rule.takes_tangents:
            params = _tuples(own, options)
        case Batching():
            params = tuple(replace(p, ty=UNKNOWN) for p in params)
        case _:
            pass
    transform = Transform(rule, function, options, rules=rules, policy=policy, span=span)
    body = Call(transform, params, span=span)
    made = Function((*params, *captured), body, name=name, span=span)
    return module.with_functions({name: made}), name


def derive_in_models(
    module: Module, entry: str, rule: Rule, options: Differentiation
) -> tuple[Module, str]:
    """Return a translated module with an entry that is a transform of another in the parameters of
    models, whose parts come first, two of each; and its name. In forward mode the new entry takes
    the tangents of these parameters behind the parts."""
    if not rule.takes_tangents:
        return derive(module, entry, rule, options)
    base = module.functions[entry]
    name = f"{rule.value}.{entry}"
    span = base.span.derived(f"{rule.value} of {base.name}")
    params = tuple(replace(p) for p in base.params)
    wanted = [params[i] for i in options.indices]
    tangents = tuple(Var(f"d_{p.name}", p.ty, span=p.span) for p in wanted)
    given = (Tuple(params, span=span), Tuple(tangents, span=span))
    body = Call(Transform(rule, GlobalVar(entry, span=span), options, span=span), given, span=span)
    parts = 2 * len(wanted)
    made = Function((*params[:parts], *tangents, *params[parts:]), body, name=name, span=span)
    return module.with_functions({name: made}), name


def _tuples(params: Sequence[Var], options: Differentiation) -> tuple[Var, Var]:
    """Return the parameters of a transform in forward mode: the arguments, and their tangents."""
    places = range(len(params)) if options.wrt is None else options.wrt
    types = [p.ty for p in params]
    moved = [types[i] for i in places]
    if options.wrt is None:
        moved = [ty for ty in moved if ty is None or is_differentiable(ty)]
    primals, tangents = (
        TupleType(tuple(UNKNOWN if ty is None else ty for ty in held)) for held in (types, moved)
    )
    span = params[0].span
    return Var("primals", primals, span=span), Var("tangents", tangents, span=span)


def is_joinable(program: Program) -> bool:
    """Return whether a parameter and the result of a program can carry gradients."""
    return bool(differentiable(program)) and is_differentiable(program.type.result)


def pullback_of(program: Program, wrt: tuple[int, ...]) -> Program:
    """Return the program of a program's value and of its pullback to the parameters `wrt`."""
    options = Differentiation(wrt, single=False)
    module, name = derive(program.translated, program.entry, Rule.VJP, options)
    return Program(module, name, program.data)


def gradient_of(program: Program) -> Program:
    """Return the program from a program's arguments, and a cotangent of its result, to the
    cotangents of its arguments. Raises CheckError where the result has sizes that only the running
    program knows."""
    module, entry = program.translated, program.entry
    base = module.functions[entry]
    span = base.span.derived(f"gradient of {base.name}")
    params = tuple(replace(p) for p in base.params)
    cotangent = Var("cotangent", program.type.result, span=span)
    options = Differentiation(differentiable(program), single=False)
    rule = Transform(Rule.VJP, GlobalVar(entry, span=span), options, span=span)
    pair = Var("pair", span=span)
    pulled = Call(TupleGet(pair, 1, span=span), (cotangent,), span=span)
    body = let([Binding(pair, Call(rule, params, span=span))], pulled)
    name = f"gradient.{entry}"
    function = Function((*params, cotangent), body, name=name, span=span)
    return Program(module.with_functions({name: function}), name, program.data)


def may_run_again(module: Module) -> bool:
    """Return whether a program in A-normal form does the same when it runs once more: it writes to
    no cell that it has not made itself, and prints and reads nothing."""
    for function in promote_refs.promote_refs(module).functions.values():
        for node in post_order(function.body):
            match node:
                case RefWrite():
                    return False
                case Call(Op(effect=effect)) if effect & (Effect.IO | Effect.RANDOM):
                    return False
                case _:
                    pass
    return True


def differentiable(program: Program) -> tuple[int, ...]:
    """Return the places of the parameters that can carry gradients."""
    return tuple(i for i, ty in enumerate(program.type.params) if is_differentiable(ty))
