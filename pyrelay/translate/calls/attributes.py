"""Static arguments: known values, expressions whose size inference reads, and optimisers."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from typing import Any

from ...diagnostics.catalogue.captures import CapturedObject
from ...diagnostics.catalogue.language import Unsupported
from ...diagnostics.catalogue.model import UnknownOptimizer
from ...diagnostics.catalogue.signatures import BadValue, NotStatic
from ...ir.constant import placeholder
from ...ir.expr import Expr
from ...ir.op import Param
from ...ir.traverse import Steps
from ...ir.types import DType, TensorType, bool_, int64
from ...operators.host.stream import next_element
from ..names.static import static_value
from ..program.context import Context, in_turn
from ..program.signature import Signature
from ..program.streams import stream_of
from ..source.definition import Definition, meaning
from ..source.flow import reads
from ..source.optimizers import MAKERS, STAND_IN, OptimizerUse, is_optimizer
from ..source.scope import is_data, nearest


def attribute_value(cx: Context, node: ast.expr, param: Param, operator: str) -> Steps[Any]:
    """Return a static argument in its normal form; what only the running program knows stays an
    expression, of which inference reads the size."""
    if param in next_element.params:
        return _element(cx, node)
    if param.name == "dtype":
        known = static_value(cx, node)
        if known is not None and known.value in (bool, int, float):
            return _dtype_of_python(cx, node, known.value)
    value = yield _value(cx, node)
    if param.name == "dtype" and isinstance(value, str):
        instead = "name a dtype: `relay.float64`; devices are left out"
        cx.program.report(Unsupported(cx.span(node), f"the dtype {value!r}", instead))
        return placeholder(cx.span(node))
    if _has_expr(value) or param.convert is None:
        return value
    try:
        return param.convert(value)
    except (TypeError, ValueError) as error:
        what = f"`{param.name}` of `{operator}` cannot be {value!r}"
        cx.program.report(BadValue(cx.span(node), what, str(error)))
        return placeholder(cx.span(node))


def _dtype_of_python(cx: Context, node: ast.expr, kind: type) -> Any:
    """Return the dtype that torch takes a class of Python for; `float` is refused, since it is
    float32 in annotations here and float64 in torch."""
    if kind is not float:
        return bool_ if kind is bool else int64
    instead = "write `relay.float32`, or `relay.float64`, which torch takes `float` for"
    cx.program.report(Unsupported(cx.span(node), "the dtype `float`", instead))
    return placeholder(cx.span(node))


def _element(cx: Context, node: ast.expr) -> Any:
    """Return the element type of an iterator, written as in `Iterable[...]`."""
    span = cx.span(node)
    found = cx.annotations.read(node, span)
    if found is None:
        return placeholder(span)
    known = {p.name for p in cx.program.signature(cx.definition).type_params}
    return stream_of(cx.program, found.ty, known, span)


def _value(cx: Context, node: ast.expr) -> Steps[Any]:
    known = static_value(cx, node)
    if known is not None:
        found = meaning(known.value)
        value = found if isinstance(found, DType) else known.value
        if isinstance(value, list):
            value = tuple(value)
        if known.exact and (is_data(value) or isinstance(value, DType)):
            return value
        if isinstance(node, ast.Name | ast.Attribute) and not isinstance(value, tuple):
            return (yield cx.expression(node))
        kind = type(value).__name__
        cx.program.report(
            CapturedObject(
                cx.span(node), ast.unparse(node), kind, "pass numbers, strings, tuples or sizes"
            )
        )
        return placeholder(cx.span(node))
    if isinstance(node, ast.Tuple | ast.List):
        return tuple((yield in_turn(_value(cx, element) for element in node.elts)))
    return (yield cx.expression(node))


def _has_expr(value: Any) -> bool:
    pending = [value]
    while pending:
        current = pending.pop()
        if isinstance(current, Expr):
            return True
        if isinstance(current, tuple):
            pending += current
    return False


def optimizer_named(cx: Context, node: ast.expr) -> OptimizerUse | None:
    """Return the optimiser that a name stands for; None when it is none, which is reported."""
    known = static_value(cx, node)
    value = None if known is None else known.value
    span = cx.span(node)
    text = span.text
    if isinstance(node, ast.Call):
        why = "is made where it is used, so each step would be its first"
        cx.program.report(UnknownOptimizer(span, text, why, f"name it first: `opt = {text}`"))
        return None
    if isinstance(value, OptimizerUse):
        return value
    if known is not None and known.exact and is_optimizer(value):
        return cx.program.captured_optimizer(value, meaning(value))
    cx.program.report(UnknownOptimizer(span, text, *_no_optimizer(value, known is not None)))
    return None


def _no_optimizer(value: Any, known: bool) -> tuple[str, str]:
    """Return why a value is no optimiser for compiled code, and what to write."""
    if is_optimizer(value):
        way = "give it a global name, or pass it for a parameter annotated `Optimizer`"
        return "is an attribute of an object that can change", way
    if type(value).__module__.startswith("torch.optim"):
        near = nearest(type(value).__name__.lower(), [m.name for m in MAKERS]) or "adam"
        way = f"use relay.optim.{near}, or update the model in the script"
        return "is an optimiser of torch, which works on `model.parameters()` in scripts", way
    if known:
        return "is not an optimiser", "make one: `opt = relay.optim.adam(lr=1e-3)`"
    return "is not known before the program runs", "pass it for a parameter annotated `Optimizer`"


def static_values(cx: Context, node: ast.expr) -> str:
    """Return what may stand where an argument must be known before the program runs; a parameter
    that is mentioned there could be static."""
    mentioned = reads(node)
    for parameter in cx.program.signature(cx.definition).values:
        if parameter.name not in mentioned or not isinstance(parameter.ty, TensorType):
            continue
        if parameter.ty.rank == 0 and isinstance(parameter.ty.dtype, DType):
            python = parameter.ty.dtype.kind.name.lower()
            static = f"`*, {parameter.name}: {python}` in `{cx.definition.name}`"
            return f"a number or a captured constant, or make `{parameter.name}` static: {static}"
    return "a number, a captured constant or a static parameter"


def static_argument(cx: Context, node: ast.expr, what: str, wanted: str) -> Any:
    """Return an argument that must be known before running; None when it is not, which is
    reported."""
    known = static_value(cx, node)
    if known is None or not known.exact or not is_data(known.value):
        cx.program.report(NotStatic(cx.span(node), what, wanted))
        return None
    return known.value


def static_arguments(
    cx: Context, bound: Mapping[str, ast.expr], definition: Definition, signature: Signature
) -> dict[str, Any]:
    """Return the static arguments of a call that are written."""
    found: dict[str, Any] = {}
    for parameter in signature.statics:
        if parameter.name in bound and parameter.static is OptimizerUse:
            found[parameter.name] = optimizer_named(cx, bound[parameter.name]) or STAND_IN
        elif parameter.name in bound:
            what = f"`{parameter.name}` of `{definition.name}`"
            wanted = static_values(cx, bound[parameter.name])
            found[parameter.name] = static_argument(cx, bound[parameter.name], what, wanted)
    return found
