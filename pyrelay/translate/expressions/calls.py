"""Calls: the callee decides which translator of the other files takes over."""

from __future__ import annotations

import ast
import builtins
import dataclasses
import random
import sys
from collections.abc import Callable
from types import FunctionType
from typing import Any, Final

from ...diagnostics.catalogue.captures import CapturedObject, UndecoratedFunction
from ...diagnostics.catalogue.language import Unsupported
from ...diagnostics.catalogue.names import UnknownAttribute
from ...diagnostics.catalogue.signatures import BadValue, NotStatic
from ...diagnostics.misspelt import nearest_in
from ...diagnostics.source import Span
from ...ir.block_builder import BlockBuilder
from ...ir.constant import is_placeholder
from ...ir.expr import Call, Constant, Expr, RefCreate, Rule, Var
from ...ir.intrinsics import Intrinsic
from ...ir.op import Op
from ...ir.traverse import Steps
from ...ir.types import AdtType, StrType
from ...operators.composite.model import param
from ...operators.host.sizes import dim_size, rank, shape
from ...operators.primitive.activation import stop_gradient
from ...operators.primitive.compare import cast
from ...prelude.library import OPTION, element_of
from ...prelude.names import library_value
from ..blocks.conditions import is_assert_never, never
from ..blocks.list_append import grown_value, hold_stored
from ..calls.attributes import static_values
from ..calls.construction import construct_call
from ..calls.functions import (
    definition_call,
    derived_call,
    library_call,
    model_call,
)
from ..calls.mentions import refuse_value
from ..calls.residual_calls import residual_call
from ..calls.user_rules import policy_call
from ..data.data_class import refusal
from ..data.methods import SYMBOLS
from ..lists.list_changes import refuse_change
from ..lists.list_methods import list_method
from ..lists.tensor_displays import tensor
from ..models import creation, model_calls, records, updates
from ..models.gradients import RULES, gradient_call
from ..models.listed_models import with_names
from ..names.declared_types import declared_type
from ..names.static import static_meaning, static_value
from ..program.context import Context
from ..program.environment import Bound, Static
from ..source.definition import Definition, DerivedFunction, meaning
from ..source.flow import CHANGES
from ..source.optimizers import Maker, OptimizerUse
from ..source.residual import Residual
from ..source.scope import nearest
from ..source.syntax import arguments_of
from ..source.unions import is_data_class, is_users_class, may_be_field
from ..subset.migration_hints import (
    OF_BUILTINS,
    OF_CONTAINERS,
    OF_NAMESPACES,
    OF_RANDOM,
    OF_VALUES,
    STRINGS,
)
from ..subset.tables import BUILTINS, CASTS, LIKE, LIST_METHODS, METHODS, SAME
from .builtin_calls import CALLS, IN_LOOPS
from .function_calls import function_call
from .method_calls import Otherwise, method_use, no_method, replace_call, special_use
from .operators import operator_call


def call(cx: Context, node: ast.Call) -> Steps[Expr]:
    """Translate a call."""
    wanted, cx.wanted = cx.wanted, None
    code = BlockBuilder()
    named = yield with_names(cx, node, code)
    if named is not node:
        return code.close((yield call(cx, named)))
    if cx.grown:
        hold_stored(cx, node)
    known = static_value(cx, node.func)
    if known is not None:
        cx.wanted = wanted
        return (yield _static_call(cx, node, known))
    if isinstance(node.func, ast.Subscript):
        definition = static_meaning(cx, node.func.value)
        if isinstance(definition, Definition):
            return (yield definition_call(cx, node, definition, node.func))
    if isinstance(node.func, ast.Attribute):
        return (yield _method_call(cx, node, node.func))
    entry = cx.named(node.func)
    if isinstance(entry, Bound) and entry.model is not None:
        assert isinstance(node.func, ast.Name)
        return (yield model_call(cx, node, node.func.id, entry.model))
    if not isinstance(entry, Bound) or entry.function is not None or node.keywords:
        return (yield function_call(cx, node, entry if isinstance(entry, Bound) else None))

    def plain(function: ast.expr, *args: ast.expr) -> Steps[Expr]:
        made = ast.copy_location(ast.Call(function, [*args], []), node)
        return function_call(cx, made, entry)

    written = (node.func, *node.args)
    return (yield special_use(cx, node, SYMBOLS[ast.Call], written, plain))


def _static_call(cx: Context, node: ast.Call, known: Static) -> Steps[Expr]:
    match meaning(known.value):
        case Op() as op:
            return (yield operator_call(cx, node, op))
        case Definition() as definition:
            return (yield definition_call(cx, node, definition))
        case DerivedFunction() as function:
            return (yield derived_call(cx, node, function))
        case Residual() as residual:
            return (yield residual_call(cx, node, residual))
        case Intrinsic() as intrinsic:
            return (yield _intrinsic_call(cx, node, intrinsic, known.value))
        case Maker() as maker:
            return _optimizer(cx, node, maker)
        case None if is_data_class(known.value):
            return (yield construct_call(cx, node, known.value))
        case _:
            found = library_value(known.value)
            if found is not None:
                return (yield library_call(cx, node, found))
            return (yield _python_call(cx, node, known.value))


def _intrinsic_call(
    cx: Context, node: ast.Call, intrinsic: Intrinsic, function: Any
) -> Steps[Expr]:
    if intrinsic in RULES:
        return (yield gradient_call(cx, node, intrinsic))
    if intrinsic in _INTRINSICS:
        return (yield _INTRINSICS[intrinsic](cx, node))
    match intrinsic:
        case Intrinsic.EXPORT_MODEL:
            return model_calls.export_model(cx, node)
        case Intrinsic.WITH_PARAMS:
            return model_calls.with_params(cx, node)
        case Intrinsic.STOP_GRADIENT:
            return (yield operator_call(cx, node, stop_gradient))
        case Intrinsic.CHECKPOINT | Intrinsic.AUTOCAST:
            return (yield policy_call(cx, node, Rule(intrinsic.value)))
        case Intrinsic.PARAM:
            return (yield _param(cx, node))
        case Intrinsic.CONST:
            return _const(cx, node, function)
        case Intrinsic.LAYERS:
            instead = "use it in a loop: `for i in relay.layers(3):`"
            return cx.refuse(
                Unsupported(cx.span(node), "`relay.layers` outside of a `for`", instead)
            )
        case _:
            instead = "call it in the script, outside of compiled code"
            what = f"`relay.{intrinsic.value}` here"
            return cx.refuse(Unsupported(cx.span(node), what, instead))


def _param(cx: Context, node: ast.Call) -> Steps[Expr]:
    """Translate `relay.param(shape, ...)`: an operator that has nothing but a hidden value."""
    named = [ast.keyword("shape", a) for a in node.args[:1]]
    for keyword in named:
        ast.copy_location(keyword, keyword.value)
    plain = ast.Call(node.func, node.args[1:], [*named, *node.keywords])
    return (yield operator_call(cx, ast.copy_location(plain, node), param))


def _ref(cx: Context, node: ast.Call) -> Steps[Expr]:
    if len(node.args) != 1 or node.keywords:
        instead = "a cell has one value: `relay.ref(v)`"
        return cx.refuse(Unsupported(cx.span(node), "`relay.ref` with these arguments", instead))
    return RefCreate((yield cx.expression(node.args[0])), span=cx.span(node))


def _const(cx: Context, node: ast.Call, function: Callable[[Any], Any]) -> Expr:
    """Return a captured tensor or array as a constant; the namespace's own function reads it."""
    known = static_value(cx, node.args[0]) if len(node.args) == 1 else None
    if known is None:
        instead = "write `relay.const(table)` with a captured tensor or array, by name"
        return cx.refuse(Unsupported(cx.span(node), "`relay.const` of this value", instead))
    found = meaning(function(known.value))
    assert isinstance(found, Constant)
    return Constant(found.value, found.ty, span=cx.span(node))


def _optimizer(cx: Context, node: ast.Call, maker: Maker) -> Expr:
    """Report what is wrong with an optimiser that is not known before the program runs."""
    name = f"relay.optim.{maker.name}"
    known = [static_value(cx, a) for a in arguments_of(node)]
    for argument, value in zip(arguments_of(node), known, strict=True):
        if value is None or not value.exact:
            wanted = static_values(cx, argument)
            return cx.refuse(NotStatic(cx.span(argument), f"an argument of `{name}`", wanted))
    free = len(node.args)
    values = [v.value for v in known if v is not None]
    names = [str(k.arg) for k in node.keywords]
    try:
        maker.make(*values[:free], **dict(zip(names, values[free:], strict=True)))
    except (TypeError, ValueError) as error:
        return cx.refuse(BadValue(cx.span(node), f"`{name}`", str(error)))
    instead = f"give it a name of its own: `opt = {ast.unparse(node)}`"
    return cx.refuse(Unsupported(cx.span(node), "an optimiser as a value", instead))


_INTRINSICS: Final[dict[Intrinsic, Callable[[Context, ast.Call], Steps[Expr]]]] = {
    Intrinsic.CREATE_MODEL: creation.create_model,
    Intrinsic.REF: _ref,
    Intrinsic.SGD: records.sgd,
    Intrinsic.TENSOR: tensor,
    Intrinsic.TREE_MAP: records.tree_map,
    Intrinsic.UPDATE_MODEL_PARAMS: updates.update_model_params,
}


def _python_call(cx: Context, node: ast.Call, function: Any) -> Steps[Expr]:
    """Translate a call of a Python object that has no meaning to the compiler."""
    for known, handler in CALLS.items():
        if function is known:
            return (yield handler(cx, node))
    for known, op in BUILTINS.items():
        if function is known:
            return (yield operator_call(cx, node, op))
    if function is dataclasses.replace and (made := (yield replace_call(cx, node))) is not None:
        return made
    stated = ast.copy_location(ast.Expr(node), node)
    if is_assert_never(cx, stated):
        return (yield never(cx, stated))
    return _not_compiled(cx, node, function)


def _not_compiled(cx: Context, node: ast.Call, function: Any) -> Expr:
    """Report a call of a Python object that has no meaning in the language."""
    span, name = cx.span(node.func), ast.unparse(node.func)
    if any(function is f for f in IN_LOOPS):
        instead = f"use it in a loop: `for i in {name}(...):`"
        return cx.refuse(Unsupported(cx.span(node), f"`{name}` outside of a `for`", instead))
    if _is_torch(function):
        return cx.refuse(UndecoratedFunction(span, name, _relay_name(function)))
    if isinstance(function, FunctionType) or _is_own(function):
        return cx.refuse(UndecoratedFunction(span, name, _instead_of(function)))
    if is_users_class(function):
        why = refusal(function)
        assert why is not None
        return cx.refuse(why(span))
    if callable(function):
        return _refuse_callable(cx, function, name, span)
    return refuse_value(cx, function, name, span)


def _instead_of(function: Any) -> str:
    """Return the replacement for a call of a function that is not compiled."""
    if function is dataclasses.replace:
        return "test the class first, or make a new value: `P(x=2.0, y=p.y)`"
    if function.__module__.split(".")[0] in sys.stdlib_module_names:
        return "call it outside of compiled code, and pass the result as an argument"
    if hasattr(function, "bind"):  # a model
        return "call its definition, and pass the model: `model.bind(f)(x)`"
    if _is_own(function):
        return "call it outside of compiled code, and use what it returns, by its name, inside"
    return f"decorate `{function.__name__}` with @relay"


def _is_own(function: Any) -> bool:
    """Return whether a function is of the namespace `relay`, for scripts alone."""
    module = getattr(function, "__module__", None)
    return callable(function) and str(module).split(".")[0] == __name__.split(".")[0]


def _refuse_callable(cx: Context, function: Any, name: str, span: Span) -> Expr:
    """Report a function of Python that is not in the language."""
    builtin = OF_BUILTINS.get(getattr(function, "__name__", ""))
    if builtin is not None and function is getattr(builtins, function.__name__, None):
        return cx.refuse(Unsupported(span, f"`{name}`", builtin))
    instead = "call it outside of compiled code, and pass the result as an argument"
    owner = getattr(function, "__self__", None)
    if isinstance(owner, str):
        instead = OF_VALUES.get(function.__name__, STRINGS)
    elif isinstance(owner, random.Random):
        instead = OF_RANDOM.get(function.__name__, instead)
    return cx.refuse(CapturedObject(span, name, "Python callable", instead))


def _is_torch(function: Any) -> bool:
    module = getattr(function, "__module__", None) or type(function).__module__
    return callable(function) and module.split(".")[0] in ("torch", "numpy")


def _relay_name(function: Any) -> str:
    from ...operators.table import BY_NAME

    name = getattr(function, "__name__", "")
    if name in BY_NAME:
        return f"write `relay.{name}`"
    if name in OF_NAMESPACES:
        return OF_NAMESPACES[name]
    if isinstance(function, type):
        near = nearest(name.lower().rstrip("123d"), BY_NAME)
        shown = "" if near is None else f", such as `relay.{near}`"
        return f"layers are operators inside a function under @relay_model{shown}"
    if hasattr(function, "forward"):
        return "write the model as a function under @relay_model; it takes the module's state_dict"
    near = nearest(name, BY_NAME)
    return f"use an operator of `relay`{'' if near is None else f', such as `relay.{near}`'}"


def _method_call(cx: Context, node: ast.Call, function: ast.Attribute) -> Steps[Expr]:
    """Translate a method call: of an explicit model, or of a tensor."""
    entry = cx.named(function.value)
    if isinstance(entry, Bound) and entry.model is not None:
        assert isinstance(function.value, ast.Name)
        if function.attr == "bind":
            return (yield model_calls.bind(cx, node, function.value.id, entry.model))
        return model_calls.model_attribute(cx, function, function.value.id, entry.model)
    found = yield method_use(cx, node, _other_meaning(cx, node, function))
    if found is not None:
        return found
    owner = static_value(cx, function.value)
    if owner is not None and not isinstance(owner.value, int | float | str | bool | tuple):
        return missing_attribute(cx, function, owner)
    return (yield _value_method(cx, node, function))


def _other_meaning(cx: Context, node: ast.Call, function: ast.Attribute) -> Otherwise | None:
    """Return the translator of a call as that of a tensor's or list's method, or of a field; None
    where none is named so."""
    name = function.attr
    is_other = name in _OTHERS or may_be_field(name, cx.annotations.namespace)
    if not is_other and grown_value(cx, function.value) is None:
        return None

    def translate(receiver: ast.expr) -> Steps[Expr]:
        callee = ast.copy_location(ast.Attribute(receiver, name, ast.Load()), function)
        call = ast.copy_location(ast.Call(callee, node.args, node.keywords), node)
        return _value_method(cx, call, callee)

    return translate


def _value_method(cx: Context, node: ast.Call, function: ast.Attribute) -> Steps[Expr]:
    """Translate a method call of a value that is of no user's class."""
    if function.attr == "size" and len(node.args) == 1:
        return (yield _size(cx, node, function))
    if function.attr in LIKE or function.attr in CASTS or function.attr in SAME:
        return (yield _plain_method(cx, node, function))
    op = _MEASURES.get(function.attr) or METHODS.get(function.attr)
    if op is None:
        return (yield _field_call(cx, node, function))
    return (yield _operator_method(cx, node, function, op))


def _operator_method(cx: Context, node: ast.Call, function: ast.Attribute, op: Op) -> Steps[Expr]:
    """Translate a call of a method that is an operator, unless the receiver is no tensor."""
    receiver = yield cx.expression(function.value)
    if is_placeholder(receiver):
        return receiver
    ty = receiver.ty if isinstance(receiver, Var) else None
    if isinstance(ty, AdtType) and ty.name != OPTION:
        return (yield _field_call(cx, node, function))
    if isinstance(receiver, Var) and isinstance(receiver.ty, StrType):
        found = UnknownAttribute(cx.span(function), "a string", function.attr, None, STRINGS)
        return cx.refuse(found)
    use = records.record_at(cx, function.value, receiver)
    if use is not None and function.attr == "norm" and not (node.args or node.keywords):
        return records.norm(cx, node, receiver, use)
    return (yield operator_call(cx, node, op, receiver))


def _field_call(cx: Context, node: ast.Call, function: ast.Attribute) -> Steps[Expr]:
    """Translate a call of a function that a record holds, or of a list's method."""
    name = function.attr
    is_field = may_be_field(name, cx.annotations.namespace)
    if name in CHANGES and not is_field:
        return refuse_change(cx, node)
    if name in LIST_METHODS and not is_field:
        return (yield list_method(cx, node, function))
    if not is_field or node.keywords:
        receiver = yield cx.expression(function.value)
        ty = receiver.ty if isinstance(receiver, Var) else None
        if isinstance(ty, AdtType) and ty.name in cx.program.data.types:
            return cx.refuse(no_method(cx, function, ty))
        return receiver if is_placeholder(receiver) else cx.refuse(unknown_method(cx, function))
    callee = yield cx.expression(function)
    args = yield cx.expressions(node.args)
    return Call(callee, args, span=cx.span(node))


def _plain_method(cx: Context, node: ast.Call, function: ast.Attribute) -> Steps[Expr]:
    """Translate a method that takes nothing, or another tensor whose shape it takes."""
    name, span = function.attr, cx.span(node)
    wanted = 1 if name in LIKE else 0
    if len(node.args) != wanted or node.keywords:
        form = f"x.{name}({'other' if wanted else ''})"
        return cx.refuse(Unsupported(span, f"`{name}` with these arguments", f"write `{form}`"))
    receiver = yield cx.expression(function.value)
    if name in SAME:
        return receiver
    if name in CASTS:
        return Call(cast, (receiver,), {"dtype": CASTS[name]}, span=span)
    op, attr = LIKE[name]
    other = yield cx.expression(node.args[0])
    return Call(op, (receiver,), {attr: Call(shape, (other,), span=span)}, span=span)


_MEASURES: Final[dict[str, Op]] = {"dim": rank, "size": shape}
"""Methods that give what attributes give too."""

_OTHERS: Final = frozenset({*_MEASURES, *METHODS, *CASTS, *LIKE, *SAME, *LIST_METHODS})
"""The methods of tensors and lists."""


def _size(cx: Context, node: ast.Call, function: ast.Attribute) -> Steps[Expr]:
    known = static_value(cx, node.args[0])
    receiver = yield cx.expression(function.value)
    dim = 0 if known is None else known.value
    return Call(dim_size, (receiver,), {"dim": dim}, span=cx.span(node))


def unknown_method(cx: Context, node: ast.Attribute) -> UnknownAttribute:
    """Return the mistake of a method or attribute that a value does not have."""
    name, instead = node.attr, None
    ty, text = declared_type(cx, node.value), ast.unparse(node.value)
    if isinstance(ty, StrType):
        return UnknownAttribute(cx.span(node), "a string", name, None, STRINGS)
    if element_of(ty) is not None and name in METHODS:
        instead = f"make a tensor of it: `relay.stack({text}).{name}()`"
        return UnknownAttribute(cx.span(node), "a list", name, None, instead)
    if name in OF_CONTAINERS:
        return UnknownAttribute(cx.span(node), "compiled code", name, None, OF_CONTAINERS[name])
    if name.endswith("_") and name.rstrip("_") in METHODS:
        instead = f"tensors never change: write `x = x.{name.rstrip('_')}(...)`"
    else:
        instead = OF_VALUES.get(name)
    if name in METHODS:
        instead = f"it is a method: write `{text}.{name}()`"
    near = nearest(name, (*METHODS, *CASTS, *LIKE, *SAME, "shape", "ndim", "T", "mT", "size"))
    return UnknownAttribute(cx.span(node), "a tensor", name, near, instead)


def missing_attribute(cx: Context, node: ast.Attribute, owner: Static) -> Expr:
    """Report an attribute that a captured object does not have."""
    text = ast.unparse(node.value)
    if hasattr(owner.value, "requires_grad") or hasattr(owner.value, "__array__"):
        return refuse_value(cx, owner.value, text, cx.span(node.value))
    near = nearest_in(owner.value, node.attr, f"{text}.")
    habits = OF_VALUES if isinstance(owner.value, OptimizerUse) else OF_NAMESPACES
    instead = habits.get(node.attr)
    return cx.refuse(UnknownAttribute(cx.span(node), f"`{text}`", node.attr, near, instead))
