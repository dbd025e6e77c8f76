"""Batching rules: a call of an operator on rows, as one call on all rows at once.

An operand is either a *row*, of which all values lie side by side along a new first dim, or the
same for every row. A rule states what the call becomes, so that row `i` of its value is the value
of the call on row `i`. Operators without a rule are not batched.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias, final

from ...ir.dims import ONE, Dim, product
from ...ir.expr import Call, type_of
from ...ir.op import Clash, Contraction, Effect, Op, Pointwise, Reduction, Stuck, View
from ...ir.types import UNIT, TensorType, TupleType, bool_, is_float
from ...operators.builder import Builder, Value
from ...operators.composite.softmax import log_softmax, softmax
from ...operators.matrices.products import linear, matmul
from ...operators.primitive.embedding import embedding
from ...operators.primitive.index import index
from ...operators.primitive.reduce import sum_to
from ...operators.primitive.scan import cumprod, cumsum
from ...operators.primitive.view import (
    expand,
    flatten,
    permute,
    reshape,
    swapaxes,
    transpose,
    unsqueeze,
)

_WHOLE: Final = ("slice", None, None, None)


@final
@dataclass(frozen=True, slots=True)
class Rows:
    """A call whose operands are all rows at once, or the same for each."""

    builder: Builder
    call: Call
    operands: Sequence[Value]
    is_row: Sequence[bool]
    count: Dim
    """The number of rows."""

    @property
    def attrs(self) -> Mapping[str, Any]:
        """The attributes of the call on one row."""
        return self.call.attrs

    def rank(self, operand: int = 0) -> int:
        """Return the rank of an operand in the call on one row."""
        return self.operands[operand].rank - self.is_row[operand]

    def emit(self, operands: Sequence[Value], **attrs: Any) -> Value:
        """Return the value of the operator on other operands, with some attributes replaced."""
        assert isinstance(self.call.callee, Op)
        return self.builder.call(self.call.callee, operands, {**self.attrs, **attrs})

    def padded(self, operand: int, rank: int) -> Value:
        """Return an operand whose rows broadcast to a rank as those of one row do."""
        value = self.operands[operand]
        missing = rank - self.rank(operand) if self.is_row[operand] else 0
        if missing <= 0:
            return value
        return value.reshape(self.count, *(ONE,) * missing, *value.shape[1:])


Rule: TypeAlias = Callable[[Rows], "Value | None"]


def batched(
    builder: Builder, call: Call, operands: Sequence[Value], is_row: Sequence[bool], count: Dim
) -> Value | None:
    """Return a call of an operator on `count` rows at once, the rows of its value along the first
    dim; None where no rule gives it."""
    assert isinstance(call.callee, Op)
    rule = _rule(call.callee)
    ty = type_of(call)
    if rule is None or not isinstance(ty, TensorType):
        return None
    try:
        found = rule(Rows(builder, call, operands, is_row, count))
    except (Clash, Stuck):
        return None
    wanted = TensorType((count, *ty.shape), ty.dtype)
    return found if found is not None and found.ty == wanted else None


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


def _rule(op: Op) -> Rule | None:
    if op in RULES:
        return RULES[op]
    match op.lowering:
        case Pointwise():
            return _pointwise
        case Reduction() if any(p.name == "dim" for p in op.attributes):
            return _reduction
        case _:
            return None


def _pointwise(rows: Rows) -> Value:
    """The elements of rows are those of the operands, broadcast: `f(x, y)[i] = f(x[i], y)`."""
    ty = rows.call.ty
    assert isinstance(ty, TensorType)
    return rows.emit([rows.padded(i, ty.rank) for i in range(len(rows.operands))])


def _reduction(rows: Rows) -> Value | None:
    """Dims are counted behind that of the rows: `sum(x, d)[i] = sum(x[i], d)` with `d + 1`."""
    dim, rank = rows.attrs["dim"], rows.rank()
    if rank == 0 or len(rows.operands) > 1:
        return None
    if isinstance(dim, int):
        return rows.emit(rows.operands, dim=dim % rank + 1)
    if dim is not None:
        return rows.emit(rows.operands, dim=tuple(d % rank + 1 for d in dim))
    ty, whole = type_of(rows.call), rows.operands[0]
    assert isinstance(ty, TensorType)
    flat = whole.reshape(rows.count, product(whole.shape[1:]))
    found = rows.emit((flat,), dim=1)
    values = found[0] if isinstance(found.ty, TupleType) else found  # `max` gives positions, too
    return values.reshape(rows.count, *ty.shape)


def _along(*names: str) -> Rule:
    """Return the rule of an operator on one tensor whose attributes name dims of it."""

    def rule(rows: Rows) -> Value | None:
        rank = rows.rank()
        if rank == 0:
            return None
        return rows.emit(rows.operands, **{n: rows.attrs[n] % rank + 1 for n in names})

    return rule


def _reshape(rows: Rows) -> Value:
    """`reshape(x, s)[i] = reshape(x[i], s)` with `(n, *s)`."""
    return rows.emit(rows.operands, shape=(rows.count, *rows.attrs["shape"]))


def _expand(rows: Rows) -> Value:
    """`expand(x, s)[i] = expand(x[i], s)` with `(n, *s)`."""
    size = rows.attrs["size"]
    return rows.emit([rows.padded(0, len(size))], size=(rows.count, *size))


def _sum_to(rows: Rows) -> Value:
    """`sum_to(x, s)[i] = sum_to(x[i], s)` with `(n, 1, ..., *s)`, which has the rank of `x`."""
    size = rows.attrs["size"]
    missing = rows.rank() - len(size)
    whole = rows.emit(rows.operands, size=(rows.count, *(ONE,) * missing, *size))
    return whole.reshape(rows.count, *size)


def _permute(rows: Rows) -> Value:
    """`permute(x, p)[i] = permute(x[i], p)` with `(0, *(d + 1 for d in p))`."""
    rank = rows.rank()
    return rows.emit(rows.operands, dims=(0, *(d % rank + 1 for d in rows.attrs["dims"])))


def _unsqueeze(rows: Rows) -> Value:
    """`unsqueeze(x, d)[i] = unsqueeze(x[i], d)` with `d + 1`."""
    return rows.emit(rows.operands, dim=rows.attrs["dim"] % (rows.rank() + 1) + 1)


def _index(rows: Rows) -> Value | None:
    """`x[:, s][i] = x[i][s]` for slices."""
    spec = rows.attrs["spec"]
    if any(rows.is_row[1:]) or any(entry[0] not in ("slice", "ellipsis") for entry in spec):
        return None
    return rows.emit(rows.operands, spec=(_WHOLE, *spec))


def _first_operand(rows: Rows) -> Value | None:
    """The first operand may have further dims in front, which the result then has, too."""
    return None if any(rows.is_row[1:]) else rows.emit(rows.operands)


def _linear(rows: Rows) -> Value | None:
    """`linear(x, w, b)[i] = linear(x[i], w, b)`."""
    return _first_operand(rows) if rows.rank() else None


def _matmul(rows: Rows) -> Value | None:
    """`(x @ y)[i] = x[i] @ y[i]`, vectors as matrices of one row or column."""
    (x, y), ranks = rows.operands, (rows.rank(0), rows.rank(1))
    match tuple(rows.is_row):
        case (True, False) if ranks[1] <= 2:
            return rows.emit((x, y))
        case (False, True) if ranks == (2, 1):
            return rows.emit((y, x.transpose(0, 1)))
        case (False, True) if ranks == (1, 1):
            return rows.emit((y, x))
        case (False, True) if ranks[0] <= 2 == ranks[1]:
            return rows.emit((x, y))
        case (True, True) if max(ranks) <= 2:
            left = x.unsqueeze(1) if ranks[0] == 1 else x
            right = y.unsqueeze(2) if ranks[1] == 1 else y
            ty = type_of(rows.call)
            assert isinstance(ty, TensorType)
            return rows.emit((left, right)).reshape(rows.count, *ty.shape)
        case _:
            return None


_ALONG: Final[Mapping[Op, Rule]] = {
    softmax: _along("dim"),
    log_softmax: _along("dim"),
    cumsum: _along("dim"),
    cumprod: _along("dim"),
}

RULES: Final[Mapping[Op, Rule]] = {
    **_ALONG,
    transpose: _along("dim0", "dim1"),
    swapaxes: _along("axis0", "axis1"),
    flatten: _along("start_dim", "end_dim"),
    reshape: _reshape,
    expand: _expand,
    sum_to: _sum_to,
    permute: _permute,
    unsqueeze: _unsqueeze,
    index: _index,
    linear: _linear,
    embedding: _first_operand,
    matmul: _matmul,
}
"""The rules of single operators; pointwise operators and reductions share one each."""
