"""The reverse of one operator call, by the operator's own rule.

A rule that ends in adding something to a tensor of zeros (`index_accumulate`, `scatter_add`) adds
to the cotangent so far instead, where there is one: a loop that indexes a tensor then threads one
accumulator, and never makes a dense zero per iteration.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from ...ir.expr import Binding, Call, Expr, Var
from ...ir.op import Gradient, Op, Pointwise, Pullback
from ...ir.types import AdtType, DType, TensorType, TupleType, Type, is_float
from ...operators.builder import Builder, Value
from ...operators.primitive.create import full, zeros
from ...operators.primitive.embedding import embedding_grad
from ...operators.primitive.gathering import scatter_add
from ...operators.primitive.index import index_accumulate

if TYPE_CHECKING:
    from .adjoints import Adjoints

_ADD_INTO: Final = (index_accumulate, scatter_add)
"""Operators that give their first operand with something added to it."""


def pull_operator(
    sweep: Adjoints, out: Var, call: Call, rule: Gradient, cts: list[Expr | None]
) -> None:
    """Add the cotangents that the rule returns to those of the operands."""
    builder = sweep.builder
    rest = iter(cts)
    g = sweep.border.of_result(builder.value(out), rest)
    args = tuple(builder.value(a) for a in call.args)
    start = len(builder.bindings)
    wanted = tuple(map(sweep.is_varied_anywhere, call.args))
    results = rule(Pullback(g, builder.value(out), args, call.attrs, wanted))
    for arg, result in zip(args, results, strict=True):
        if result is None:
            continue
        for leaf, (value, operand) in enumerate(_leaf_values(sweep, result, arg.ty)):
            if not sweep.is_varied(arg.atom, leaf):
                continue
            if isinstance(call.callee, Op) and isinstance(call.callee.lowering, Pointwise):
                assert isinstance(operand, TensorType)
                assert isinstance(operand.dtype, DType)
                value = value.sum_to(operand.shape).cast(operand.dtype)
            _add(sweep, arg.atom, leaf, value, start)


def _float_count(ty: Type) -> int:
    if isinstance(ty, TupleType):
        return sum(map(_float_count, ty.fields))
    return int(isinstance(ty, TensorType) and is_float(ty.dtype))


def _leaf_values(sweep: Adjoints, value: Value, ty: Type) -> Iterator[tuple[Value, Type]]:
    """Return the leaves of a rule's result beside the types of the operand's leaves."""
    match ty:
        case TensorType(_, dtype) if is_float(dtype):
            yield value, ty
        case TupleType(fields):
            for index, field in enumerate(fields):
                if _float_count(field):
                    yield from _leaf_values(sweep, value[index], field)
        case AdtType():
            for leaf in sweep.border.incoming(sweep.builder, value, ty):
                yield sweep.builder.value(leaf), ty
        case _:
            pass


def _add(sweep: Adjoints, atom: Expr, leaf: int, value: Value, start: int) -> None:
    assert isinstance(atom, Var)
    old = sweep.get((atom, leaf))
    if old is None or not _add_into(sweep.builder, value, old, start):
        sweep.contribute(atom, leaf, value.atom)
    else:
        sweep.set((atom, leaf), value.atom)


def _add_into(builder: Builder, value: Value, old: Expr, start: int) -> bool:
    """Let code that adds into zeros add into `old`; return whether it was such code."""
    if len(builder.bindings) == start or builder.bindings[-1].var is not value.atom:
        return False
    last = builder.bindings[-1]
    match last.value:
        case Call(Op() as op, (Var() as into, *rest)) if op in _ADD_INTO:
            emitted = {b.var: b.value for b in builder.bindings[start:-1]}
            if not _is_zero(emitted.get(into)):
                return False
            call = replace(last.value, args=(old, *rest))
            builder.bindings[-1] = Binding(last.var, call)
            return True
        case Call(callee, (g, rows)) if callee is embedding_grad:
            del builder.bindings[-1]
            picked = builder.tuple((builder.value(rows),))
            operands = (builder.value(old), picked, builder.value(g))
            added = builder.call(index_accumulate, operands, {"spec": (("int", 0),)})
            assert builder.bindings[-1].var is added.atom
            builder.bindings[-1] = Binding(last.var, builder.bindings[-1].value)
            return True
        case _:
            return False


def _is_zero(expr: Expr | None) -> bool:
    match expr:
        case Call(callee) if callee is zeros:
            return True
        case Call(callee, attrs=attrs) if callee is full:
            return attrs["fill_value"] == 0
        case _:
            return False
