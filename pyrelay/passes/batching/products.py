"""Batching rules of products and of operators on matrices: most take stacks of them already."""

from __future__ import annotations

from collections.abc import Mapping
from string import ascii_letters
from typing import Final

from ...ir.dims import ONE
from ...ir.op import Op
from ...operators.builder import Value
from ...operators.composite.einsum import contract
from ...operators.matrices.determinant import det, slogdet
from ...operators.matrices.factor import cholesky, eigh, pinv, qr, svd
from ...operators.matrices.inverse import solve, solve_triangular
from ...operators.matrices.products import linear, matmul
from .rows import Rows, Rule


def _linear(rows: Rows) -> Value | None:
    """Return `linear(x, w, b)[i] = linear(x[i], w, b)`: one product for all rows."""
    if any(map(rows.has, range(1, len(rows.operands)))) or not rows.rank():
        return None
    return rows.emit(rows.operands)


def _matmul(rows: Rows) -> Value:
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


def _stacks(rows: Rows) -> Value:
    """Return the value of an operator that takes stacks of matrices of any rank."""
    return rows.emit(rows.operands)


def _solve(rows: Rows) -> Value:
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


def _contract(rows: Rows) -> Value:
    """Return sums of products with one label more: that of the rows."""
    equation = rows.attrs["equation"]
    label = next(c for c in ascii_letters if c not in equation)
    terms, result = equation.split("->")
    named = [label * rows.has(i) + term for i, term in enumerate(terms.split(","))]
    return rows.emit(rows.operands, equation=f"{','.join(named)}->{label}{result}")


RULES: Final[Mapping[Op, Rule]] = {
    linear: _linear,
    matmul: _matmul,
    contract: _contract,
    solve: _solve,
    solve_triangular: _solve,
    **dict.fromkeys((det, slogdet, cholesky, eigh, qr, svd, pinv), _stacks),
}
