"""Operators applied to tensors by a script, outside of a compiled program: `relay.argmax(y)`.

The same declaration types the call and computes it, so an operator means the same inside and
outside of `@relay` code. The result joins torch autograd as any torch function does.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch

from ...diagnostics.catalogue.call import WrongCall
from ...diagnostics.catalogue.dtypes import Cast
from ...diagnostics.catalogue.types import OperatorMismatch
from ...diagnostics.diagnostic import CheckError, RunError
from ...diagnostics.source import NOWHERE
from ...ir.calls.attributes import WrongAttribute
from ...ir.calls.op_signature import signature
from ...ir.dims import Dim
from ...ir.expr import Call, Var
from ...ir.op import Clash, Missing, Op, Role
from ...ir.types import DType, TupleType, Type
from ...operators.builder import Builder, Value
from ...translate.subset.tables import TOGETHER, VARIADIC
from ..border.devices import Holder, one_device
from ..values.values import tensor_type
from .dispatching import apply as apply_dispatched


def _cast(op: Op, wanted: tuple[int, DType] | None) -> Cast | None:
    if wanted is None:
        return None
    return Cast(op.operands[wanted[0]].name, str(wanted[1]), None)


def apply(op: Op, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
    """Return the value of an operator at tensors and numbers, or, in a gradient rule, emit the call
    at values under construction. Raises CheckError and RunError."""
    if op.params[0].name == TOGETHER and len(args) > 1 and isinstance(args[1], torch.Tensor):
        why, way = "takes its tensors as one tuple or list", f"write relay.{op.name}((a, b))"
        raise RunError(WrongCall(f"relay.{op.name}", NOWHERE, why, way))
    try:
        bound = signature(op).bind(*_gathered(op, args), **kwargs)
    except TypeError as error:
        raise RunError(WrongCall(op.name, NOWHERE, str(error))) from None
    bound.apply_defaults()
    given = bound.arguments
    operands = [given[p.name] for p in op.operands]
    attrs = {p.name: given[p.name] for p in op.attributes if given[p.name] is not Missing.MODE}
    attrs = {name: getattr(value, "__relay__", value) for name, value in attrs.items()}
    under_construction = _builder_of(operands)
    if under_construction is not None:
        values = [_as_value(under_construction, v) for v in operands]
        return under_construction.call(op, values, attrs)
    holders = [Holder(f"`{p.name}`") for p in op.operands]
    device = one_device(op.name, holders, operands)
    builder = Builder(NOWHERE)
    values = [
        None
        if v is None
        else v
        if isinstance(v, int | float | bool)
        else builder.value(Var("x", _type(op, v), span=NOWHERE))
        for v in operands
    ]
    try:
        built = builder.call(op, values, attrs)
    except Clash as clash:
        problem = OperatorMismatch(NOWHERE, clash.message, (), clash.help, _cast(op, clash.cast))
        raise CheckError(problem) from None
    except WrongAttribute as error:
        raise CheckError(OperatorMismatch(NOWHERE, str(error), (), None)) from None
    call = builder.bindings[-1].value
    assert isinstance(call, Call)
    assert built.atom is builder.bindings[-1].var
    host = [() if v is None else v for v in operands]
    return apply_dispatched(call, host, _no_size, device)


def _builder_of(operands: Sequence[Any]) -> Builder | None:
    """Return the builder of the first operand that is a value of a program in the making."""
    for operand in operands:
        for part in operand if isinstance(operand, tuple | list) else (operand,):
            if isinstance(part, Value):
                return part.builder
    return None


def _as_value(builder: Builder, operand: Any) -> Any:
    return builder.tuple(operand) if isinstance(operand, tuple | list) else operand


def _gathered(op: Op, args: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return the arguments with those in a tuple that torch takes one by one, as in
    `relay.zeros(2, 3)`."""
    name = VARIADIC.get(op)
    if name is None:
        return args
    place = [p.name for p in op.params].index(name)
    rest = args[place:]
    is_operand = op.params[place].role is Role.OPERAND
    if len(rest) > 1 or (is_operand and rest and not isinstance(rest[0], tuple | list)):
        return (*args[:place], rest)
    return args


def _no_size(dim: Dim) -> int:
    found = dim.constant
    assert found is not None, "the shapes of a script's tensors are numbers"
    return found


def _type(op: Op, value: Any) -> Type:
    if isinstance(value, torch.Tensor):
        return tensor_type(value, f"relay.{op.name}")
    if isinstance(value, tuple | list):
        return TupleType(tuple(_type(op, v) for v in value))
    raise RunError(WrongCall(op.name, NOWHERE, f"takes tensors, not {type(value).__name__}"))
