"""The type that a node's parts imply: what the text form need not write.

The printer writes a type only where it differs from the implied one; the parser fills the implied
one in. Both ask here, so what is printed reads back exactly, whatever an operator's rule says.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final, assert_never, final

from ..ir.calls.closed_solver import ClosedSolver
from ..ir.dims import Dim
from ..ir.expr import (
    Call,
    Constant,
    Constructor,
    Expr,
    Function,
    GlobalVar,
    If,
    LetBlock,
    Match,
    RefCreate,
    RefRead,
    RefWrite,
    Transform,
    Tuple,
    TupleGet,
    Var,
)
from ..ir.layouts import result_type
from ..ir.names import Names
from ..ir.op import Op, RuleCall
from ..ir.types import (
    UNIT,
    AdtType,
    FnType,
    RefType,
    TupleType,
    Type,
    TypeParam,
    TypeVar,
    substitution,
)
from .constants import constant_type

if TYPE_CHECKING:
    from ..ir.module import AdtDef

KNOWN_ALONE: Final = (Var, Constant, GlobalVar, Constructor, Function)
"""Nodes whose type does not depend on where they stand."""


@final
class Implied:
    """Types implied in one module: from the types of its globals and its data types."""

    def __init__(self, signatures: Mapping[str, Type], adts: Mapping[str, AdtDef]) -> None:
        self._signatures: Final = signatures
        self._adts: Final = adts

    def type(self, expr: Expr) -> Type | None:  # noqa: C901  one case a node
        """Return the type that follows from the parts of a node, or None if none does."""
        match expr:
            case Var():
                return expr.ty
            case Constant():
                return constant_type(expr, typed=True)
            case GlobalVar(name):
                return self._signatures.get(name)
            case Constructor():
                return self._of_constructor(expr)
            case Tuple(fields):
                return _tuple([f.ty for f in fields])
            case TupleGet(value, index):
                return _field(value.ty, index)
            case Call(callee):
                if isinstance(callee, Op):
                    return _of_op(callee, expr)
                ty = self.callee(callee, expr.type_args)
                return ty.result if isinstance(ty, FnType) else None
            case LetBlock(body=body):
                return body.ty
            case If(then=then):
                return then.ty
            case Match(clauses=clauses):
                return clauses[0].body.ty if clauses else None
            case Function():
                return signature(expr)
            case RefCreate(value):
                return None if value.ty is None else RefType(value.ty)
            case RefRead(ref):
                return ref.ty.value if isinstance(ref.ty, RefType) else None
            case RefWrite():
                return UNIT
            case Transform():
                return None
            case other:
                assert_never(other)

    def _of_constructor(self, expr: Constructor) -> Type | None:
        adt = self._adts.get(expr.adt)
        fields = [c.fields for c in adt.constructors if c.name == expr.name] if adt else []
        if adt is None or not fields:
            return None
        args = tuple(p if isinstance(p, TypeVar) else Dim.of(p.name) for p in adt.type_params)
        return FnType(fields[0], AdtType(adt.name, args), adt.type_params)

    def callee(self, callee: Expr, type_args: tuple[Type | Dim, ...]) -> Type | None:
        """Return the type of a function at a call: that of a global or a constructor follows from
        its definition, whatever the node says."""
        ty = self.type(callee) if isinstance(callee, GlobalVar | Constructor) else callee.ty
        if not isinstance(ty, FnType) or len(type_args) != len(ty.type_params) or not type_args:
            return ty
        kinds = zip(type_args, ty.type_params, strict=True)
        if any(isinstance(a, Dim) is isinstance(p, TypeVar) for a, p in kinds):
            return None
        return substitution(ty.type_params, type_args)(FnType(ty.params, ty.result))


def signature(function: Function) -> Type | None:
    """Return the type that a function's parameters and result say it has."""
    result = function.body.ty if function.result is None else function.result
    return function_type(function.params, result, function.type_params)


def declared(function: Function) -> Type | None:
    """Return the type of a function whose text says it all, None if its body must be seen."""
    return function_type(function.params, function.result, function.type_params)


def function_type(
    params: tuple[Var, ...], result: Type | None, type_params: tuple[TypeParam, ...]
) -> Type | None:
    """Return the type of a function, or None if a part is not known."""
    types = tuple(p.ty for p in params if p.ty is not None)
    return (
        None if result is None or len(types) < len(params) else FnType(types, result, type_params)
    )


def _of_op(op: Op, call: Call) -> Type | None:
    types = tuple(a.ty for a in call.args if a.ty is not None)
    if len(types) != len(call.args):
        return None
    rule = RuleCall(op, types, call.attrs, ClosedSolver(Names()))
    try:
        return result_type(rule)
    except Exception:  # an ill-formed call is printed too, with its type written out
        return None


def _tuple(types: list[Type | None]) -> Type | None:
    known = tuple(t for t in types if t is not None)
    return TupleType(known) if len(known) == len(types) else None


def _field(ty: Type | None, index: int) -> Type | None:
    if isinstance(ty, TupleType) and index < len(ty.fields):
        return ty.fields[index]
    return None
