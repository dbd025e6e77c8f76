"""Declaring operators as bodies in other operators.

The body of a composite is a function of values under construction: operands in order, None for one
that is omitted, then the attributes by name. Its type, its gradient and its kernels come from the
body. Where they pay, a declaration adds a type rule with messages of its own, a derivative that is
stabler or cheaper, or a faster function of torch.

A body computes half types in float32: its operands are widened, and its results narrowed again.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeAlias

from ..diagnostics.source import NOWHERE
from ..ir.expr import Var
from ..ir.op import (
    Clash,
    Expansion,
    Gradient,
    Hidden,
    Layouts,
    Library,
    Lowering,
    MadeOf,
    NoGradient,
    Op,
    Param,
    Promotion,
    RuleCall,
    Sample,
    ShapeBehaviour,
    Stuck,
    TypeRule,
)
from ..ir.types import (
    DEFAULT_DTYPE,
    UNIT,
    DType,
    DTypeHole,
    TensorType,
    TupleType,
    Type,
    float32,
    is_float,
    subtypes,
)
from .builder import Builder, Value
from .shared.precision import widened


def composite(
    *,
    name: str,
    doc: str,
    params: tuple[Param, ...],
    body: Callable[..., Value],
    samples: Callable[[], Iterable[Sample]],
    promotion: Promotion = Promotion.NONE,
    type_rule: TypeRule | None = None,
    grad: Gradient | Expansion | NoGradient | None = None,
    torch: Callable[..., Any] | None = None,
    torch_name: str | None = None,
    is_fresh: bool = False,
    fuses: bool = True,
    shape: ShapeBehaviour = ShapeBehaviour.COMPOSITE,
    layouts: Layouts = Layouts.PLAIN,
    hidden: tuple[Hidden, ...] = (),
    hyper: tuple[Param, ...] = (),
) -> Op:
    """Return the operator that a body in other operators defines.

    `type_rule` and `grad` are derived from the body unless they are declared. `torch` is a faster
    way to the same value, called as the body of a `Library`; `is_fresh` describes its result, and
    `fuses` is False where kernels had better call it.
    """
    meaning = MadeOf(in_precision(body))
    lowering: Lowering = meaning
    if torch is not None:
        lowering = Library(torch, is_fresh=is_fresh, fused=meaning if fuses else None)
    return Op(
        name=name,
        doc=doc,
        params=params,
        promotion=promotion,
        type_rule=type_rule or type_of_body(meaning.body),
        shape=shape,
        layouts=layouts,
        lowering=lowering,
        body=meaning,
        grad=grad or Expansion(meaning.body),
        hidden=hidden,
        hyper=hyper,
        torch_name=torch_name,
        samples=samples,
    )


Code: TypeAlias = "Callable[[tuple[Value, ...], Mapping[str, Any]], Value]"


def in_precision(body: Callable[..., Value]) -> Code:
    """Return a body as passes call it: with half types computed in float32."""

    def code(args: tuple[Value, ...], attrs: Mapping[str, Any]) -> Value:
        half = next((d for d in map(_half, args) if d is not None), None)
        given = [None if a.ty == UNIT else a if _half(a) is None else widened(a) for a in args]
        found = body(*given, **attrs)
        return found if half is None else _narrowed(found, half)

    return code


def _half(value: Value) -> DType | None:
    """Return the dtype of a tensor of a half type, None for any other value."""
    ty = value.ty
    if not isinstance(ty, TensorType) or not isinstance(ty.dtype, DType):
        return None
    return ty.dtype if is_float(ty.dtype) and ty.dtype.bits < 32 else None


def _narrowed(value: Value, dtype: DType) -> Value:
    """Return a result with its float32 tensors in a half type."""
    match value.ty:
        case TupleType(fields):
            return value.builder.tuple([_narrowed(value[i], dtype) for i in range(len(fields))])
        case TensorType(dtype=found) if found == float32:
            return value.cast(dtype)
        case _:
            return value


def type_of_body(code: Callable[[tuple[Value, ...], Mapping[str, Any]], Value | None]) -> TypeRule:
    """Return the type rule that the primitives in a body make up: Stuck where one of them is, and
    a clash speaks of the composite."""

    def rule(call: RuleCall) -> Type:
        builder = Builder(NOWHERE, solver=call.solver)
        for i in range(len(call.types)):
            _fix_dtypes(call, call.type(i))
        types = [call.type(i) for i in range(len(call.types))]
        args = [
            builder.unit() if t == UNIT else builder.value(Var(f"x{i}", t, span=NOWHERE))
            for i, t in enumerate(types)
        ]
        try:
            found = code(tuple(args), call.attrs)
        except Clash as clash:
            message = re.sub(r"^`\w+`", f"`{call.name}`", clash.message)
            call.clash(message, *(i for i, t in enumerate(types) if t != UNIT), help=clash.help)
        assert found is not None, (
            "a body without a type rule beside it says something of every call"
        )
        return found.ty

    return rule


def _fix_dtypes(call: RuleCall, ty: Type) -> None:
    """Make the dtypes in the type of an operand known, since bodies read them. Raises Stuck."""
    for part in subtypes(ty):
        if not isinstance(part, TensorType) or not isinstance(part.dtype, DTypeHole):
            continue
        if part.dtype.weak is None or not call.solver.settling:
            raise Stuck(part.dtype)
        number = TensorType((), DEFAULT_DTYPE[part.dtype.weak])
        call.solver.unify(TensorType((), part.dtype), number)
