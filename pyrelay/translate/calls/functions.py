"""Calls of relay functions, of models, of nested functions, and of the prelude."""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from dataclasses import replace

from ...diagnostics.catalogue.signatures import WrongArguments
from ...diagnostics.source import Span
from ...ir.constant import placeholder
from ...ir.dims import Dim, DimVar
from ...ir.expr import Binding, Call, Expr, Function, GlobalVar, RefRead, Var
from ...ir.traverse import Steps, let
from ...ir.types import FnType, Type
from ...prelude.library import library
from ...prelude.names import LibraryFunction, LibraryValue
from ..names.atoms import again, atom, into
from ..names.static import static_meaning
from ..program.context import Context, ModelParts, field_of
from ..program.derived import derived_signature
from ..program.environment import Bound, LocalFunction
from ..program.models import ModelInstance
from ..program.signature import Signature
from ..source.definition import Definition, DerivedFunction, Implicit, bottom
from ..source.residual import Residual
from ..source.scope import MISSING
from .arguments import Callee, Slot, argument_values, bind_arguments, in_order
from .attributes import static_arguments
from .library import library_callee, library_reference
from .mentions import implicit_values, mention, omitted, supplying
from .passed_models import passed_operands


def definition_call(
    cx: Context,
    node: ast.Call,
    definition: Definition,
    types: ast.Subscript | None = None,
    receiver: ast.expr | None = None,
) -> Steps[Expr]:
    """Translate a call of a relay function or of a model definition; `types` is what is called if
    it says type arguments, `receiver` the instance whose method is called."""
    wanted, cx.wanted = cx.wanted, None
    span = cx.span(node)
    signature = cx.program.signature(definition)
    bound = match_call(cx, node, definition.name, signature, receiver)
    if bound is None:
        return placeholder(span)
    given = static_arguments(cx, bound, definition, signature)
    cx.wanted = wanted
    name, hidden = passed_operands(cx, definition, span, bound, given)
    cx.wanted = None
    args = () if types is None else _type_arguments(cx, types, definition, signature)
    return (yield _apply(cx, node, GlobalVar(name, span=span), hidden, bound, signature, args))


def _type_arguments(
    cx: Context, node: ast.Subscript, definition: Definition, signature: Signature
) -> tuple[Type | Dim, ...]:
    """Return the sizes and types in `f[...]`; none when they do not fit, which is reported."""
    nodes = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
    found = [cx.annotations.read_argument(n, cx.span(n)) for n in nodes]
    args = tuple(a for a in found if a is not None)
    params = signature.type_params
    kinds = [isinstance(p, DimVar) for p in params]
    if len(args) == len(nodes) and kinds != [isinstance(a, Dim) for a in args]:
        names = ", ".join(f"`{p.name}`" for p in params) or "none"
        why = "does not take these type arguments"
        way = f"its type parameters are, in order, {names}"
        problem = WrongArguments(cx.span(node), definition.name, why, signature.text, way=way)
        cx.program.report(problem)
        return ()
    return args if len(args) == len(nodes) else ()


def derived_call(cx: Context, node: ast.Call, function: DerivedFunction) -> Steps[Expr]:
    """Translate a call of a function that a transform made of a relay function in a script."""
    signature = derived_signature(function, cx.program.signature(function.definition))
    bound = match_call(cx, node, function.name, signature)
    if bound is None:
        return mention(cx, function, cx.span(node.func))
    bindings, values = yield named_implicits(cx, bound, signature)
    callee = supplying(cx, values, lambda: mention(cx, function, cx.span(node.func), bound))
    explicit = replace(signature, parameters=signature.explicit)
    return let(bindings, (yield _apply(cx, node, callee, (), bound, explicit)))


def named_implicits(
    cx: Context, bound: Mapping[str, ast.expr], signature: Signature
) -> Steps[tuple[list[Binding], dict[Implicit, Expr]]]:
    """Return the implicit values that a call gives by name, each computed once, in bindings."""
    bindings: list[Binding] = []
    found: dict[Implicit, Expr] = {}
    for parameter in signature.implicit:
        if parameter.implicit is not None and parameter.name in bound:
            value = yield cx.expression(bound[parameter.name])
            found[parameter.implicit] = atom(value, parameter.name, into(bindings))
    return bindings, found


def without_implicits(
    cx: Context, node: ast.Call
) -> tuple[ast.Call, tuple[dict[str, ast.expr], Signature] | None]:
    """Return a transform in models without the implicit values of its function, and these."""
    function = static_meaning(cx, node.args[1] if len(node.args) > 1 else None)
    if not isinstance(function, Definition) or not node.keywords:
        return node, None
    signature = cx.program.signature(function)
    names = {p.name for p in signature.implicit}
    given = {k.arg: k.value for k in node.keywords if k.arg in names}
    if not given:
        return node, None
    rest = [k for k in node.keywords if k.arg not in given]
    made = ast.copy_location(ast.Call(node.func, node.args, rest), node)
    return made, ({str(n): v for n, v in given.items()}, signature)


def match_call(
    cx: Context, node: ast.Call, name: str, signature: Signature, receiver: ast.expr | None = None
) -> dict[str, ast.expr] | None:
    """Return the arguments of a call of a relay function by parameter, the `receiver` of a method
    first; None when they do not fit."""
    slots = tuple(
        # What a static parameter needs is asked of the instance, which may know it already.
        Slot(p.name, p.required and p.static is None and p.implicit is None, p.keyword_only)
        for p in signature.parameters
    )
    callee = Callee(name, slots, signature.text, received=0 if receiver is None else 1)
    found = bind_arguments(cx, node, callee)
    return found if found is None or receiver is None else {slots[0].name: receiver, **found}


def _apply(
    cx: Context,
    node: ast.Call,
    callee: Expr,
    hidden: tuple[Expr, ...],
    bound: Mapping[str, ast.expr],
    signature: Signature,
    type_args: tuple[Type | Dim, ...] = (),
) -> Steps[Expr]:
    span = cx.span(node)
    values = {p.name: p for p in signature.values}
    written: dict[str, Expr] = {}
    for name, argument in bound.items():
        if name in values:
            model = None if values[name].model is None else model_operand(cx, argument)
            if model is None:
                found = yield cx.expression(argument)
                model = with_defaults(cx, argument, found, values[name].ty)
            written[name] = model

    def call(args: Mapping[str, Expr]) -> Expr:
        operands = tuple(args.get(n) or omitted(cx, p, span) for n, p in values.items())
        return Call(callee, (*hidden, *operands), type_args=type_args, span=span)

    return in_order(written, list(values), call)


def explicit_parts(cx: Context, name: str, model: ModelInstance, span: Span) -> ModelParts:
    """Return the parts of an explicit model: the parameters read from its cell, and its state."""
    params = field_of(RefRead(model_field(cx, name, 0, span), span=span), 0, span)
    return ModelParts(params, model_field(cx, name, 1, span), model)


def model_field(cx: Context, name: str, index: int, span: Span) -> Expr:
    """Return a field of an explicit model: 0 is its cell, 1 its state."""
    entry = cx.local(name, span)
    assert entry is not None
    assert entry.atom is not None, "a model is always a variable"
    cx.program.updates.unite(entry.places)
    return field_of(entry.atom, index, span)


def model_call(cx: Context, node: ast.Call, name: str, model: ModelInstance) -> Steps[Expr]:
    """Translate a call of an explicit model, `model(x)`."""
    span = cx.span(node)
    parts = explicit_parts(cx, name, model, span)
    signature = cx.program.signature(model.definition)
    bound = match_call(cx, node, name, signature)
    if bound is None:
        return placeholder(span)
    function = cx.program.function_name(parts.instance)
    hidden = (parts.params, parts.state)
    return (yield _apply(cx, node, GlobalVar(function, span=span), hidden, bound, signature))


def model_function(cx: Context, name: str, model: ModelInstance, span: Span) -> Function:
    """Return an explicit model as a function value, which reads its parameters when called."""
    parts = explicit_parts(cx, name, model, span)
    signature = cx.program.signature(model.definition)
    callee = GlobalVar(cx.program.function_name(parts.instance), span=span)
    params = tuple(Var(p.name, span=span) for p in signature.explicit)
    rest = implicit_values(cx, signature, span)
    call = Call(callee, (parts.params, parts.state, *params, *rest), span=span)
    return Function(params, call, span=span)


def model_operand(cx: Context, node: ast.expr) -> Expr | None:
    """Return the explicit model that a name stands for, to be passed on as the model it is."""
    entry = cx.named(node)
    return entry.atom if isinstance(entry, Bound) and entry.model is not None else None


def local_call(cx: Context, node: ast.Call, callee: Expr, function: LocalFunction) -> Steps[Expr]:
    """Translate a call of a nested `def` by its name."""
    slots = tuple(Slot(p, p not in function.defaults) for p in function.params)
    found = Callee(function.name, slots, f"{function.name}({', '.join(function.params)})")
    written = yield argument_values(cx, node, found)
    if written is None:
        return placeholder(cx.span(node))

    def call(args: Mapping[str, Expr]) -> Expr:
        defaults = function.defaults
        operands = (args[n] if n in args else again(defaults[n]) for n in function.params)
        return Call(callee, tuple(operands), span=cx.span(node))

    return in_order(written, function.params, call)


def parameter_names(cx: Context, node: ast.expr) -> tuple[str, ...] | None:
    """Return the parameter names of the differentiated function, None when they are unknown."""
    if isinstance(node, ast.Lambda):
        return tuple(a.arg for a in node.args.args)
    entry = cx.named(node)
    if isinstance(entry, Bound) and entry.function is not None:
        return entry.function.params
    found = static_meaning(cx, node)
    if isinstance(found, Definition | DerivedFunction):
        signature = cx.program.signature(bottom(found))
        return tuple(p.name for p in derived_signature(found, signature).explicit)
    return found.names if isinstance(found, Residual) else None


def defaults_of(cx: Context, node: ast.expr) -> Mapping[str, Expr]:
    """Return the defaults of a function by parameter."""
    entry = cx.named(node)
    if isinstance(entry, Bound) and entry.function is not None:
        return entry.function.defaults
    found = static_meaning(cx, node)
    if not isinstance(found, Definition | DerivedFunction):
        return {}
    params = derived_signature(found, cx.program.signature(bottom(found))).explicit
    with_default = [p for p in params if p.default is not MISSING]
    return {p.name: omitted(cx, p, cx.span(node)) for p in with_default}


def defaults_after(cx: Context, node: ast.expr, count: int) -> tuple[Expr, ...]:
    """Return the defaults of the parameters of a function that follow the first ones; nothing where
    one of them has none."""
    names = (parameter_names(cx, node) or ())[count:]
    defaults = defaults_of(cx, node) if names else {}
    return tuple(defaults[n] for n in names) if defaults.keys() >= {*names} else ()


def with_defaults(cx: Context, node: ast.expr, function: Expr, wanted: Type | None) -> Expr:
    """Return a function that is passed where one of type `wanted` is called: if it takes more
    arguments than that, it is called with its defaults for the rest."""
    if not isinstance(wanted, FnType):
        return function
    names = parameter_names(cx, node) or ()
    defaults = defaults_of(cx, node)
    return shortened(function, names, defaults, range(len(wanted.params)), cx.span(node))


def shortened(
    function: Expr,
    names: Sequence[str],
    defaults: Mapping[str, Expr],
    kept: Sequence[int],
    span: Span,
) -> Expr:
    """Return a function of the parameters at some places that calls one, of these names, with its
    defaults for the rest; the function itself where they have none."""
    rest = {n for place, n in enumerate(names) if place not in kept}
    if not rest or not rest <= defaults.keys() or any(place >= len(names) for place in kept):
        return function
    params = {names[place]: Var(names[place], span=span) for place in kept}
    args = tuple(params[n] if n in params else defaults[n] for n in names)
    return Function(tuple(params.values()), Call(function, args, span=span), span=span)


def library_call(cx: Context, node: ast.Call, value: LibraryValue) -> Steps[Expr]:
    """Translate a call of a function or constructor of the prelude."""
    span = cx.span(node)
    callee = library_callee(value)
    bound = bind_arguments(cx, node, callee)
    if bound is None:
        return placeholder(span)
    written = dict(zip(bound, (yield cx.expressions(list(bound.values()))), strict=True))
    if isinstance(value, LibraryFunction):
        params = {p.name: p.ty for p in library().functions[value.name].params}
        written = {n: with_defaults(cx, bound[n], v, params[n]) for n, v in written.items()}

    def call(args: Mapping[str, Expr]) -> Expr:
        operands = tuple(args[s.name] for s in callee.slots)
        return Call(library_reference(value, cx.span(node.func)), operands, span=span)

    return in_order(written, [s.name for s in callee.slots], call)
