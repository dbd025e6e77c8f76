"""Batching rules: a call of an operator on rows, as one call on all rows at once.

A rule returns the batched form of a call: row `i` of its value is the value of the call on row `i`.
There is one for each primitive; pointwise operators share one, and so do reductions. A composite is
batched as its body is, unless a rule of its own keeps it whole.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from string import ascii_letters
from typing import Any, Final, final

from ...ir.dims import ONE, Dim
from ...ir.expr import Binding, Call, Expr, Tuple, TupleGet, Var, type_of
from ...ir.op import Clash, Contraction, Effect, Op, Pointwise, Reduction, Stuck, View
from ...ir.rules import one_shape
from ...ir.types import UNIT, TensorType, TupleType, bool_, is_float, known_dtype
from ...operators.builder import Builder, Value
from ...operators.composite.classes import class_dim, counted, nll_loss_grad
from ...operators.composite.einsum import contract
from ...operators.composite.model import frozen, param
from ...operators.composite.softmax import log_softmax, softmax
from ...operators.host.conversions import to_bool, to_float, to_int
from ...operators.matrices.determinant import det, slogdet
from ...operators.matrices.factor import cholesky, eigh, pinv, qr, svd
from ...operators.matrices.inverse import solve, solve_triangular
from ...operators.matrices.products import linear, matmul
from ...operators.primitive.compare import array_equal, equal, logical_and, where
from ...operators.primitive.create import arange
from ...operators.primitive.embedding import embedding
from ...operators.primitive.index import index
from ...operators.primitive.join import cat
from ...operators.primitive.reduce import all_
from ...operators.primitive.scan import cumprod, cumsum
from ...operators.tiers import Body, body_of
from . import images, indexing, random, views
from .rows import Mask, RowsCall, Rule, has_rows, is_any, rows_type


def _linear(rows: RowsCall) -> Value | None:
    """Return `linear(x, w, b)[i] = linear(x[i], w, b)`: one product for all rows."""
    if any(map(rows.has, range(1, len(rows.operands)))) or not rows.rank():
        return None
    return rows.emit(rows.operands)


def _matmul(rows: RowsCall) -> Value:
    """Return `(x @ y)[i] = x[i] @ y[i]`; a matrix that all rows share is read once."""
    (x, y), ranks = rows.operands, (rows.rank(0), rows.rank(1))
    match rows.has(0), rows.has(1):
        case True, False if ranks[1] <= 2:
            return rows.emit((x, y))
        case False, True if ranks == (2, 1):
            return rows.emit((y, x.transpose(0, 1)))
        case False, True if ranks == (1, 1):
            return rows.emit((y, x))
        case _:
            pass
    # A vector is a matrix of one row on the left, of one column on the right.
    left = x.unsqueeze(-2) if ranks[0] == 1 else x
    right = y.unsqueeze(-1) if ranks[1] == 1 else y
    rank = max(*ranks, 2)
    stacks = [
        v.reshape(rows.count, *(ONE,) * (rank - v.rank + 1), *v.shape[1:]) if rows.has(i) else v
        for i, v in enumerate((left, right))
    ]
    return rows.emit(stacks).reshape(rows.count, *rows.shape)


def _stacks(rows: RowsCall) -> Value:
    """Return the value of an operator that takes stacks of matrices of any rank."""
    return rows.emit(rows.operands)


def _solve(rows: RowsCall) -> Value:
    """Return solutions, for right-hand sides that are vectors, or matrices, in every row."""
    matrix, sides = rows.whole(0), rows.whole(1)
    if rows.rank(1) == 1:
        columns = sides.reshape(rows.count, *(ONE,) * (matrix.rank - 3), *sides.shape[1:], ONE)
        return rows.emit((matrix, columns)).reshape(rows.count, *rows.shape)
    rank = max(matrix.rank, sides.rank)
    stacks = [
        v.reshape(rows.count, *(ONE,) * (rank - v.rank), *v.shape[1:]) for v in (matrix, sides)
    ]
    return rows.emit(stacks)


def _contract(rows: RowsCall) -> Value:
    """Return sums of products with one label more: that of the rows."""
    equation = rows.attrs["equation"]
    label = next(c for c in ascii_letters if c not in equation)
    terms, result = equation.split("->")
    named = [label * rows.has(i) + term for i, term in enumerate(terms.split(","))]
    return rows.emit(rows.operands, equation=f"{','.join(named)}->{label}{result}")


def batched(
    builder: Builder, call: Call, operands: Sequence[Value], is_row: Sequence[Mask], count: Dim
) -> Value | None:
    """Return a call of an operator on `count` rows at once, the rows of its value along the first
    dim; None where no rule gives it."""
    assert isinstance(call.callee, Op)
    if not has_rows(type_of(call)):
        return None
    rows = RowsCall(builder, call, operands, is_row, count)
    wanted = rows_type(type_of(call), True, count)
    for rule in rules_of(call.callee):
        try:
            found = rule(rows)
        except (Clash, Stuck):
            continue
        if found is not None and found.ty == wanted:
            return found
    return None


def is_total(call: Call) -> bool:
    """Return whether an operator gives a value for all operands of its types, so that it may be
    computed where the program would not have. Integers may overflow, and indices be out of
    range."""
    op, ty = call.callee, call.ty
    if not isinstance(op, Op) or op.effect is not Effect.NONE or not isinstance(ty, TensorType):
        return False
    if not is_float(ty.dtype) and ty.dtype != bool_:
        return False
    match op.lowering:
        case _ if op is index:
            return type_of(call.args[1]) == UNIT
        case Reduction(combine="max" | "min"):
            source = type_of(call.args[0])
            return isinstance(source, TensorType) and all(d.constant for d in source.shape)
        case Pointwise() | Reduction() | Contraction() | View():
            return True
        case _:
            return op in _ALONG


def is_heavy(op: Op) -> bool:
    """Return whether an operator reads weights, which one call on many rows reads once."""
    return op is embedding or isinstance(op.lowering, Contraction)


def rules_of(op: Op) -> Sequence[Rule]:
    """Return the rules of an operator, the best first."""
    found = [RULES[op]] if op in RULES else []
    match op.lowering:
        case Pointwise():
            return (_pointwise_whole if op.type_rule is one_shape else _pointwise,)
        case Reduction() if any(p.name == "dim" for p in op.attributes):
            found.append(views.reduction)
        case _:
            pass
    body = BODIES.get(op) or body_of(op)
    return (*found, _as_code(body)) if body is not None else found


def _pointwise(rows: RowsCall) -> Value:
    """The elements of rows are those of the operands, broadcast: `f(x, y)[i] = f(x[i], y)`."""
    rank = len(rows.shape)
    return rows.emit([rows.padded(i, rank) for i in range(len(rows.operands))])


def _pointwise_whole(rows: RowsCall) -> Value:
    """Return the value of a pointwise operator whose operands have one shape."""
    return rows.emit([rows.whole(i) for i in range(len(rows.operands))])


def _as_code(body: Body) -> Rule:
    """Return the rule of an operator that is defined by others: its body on all rows."""

    def rule(rows: RowsCall) -> Value | None:
        inner = Builder(rows.builder.span, rows.builder.names, rows.builder.solver)
        atoms = [
            Var("row", type_of(a), span=inner.span) if is_any(m) else a
            for a, m in zip(rows.call.args, rows.is_row, strict=True)
        ]
        result = body(tuple(map(inner.value, atoms)), rows.attrs)
        if result is None:
            return None
        block = Block(rows.builder, rows.count)
        for atom, operand, mask in zip(atoms, rows.operands, rows.is_row, strict=True):
            block.bind(atom, operand, mask)
        for binding in inner.bindings:
            if not block.add(binding):
                return None
        return block.whole(result.atom)

    return rule


@final
class Block:
    """A straight line of calls of operators, as one on all rows at once."""

    def __init__(self, builder: Builder, count: Dim) -> None:
        self._builder: Final = builder
        self._count: Final = count
        self._known: Final[dict[Expr, tuple[Value, Mask]]] = {}

    def bind(self, atom: Expr, value: Value, mask: Mask) -> None:
        """Let a value stand for an atom of the block."""
        self._known[atom] = (value, mask)

    def add(self, binding: Binding) -> bool:
        """Add a binding of the block; return whether that was possible."""
        found = self._value(binding.value)
        if found is not None:
            self._known[binding.var] = found
        return found is not None

    def whole(self, atom: Expr) -> Value:
        """Return all rows of an atom of the block, repeated where they are the same."""
        return all_rows(self._builder, *self._operand(atom), self._count)

    def _operand(self, atom: Expr) -> tuple[Value, Mask]:
        if isinstance(atom, Tuple) and atom.fields:
            return self._tuple(atom)
        return self._known.get(atom) or (self._builder.value(atom), False)

    def _value(self, value: Expr) -> tuple[Value, Mask] | None:
        match value:
            case Call(Op(), args):
                found = [self._operand(a) for a in args]
                values, masks = [v for v, _ in found], [m for _, m in found]
                if not any(map(is_any, masks)):
                    atoms = tuple(v.atom for v in values)
                    return self._builder.bind(replace(value, args=atoms)), False
                whole = batched(self._builder, value, values, masks, self._count)
                return None if whole is None else (whole, True)
            case Tuple():
                return self._tuple(value)
            case TupleGet(source, index):
                pack, mask = self._operand(source)
                return pack[index], mask[index] if isinstance(mask, tuple) else mask
            case _:
                return None

    def _tuple(self, value: Tuple) -> tuple[Value, Mask]:
        found = [self._operand(f) for f in value.fields]
        return self._builder.tuple([v for v, _ in found]), tuple(m for _, m in found)


def all_rows(builder: Builder, value: Value, mask: Mask, count: Dim) -> Value:
    """Return a tensor, or a tuple of them, as rows, repeated where they are the same."""
    if isinstance(value.ty, TupleType):
        size = len(value.ty.fields)
        masks = mask if isinstance(mask, tuple) else (mask,) * size
        return builder.tuple([all_rows(builder, value[i], m, count) for i, m in enumerate(masks)])
    return value if mask else value.expand((count, *value.shape))


def _first_operand(rows: RowsCall) -> Value | None:
    """Return the value of an operator whose first operand may have further dims in front."""
    return None if any(map(rows.has, range(1, len(rows.operands)))) else rows.emit(rows.operands)


def _cast_to_type(rows: RowsCall) -> Value:
    """Return numbers converted to the type that Python's `int`, `float` or `bool` gives."""
    return rows.operands[0].cast(known_dtype(rows.ty)).reshape(rows.count)


def _nll_grad_code(args: tuple[Value, ...], attrs: Mapping[str, Any]) -> Value:
    g, x, target, total = args
    dim = class_dim(x.rank)
    counts, chosen = counted(target, attrs["ignore_index"])
    ones = (ONE,) * (x.rank - dim - 1)
    numbers = x.builder.call(arange, (), {"end": x.shape[dim]}).reshape(x.shape[dim], *ones)
    is_class = logical_and(equal(chosen.unsqueeze(dim), numbers), counts.unsqueeze(dim))
    slope = g / total if attrs["reduction"] == "mean" else g
    return where(is_class, -(slope.unsqueeze(dim) if slope.rank else slope), x.builder.zeros(x.ty))


def _array_equal_code(args: tuple[Value, ...], _: Mapping[str, Any]) -> Value:
    left, right = args
    if left.shape != right.shape:
        return left.builder.constant(number=False, dtype=bool_)
    return all_(equal(left, right)) if left.rank else equal(left, right)


RULES: Final[Mapping[Op, Rule]] = {
    **views.RULES,
    **indexing.RULES,
    linear: _linear,
    matmul: _matmul,
    contract: _contract,
    solve: _solve,
    solve_triangular: _solve,
    **dict.fromkeys((det, slogdet, cholesky, eigh, qr, svd, pinv), _stacks),
    **images.RULES,
    **random.RULES,
    frozen: _first_operand,
    param: _first_operand,
    to_int: _cast_to_type,
    to_float: _cast_to_type,
    to_bool: _cast_to_type,
}
"""The rules of single operators; pointwise operators and reductions share one each."""

BODIES: Final[Mapping[Op, Body]] = {
    **indexing.BODIES,
    **images.BODIES,
    **random.BODIES,
    array_equal: _array_equal_code,
    nll_loss_grad: _nll_grad_code,
}
"""Equivalent code of one row, for primitives that have no body of their own."""

_ALONG: Final = frozenset((softmax, log_softmax, cumsum, cumprod, cat))
"""Library operators that give a value for all operands of their types."""
