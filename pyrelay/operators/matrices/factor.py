"""Factors of matrices: Cholesky, QR, eigenvalues, singular values, and the pseudo-inverse.

Derivatives of orthogonal factors divide by differences of eigenvalues, or of squares of singular
values: where two are equal they are infinite or not-a-number, as in torch.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from ...ir.bounds import minimum
from ...ir.declaration import attribute_kinds as kinds
from ...ir.op import (
    Gradient,
    Library,
    Op,
    Param,
    Pullback,
    RuleCall,
    Sample,
    ShapeBehaviour,
    TensorSpec,
    TypeRule,
    attribute,
    operand,
)
from ...ir.types import TensorType, TupleType, Type
from ..primitive.create import eye, tril
from ..primitive.join import cat
from ..primitive.parts import narrow
from .inverse import solve_triangular
from .rules import matrices, regular_samples, square_matrices, swapped

if TYPE_CHECKING:
    from ..builder import Value


def _identity(like: Value) -> Value:
    """Return the identity matrix with as many columns as another."""
    return like.builder.call(eye, (), {"n": like.shape[-1], "dtype": like.dtype})


def _mirrored(x: Value) -> Value:
    """Return symmetric matrices with the lower triangles of others."""
    return tril(x) + swapped(tril(x, diagonal=-1))


def _of_triangles() -> Iterable[Sample]:
    """Return samples of operators that read one triangle of a symmetric matrix: their derivative is
    symmetric, so it is the slope along symmetric changes alone."""
    for sample in regular_samples():
        (spec,) = sample.operands
        assert isinstance(spec, TensorSpec)
        yield replace(sample, smooth=spec.shape[-1] < 2)


def _rectangles() -> Iterable[Sample]:
    yield Sample((TensorSpec((4, 3)),))
    yield Sample((TensorSpec((3, 4)),))
    yield Sample((TensorSpec((3, 3), diagonal=2.0),))
    yield Sample((TensorSpec((2, 4, 2)),))
    yield Sample((TensorSpec((1, 3)),))
    yield Sample((TensorSpec((0, 3, 2)),))
    yield Sample((TensorSpec((4, 2), contiguous=False),))
    yield Sample((TensorSpec((2, 3), "float64"),))


def _factors(
    *,
    name: str,
    doc: str,
    type_rule: TypeRule,
    body: Callable[..., Any],
    grad: Gradient,
    samples: Callable[[], Iterable[Sample]],
    extra: tuple[Param, ...] = (),
) -> Op:
    """Return an operator on matrices that torch's `linalg` has under the same name."""
    return Op(
        name=name,
        doc=doc,
        params=(operand("input"), *extra),
        type_rule=type_rule,
        shape=ShapeBehaviour.BATCHED,
        lowering=Library(body, is_fresh=True),
        grad=grad,
        torch_name=f"linalg.{name}",
        samples=samples,
    )


def _cholesky_grad(p: Pullback) -> tuple[Value]:
    lower, g = (swapped(v) if p.attrs["upper"] else v for v in (p.out, p.g))
    turned = swapped(lower)
    middle = 0.5 * _mirrored(turned @ g)
    left = solve_triangular(turned, middle, upper=True)
    return (swapped(solve_triangular(turned, swapped(left), upper=True)),)


def _cholesky_samples() -> Iterable[Sample]:
    yield from _of_triangles()
    for sample in _of_triangles():
        yield replace(sample, attrs={"upper": True})


cholesky: Final = _factors(
    name="cholesky",
    doc="The lower triangular `L` with `L @ L.T == input`, or with `upper` its transpose. Only one "
    "triangle of `input` is read; a matrix that is not positive definite stops the program.",
    extra=(attribute("upper", default=False, convert=kinds.flag),),
    type_rule=square_matrices,
    body=lambda torch, x, upper: torch.linalg.cholesky(x, upper=upper),
    grad=_cholesky_grad,
    samples=_cholesky_samples,
)


def _eigh_type(call: RuleCall) -> Type:
    ty = square_matrices(call)
    return TupleType((TensorType(ty.shape[:-1], ty.dtype), ty))


def _eigh_grad(p: Pullback) -> tuple[Value]:
    values, vectors = p.out[0], p.out[1]
    identity = _identity(vectors)
    inner = swapped(vectors) @ p.g[1]
    gaps = values.unsqueeze(-2) - values.unsqueeze(-1) + identity
    turning = 0.5 * (inner - swapped(inner)) / gaps
    middle = turning + p.g[0].unsqueeze(-1) * identity
    return (vectors @ middle @ swapped(vectors),)


eigh: Final = _factors(
    name="eigh",
    doc="Eigenvalues of each symmetric matrix, in ascending order, and eigenvectors as columns. "
    "Only the triangle `UPLO`, 'L' or 'U', is read.",
    extra=(attribute("UPLO", "L", kinds.word("L", "U")),),
    type_rule=_eigh_type,
    body=lambda torch, x, triangle: tuple(torch.linalg.eigh(x, triangle)),
    grad=_eigh_grad,
    samples=lambda: (*_of_triangles(), Sample((TensorSpec((3, 3)),), {"UPLO": "U"}, smooth=False)),
)


def _qr_type(call: RuleCall) -> Type:
    ty = matrices(call)
    (*batch, rows, columns), dtype = ty.shape, ty.dtype
    least = minimum(call.solver.resolve_dim(rows), call.solver.resolve_dim(columns))
    return TupleType(
        (TensorType((*batch, rows, least), dtype), TensorType((*batch, least, columns), dtype))
    )


def _qr_grad(p: Pullback) -> tuple[Value]:
    matrix, ortho, upper = p.args[0], p.out[0], p.out[1]
    to_ortho, to_upper = p.g[0], p.g[1]
    least, columns = ortho.shape[-1], matrix.shape[-1]
    if least == columns:
        return (_square_qr_grad(ortho, upper, to_ortho, to_upper),)
    # Columns behind the first square ones are products of `ortho` and the rest of `upper`.
    first, rest = {"start": 0, "length": least}, {"start": least, "length": columns - least}
    to_rest = narrow(to_upper, dim=-1, **rest)
    to_ortho = to_ortho + narrow(matrix, dim=-1, **rest) @ swapped(to_rest)
    square, to_square = (narrow(v, dim=-1, **first) for v in (upper, to_upper))
    leading = _square_qr_grad(ortho, square, to_ortho, to_square)
    return (cat(p.g.builder.tuple((leading, ortho @ to_rest)), dim=-1),)


def _square_qr_grad(ortho: Value, upper: Value, to_ortho: Value, to_upper: Value) -> Value:
    """Return the cotangent through a factorisation whose triangular factor is square."""
    inner = upper @ swapped(to_upper) - swapped(to_ortho) @ ortho
    whole = to_ortho + ortho @ _mirrored(inner)
    return swapped(solve_triangular(upper, swapped(whole), upper=True))


qr: Final = _factors(
    name="qr",
    doc="Orthonormal columns `Q` and an upper triangular `R` with `Q @ R == input`.",
    extra=(attribute("mode", "reduced", kinds.word("reduced")),),
    type_rule=_qr_type,
    body=lambda torch, x, mode: tuple(torch.linalg.qr(x, mode)),
    grad=_qr_grad,
    samples=_rectangles,
)


def _no_full_matrices(value: Any) -> bool:
    if value is not False:
        raise TypeError("write full_matrices=False: vectors beyond the smaller size are arbitrary")
    return False


def _svd_type(call: RuleCall) -> Type:
    found = _qr_type(call)
    assert isinstance(found, TupleType)
    left, right = found.fields
    assert isinstance(left, TensorType)
    return TupleType((left, TensorType((*left.shape[:-2], left.shape[-1]), left.dtype), right))


def _svd_grad(p: Pullback) -> tuple[Value]:
    left, values, right = p.out[0], p.out[1], p.out[2]
    to_left, to_values, to_right = p.g[0], p.g[1], p.g[2]
    identity = _identity(left)
    row, column = values.unsqueeze(-2), values.unsqueeze(-1)
    gaps = (row - column) * (row + column) + identity
    inner_left, inner_right = swapped(left) @ to_left, to_right @ swapped(right)
    turning_left = (inner_left - swapped(inner_left)) / gaps
    turning_right = (swapped(inner_right) - inner_right) / gaps
    middle = turning_left * row + column * turning_right + to_values.unsqueeze(-1) * identity
    found = left @ middle @ right
    if left.shape[-2] != left.shape[-1]:
        found = found + (to_left - left @ inner_left) / row @ right
    if right.shape[-1] != right.shape[-2]:
        found = found + left @ ((to_right - inner_right @ right) / column)
    return (found,)


svd: Final = _factors(
    name="svd",
    doc="Singular value decomposition: orthonormal columns `U`, singular values in descending "
    "order and orthonormal rows `Vh`, with `U * S @ Vh == input`.",
    extra=(attribute("full_matrices", convert=_no_full_matrices),),
    type_rule=_svd_type,
    body=lambda torch, x, full: tuple(torch.linalg.svd(x, full_matrices=full)),
    grad=_svd_grad,
    samples=lambda: (replace(s, attrs={"full_matrices": False}) for s in _rectangles()),
)


def _pinv_type(call: RuleCall) -> Type:
    ty = matrices(call)
    return TensorType((*ty.shape[:-2], ty.shape[-1], ty.shape[-2]), ty.dtype)


def _pinv_grad(p: Pullback) -> tuple[Value]:
    matrix, found = p.args[0], p.out
    turned, g = swapped(found), swapped(p.g)
    to_columns = g @ found @ turned
    to_rows = turned @ found @ g
    outside_columns = to_columns - matrix @ (found @ to_columns)
    outside_rows = to_rows - to_rows @ found @ matrix
    return (outside_columns + outside_rows - turned @ p.g @ turned,)


pinv: Final = _factors(
    name="pinv",
    doc="Pseudo-inverse of each matrix. Its derivative is that among matrices of the same rank.",
    type_rule=_pinv_type,
    body=lambda torch, x: torch.linalg.pinv(x),
    grad=_pinv_grad,
    samples=_rectangles,
)
