"""Names as values: constants, operators, functions and models as functions.

An operator or a function with hidden parameters that is mentioned, not called, becomes a lambda
that calls it: its hidden parameters are captured.
"""

from __future__ import annotations

import ast
import enum
from collections.abc import Callable, Mapping
from dataclasses import fields, replace
from types import FunctionType, MappingProxyType, ModuleType
from typing import Any, TypeVar

from ...diagnostics.catalogue.call import WrongCall
from ...diagnostics.catalogue.captures import CapturedObject, CapturedTensor, UndecoratedFunction
from ...diagnostics.catalogue.language import Unsupported
from ...diagnostics.catalogue.signatures import WrongArguments
from ...diagnostics.catalogue.sites import ImplicitMissing, UnknownModel
from ...diagnostics.diagnostic import CheckError
from ...diagnostics.source import Span
from ...ir.constant import placeholder
from ...ir.dims import Dim
from ...ir.expr import Call, Constant, Constructor, Expr, Function, GlobalVar, Transform, Tuple, Var
from ...ir.intrinsics import Intrinsic
from ...ir.op import HiddenKind, Missing, Op
from ...ir.traverse import Steps, run
from ...ir.types import DType
from ...operators.host.loop import equal_values
from ...operators.host.sizes import size
from ...operators.primitive.compare import equal
from ...prelude.names import library_value
from ..names.atoms import again
from ..program.context import Context, in_turn
from ..program.derived import derived_signature
from ..program.environment import Bound, Static
from ..program.signature import Parameter, Signature
from ..source.definition import Definition, DerivedFunction, Implicit, meaning
from ..source.optimizers import Recipe
from ..source.residual import Residual
from ..source.scope import MISSING, is_data, is_frozen
from ..source.unions import is_data_class
from .attributes import static_arguments
from .library import library_mention
from .passed_models import passed_operands
from .residual_calls import residual_mention

T = TypeVar("T")


def unit(span: Span) -> Expr:
    """Return the empty tuple."""
    return Tuple((), span=span)


def value_of(cx: Context, entry: Bound, name: str, span: Span) -> Expr:
    """Return the expression that a bound name stands for."""
    if entry.atom is not None:
        # Each mention of a global function may be at types of its own.
        return replace(entry.atom) if isinstance(entry.atom, GlobalVar) else entry.atom
    if entry.static is None:
        # A nested function that uses a model, which is only at hand where it is differentiated.
        return cx.refuse(UnknownModel(span))
    return lift(cx, entry.static, name, span)


def lift(cx: Context, static: Static, name: str, span: Span) -> Expr:  # noqa: C901  one a meaning
    """Return a Python value as an expression; one that has no meaning is reported."""
    value = static.value
    of_prelude = library_value(value)
    if of_prelude is not None:
        return library_mention(of_prelude, span)
    found = _plain(value, span)
    if found is not None:
        if static.exact:
            return found
        return cx.refuse(
            CapturedObject(
                span,
                name,
                "value from an object that can change",
                "keep it in a frozen dataclass or a global name, or pass it as an argument",
            )
        )
    match meaning(value):
        case Op() as op:
            return _operator(cx, op, span)
        case Definition() | DerivedFunction() as function:
            return mention(cx, function, span)
        case Residual() as residual:
            return residual_mention(cx, residual, span)
        case Implicit() as implicit:
            found = cx.supplied.get(implicit)
            return again(found) if found is not None else refuse_value(cx, value, name, span)
        case Constant(value=data, ty=ty):
            return Constant(data, ty, span=span)
        case None if is_data_class(value):
            return _constructor(cx, value, span)
        case None if static.exact and is_frozen(value) and is_data(value):
            return run(_instance(cx, value, span))
        case _:
            return refuse_value(cx, value, name, span)


def _plain(value: Any, span: Span) -> Expr | None:
    """Return the expression of numbers, strings, None and tuples, None for anything else."""
    match value:
        case bool() | int() | float() | str():
            raw = value.value if isinstance(value, enum.Enum) else value
            return Constant(raw, span=span)
        case None:
            return unit(span)
        case Dim():
            return Call(size, (), {"dim": value}, span=span)
        case enum.Enum():
            return _plain(value.value, span)
        case tuple():
            fields = [_plain(v, span) for v in value]
            if any(f is None for f in fields):
                return None
            return Tuple(tuple(f for f in fields if f is not None), span=span)
        case _:
            return None


def mention(
    cx: Context,
    function: Definition | DerivedFunction,
    span: Span,
    passed: Mapping[str, ast.expr] = MappingProxyType({}),
) -> Expr:
    """Return a relay function or a model as a value. `passed` are the arguments for its parameters,
    where they are known; they determine the models and the static parameters."""
    derived: list[DerivedFunction] = []
    while isinstance(function, DerivedFunction):
        derived.append(function)
        function = function.base
    found = _definition(cx, function, span, passed)
    for layer in reversed(derived):
        signature = cx.program.signature(layer.definition)
        found = transform_of(layer, found, derived_signature(layer.base, signature), span)
    return found


def transform_of(layer: DerivedFunction, function: Expr, signature: Signature, span: Span) -> Expr:
    """Return the transform of a function of a signature that was made outside of compiled code."""
    options = layer.options
    if layer.wrt is not None:
        names = [p.name for p in signature.values]
        for unknown in (n for n in layer.wrt if n not in names):
            there = ", ".join(f"`{n}`" for n in names) or "none"
            why = f"has no parameter {unknown!r} to differentiate in; its values are {there}"
            definition = layer.definition
            raise CheckError(WrongCall(definition.name, definition.source.head, why))
        options = replace(options, wrt=tuple(names.index(n) for n in layer.wrt))
    return Transform(layer.rule, function, options, span=span)


def _instance(cx: Context, value: Any, span: Span) -> Steps[Expr]:
    """Return captured data of numbers, bools and strings, at any depth."""
    plain = _plain(value, span)
    if plain is not None:
        return plain
    parts = value if isinstance(value, tuple) else [getattr(value, f.name) for f in fields(value)]
    inside = yield in_turn(_instance(cx, part, span) for part in parts)
    if isinstance(value, tuple):
        return Tuple(tuple(inside), span=span)
    return Call(_constructor(cx, type(value), span), tuple(inside), span=span)


def _constructor(cx: Context, cls: type, span: Span) -> Expr:
    """Return a dataclass as a function of its fields."""
    found = cx.constructor(cls, span)
    if found is None:
        return placeholder(span)
    return Constructor(found.adt, found.name, span=span)


def implicit_values(cx: Context, signature: Signature, span: Span) -> tuple[Expr, ...]:
    """Return the implicit values that a function takes, as they are where it is mentioned."""
    return tuple(omitted(cx, p, span) for p in signature.implicit)


def supplying(cx: Context, values: Mapping[Implicit, Expr], make: Callable[[], T]) -> T:
    """Return the result of `make` where these implicit values are supplied."""
    before = dict(cx.supplied)
    cx.supplied.update(values)
    try:
        return make()
    finally:
        cx.supplied.clear()
        cx.supplied.update(before)


def omitted(cx: Context, parameter: Parameter, span: Span) -> Expr:
    """Return the value of a parameter that a call of a function leaves out: an implicit one that is
    at hand, or the default."""
    implicit = parameter.implicit
    if implicit is not None and implicit in cx.supplied:
        return again(cx.supplied[implicit])
    if parameter.default is MISSING:
        cx.program.guesses = True
        return cx.refuse(ImplicitMissing(span, parameter.name))
    return lift(cx, Static(parameter.default), parameter.name, span)


def _definition(
    cx: Context, definition: Definition, span: Span, passed: Mapping[str, ast.expr]
) -> Expr:
    signature = cx.program.signature(definition)
    given = static_arguments(cx, passed, definition, signature)
    name, hidden = passed_operands(cx, definition, span, passed, given)
    callee = GlobalVar(name, span=span)
    if not hidden and not signature.implicit:
        return callee
    params = tuple(Var(p.name, span=span) for p in signature.explicit)
    rest = implicit_values(cx, signature, span)
    return Function(params, Call(callee, (*hidden, *params, *rest), span=span), span=span)


def _operator(cx: Context, op: Op, span: Span) -> Expr:
    """Return an operator as a function of its required operands."""
    missing = [p.name for p in op.attributes if p.default is Missing.REQUIRED]
    if missing:
        why = f"needs its argument `{missing[0]}`: write a lambda that calls it"
        return cx.refuse(WrongArguments(span, op.name, why, operator_text(op)))
    return operator_function(op, span)


def operator_function(op: Op, span: Span) -> Function:
    """Return an operator as a function of its required operands; other arguments are left out."""
    params = {p.name: Var(p.name, span=span) for p in op.operands if p.default is Missing.REQUIRED}
    args = tuple(params.get(p.name, unit(span)) for p in op.operands)
    attrs = {p.name: False if p.default is Missing.MODE else p.default for p in op.attributes}
    return Function(tuple(params.values()), Call(as_called(op), args, attrs, span=span), span=span)


def as_called(op: Op) -> Op:
    """Return the operator that a call by the name of one is of: `relay.equal`, unlike `==`,
    compares data too."""
    return equal_values if op is equal else op


def operator_text(op: Op) -> str:
    """Return the signature of an operator, as Python would show it."""
    keys = {h.name for h in op.hidden if h.holder is HiddenKind.KEY}
    supplied = {h.name for h in op.hidden}
    names = {p.name for p in op.params}
    shown = [_parameter_text(p, p.name in supplied) for p in op.params if p.name not in keys]
    named = [_parameter_text(p, True) for p in op.params if p.name in keys]
    named += [_parameter_text(p, False) for p in op.hyper if p.name not in names]
    return f"{op.name}({', '.join([*shown, *(('*', *named) if named else ())])})"


def _parameter_text(param: Any, is_supplied: bool) -> str:
    """Return a parameter with its default; a model supplies some that are left out."""
    match param.default:
        case Missing.REQUIRED:
            return f"{param.name}=None" if is_supplied else param.name
        case Missing.MODE:
            return f"{param.name}=<mode of the model>"
        case default:
            return f"{param.name}={default!r}"


def refuse_value(cx: Context, value: Any, name: str, span: Span) -> Expr:
    """Report a Python object that has no meaning as a value."""
    found = meaning(value)
    if isinstance(found, DType):
        return cx.refuse(
            CapturedObject(span, name, "element type", f"cast with it: `relay.cast(x, {name})`")
        )
    if isinstance(found, Intrinsic):
        instead = f"call it: `{name}(...)`"
        return cx.refuse(CapturedObject(span, name, "function of the language", instead))
    if isinstance(found, Recipe):
        instead = "name it in the update, or pass it for a parameter annotated `Optimizer`"
        return cx.refuse(Unsupported(span, f"the optimiser `{name}` as a value", instead))
    kind = _array_kind(value)
    if kind is not None:
        return cx.refuse(CapturedTensor(span, name, kind))
    if isinstance(value, FunctionType):
        instead = f"decorate `{value.__name__}` with @relay"
        return cx.refuse(UndecoratedFunction(span, name, instead))
    return cx.refuse(CapturedObject(span, name, _kind(value), _instead(value)))


def _array_kind(value: Any) -> str | None:
    if hasattr(value, "__torch_function__") or type(value).__module__.startswith("torch"):
        return "tensor" if hasattr(value, "requires_grad") else None
    return "array" if hasattr(value, "__array__") or hasattr(value, "__dlpack__") else None


def _kind(value: Any) -> str:
    if isinstance(value, ModuleType):
        return "module"
    if isinstance(value, type):
        return "class"
    if isinstance(value, TypeVar):
        return "type parameter that is no size"
    article = type(value).__name__
    return f"Python object of type `{article}`"


def _instead(value: Any) -> str:
    if isinstance(value, list):
        return "make it a tuple"
    if isinstance(value, TypeVar):
        return "types are no values: name them in annotations only"
    if isinstance(value, ModuleType | type):
        return "name one of its attributes"
    if is_frozen(value):
        return "name one of its fields"
    if type(value).__name__ == "dtype" and str(value).startswith("torch."):
        return f"write `relay.{str(value).removeprefix('torch.')}`"
    return "pass what you need of it as an argument: numbers, tensors, tuples"
