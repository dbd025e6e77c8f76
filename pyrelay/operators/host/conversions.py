"""Conversions of one number to an integer, a float or a bool of the host."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from ...ir.dims import ONE, ZERO
from ...ir.op import (
    Elementwise,
    Gradient,
    Library,
    NoGradient,
    Op,
    Pullback,
    RuleCall,
    Sample,
    ShapeBehaviour,
    TensorSpec,
    TypeRule,
    operand,
)
from ...ir.types import BOOL, FLOAT, INT, SizeType, TensorType, Type, float32, is_float, show

if TYPE_CHECKING:
    from ..builder import Value


class IntegerOverflow(OverflowError):  # noqa: N818  the program's, not the compiler's
    """An integer does not fit into an element of a tensor."""


class NotAnInteger(ValueError):  # noqa: N818  the program's, not the compiler's
    """A float that none of the integers in question is."""


def integer_of(number: float, lowest: int, end: int) -> int:
    """Return a number without its fraction. Raises NotAnInteger unless it is at least `lowest` and
    below `end`."""
    if math.isfinite(number) and lowest <= math.trunc(number) < end:
        return math.trunc(number)
    bits = (end - lowest).bit_length() - 1
    raise NotAnInteger(f"{number:g} is no integer of {bits} bits")


def _number(call: RuleCall) -> TensorType:
    """Return the type of an operand that must hold one number. Raises Clash."""
    source = call.tensor(0)
    if source.rank and any(call.solver.resolve_dim(d) != ONE for d in source.shape):
        python_name = call.op.name.removeprefix("to_")
        call.clash(
            f"`{python_name}()` takes one number, not {show(source)}",
            0,
            help=f"to convert every element: relay.cast(x, relay.{_DTYPES[python_name]})",
        )
    return source


_DTYPES: Final = {"int": "int64", "float": "float32", "bool": "bool"}


def _to_int_type(call: RuleCall) -> Type:
    ty = call.type(0)
    if isinstance(ty, SizeType):
        return ty
    _number(call)
    return INT


def _number_of(ty: Type) -> TypeRule:
    """Return the rule of a conversion of a number to a type."""

    def rule(call: RuleCall) -> Type:
        _number(call)
        return ty

    return rule


def _to_int(torch: Any, value: Any) -> Any:
    return integer_of(value.item() if isinstance(value, torch.Tensor) else value, -(2**63), 2**63)


def _to_float(torch: Any, value: Any) -> Any:
    return value.reshape(()).to(torch.float32)


def _to_bool(torch: Any, value: Any) -> Any:
    if isinstance(value, torch.Tensor):
        return value.reshape(()).to(torch.bool)
    return bool(value)


def _to_float_grad(p: Pullback) -> tuple[Value | None]:
    source = p.args[0]
    if not is_float(source.dtype):
        return (None,)
    return (p.g.cast(source.dtype).reshape(*source.shape),)


def _conversion(
    name: str,
    doc: str,
    type_rule: TypeRule,
    body: Callable[..., Any],
    grad: Gradient | NoGradient,
    *samples: Sample,
    fused: Elementwise | None = None,
) -> Op:
    """Return the operator that Python's `int`, `float` or `bool` of a number is."""
    return Op(
        name=name,
        doc=doc,
        params=(operand("input"),),
        type_rule=type_rule,
        shape=ShapeBehaviour.TRIVIAL,
        lowering=Library(body, fused=fused),
        grad=grad,
        samples=lambda: samples,
    )


to_int: Final = _conversion(
    "to_int",
    "Python's `int()` of a number: rounded towards zero.",
    _to_int_type,
    _to_int,
    NoGradient("piecewise constant"),
    Sample((TensorSpec(()),)),
    Sample((TensorSpec((1,)),)),
    Sample((TensorSpec((), "int32", -5, 5),)),
    Sample((3,)),
)


to_float: Final = _conversion(
    "to_float",
    "Python's `float()` of a number, as float32.",
    _number_of(FLOAT),
    _to_float,
    _to_float_grad,
    Sample((TensorSpec(()),)),
    Sample((TensorSpec((1, 1)),)),
    Sample((TensorSpec((), "int64", -5, 5),)),
    Sample((3,)),
    fused=Elementwise(lambda k, place, x: k.cast(x(*(ZERO for _ in x.shape)), float32)),
)


to_bool: Final = _conversion(
    "to_bool",
    "Python's `bool()` of a number: whether it is not zero.",
    _number_of(BOOL),
    _to_bool,
    NoGradient("piecewise constant"),
    Sample((TensorSpec(()),)),
    Sample((TensorSpec((), "int64", 0, 2),)),
    Sample((0,)),
)
