"""Inverses of matrices, and the systems of equations that they solve.

A singular matrix stops the program: torch raises, which becomes a RunError at the user's line.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Final

from ...ir.declaration import attribute_kinds as kinds
from ...ir.op import (
    Clash,
    Library,
    Op,
    Promotion,
    Pullback,
    RuleCall,
    Sample,
    ShapeBehaviour,
    TensorSpec,
    attribute,
    operand,
)
from ...ir.rules import broadcast_shapes, floating
from ...ir.types import TensorType, Type, show
from ..declare import composite
from ..primitive.create import eye, tril, triu
from .rules import matrices, regular, regular_samples, square_matrices, swapped

if TYPE_CHECKING:
    from ..builder import Value


def _inv_grad(p: Pullback) -> tuple[Value]:
    turned = swapped(p.out)
    return (-(turned @ p.g @ turned),)


def _inverse(x: Value) -> Value:
    size = x.shape[-1]
    return solve(x, x.builder.call(eye, (), {"n": size, "dtype": x.dtype}).expand(x.shape))


inv: Final[Op] = composite(
    name="inv",
    doc="Inverse of each matrix; a singular one stops the program.",
    params=(operand("input"),),
    type_rule=square_matrices,
    shape=ShapeBehaviour.BATCHED,
    body=_inverse,
    grad=_inv_grad,
    torch=lambda torch, x: torch.linalg.inv(x),
    torch_name="linalg.inv",
    is_fresh=True,
    fuses=False,
    samples=regular_samples,
)


def _sides(call: RuleCall, matrix: TensorType, sides: TensorType) -> TensorType:
    """Return the type of the solutions of systems with matrices of one type and right-hand sides
    of another, neither of them a vector. Raises Stuck or Clash."""
    message = (
        f"`{call.name}` takes right-hand sides with a row for each row of `input`: "
        f"{show(matrix)} and {show(sides)} do not fit"
    )
    call.unify_dims(sides.shape[-2], matrix.shape[-1], 1, message)
    try:
        batch = broadcast_shapes(call, [matrix.shape[:-2], sides.shape[:-2]])
    except Clash:
        call.clash(message, 0, 1, help="leading dims broadcast: sizes are equal or 1")
    return TensorType((*batch, *sides.shape[-2:]), matrix.dtype)


def _solve_type(call: RuleCall) -> Type:
    matrix, sides = square_matrices(call), floating(call, 1)
    if sides.rank == 0:
        call.clash(f"`solve` takes a vector or matrices as `B`, not {show(sides)}", 1)
    if sides.rank == 1:
        message = f"`solve` cannot solve {show(matrix)} for {show(sides)}"
        call.unify_dims(sides.shape[0], matrix.shape[-1], 1, message)
        return TensorType(matrix.shape[:-1], matrix.dtype)
    if sides.rank == matrix.rank - 1:
        # Torch decides by the sizes whether these are vectors, one a matrix, or one matrix.
        call.clash(
            f"`solve` cannot tell vectors from a matrix here: {show(matrix)} and {show(sides)}",
            1,
            help="vectors, one for each matrix, are `b.unsqueeze(-1)`; a matrix for all of them "
            "is `b.unsqueeze(0)`",
        )
    return _sides(call, matrix, sides)


def _solve_grad(p: Pullback) -> tuple[Value, Value]:
    matrix, sides = p.args
    is_vector = sides.rank == 1
    g, out = (v.unsqueeze(-1) if is_vector else v for v in (p.g, p.out))
    to_sides = solve(swapped(matrix), g)
    to_matrix = -(to_sides @ swapped(out))
    if is_vector:
        to_sides = to_sides.reshape(*to_sides.shape[:-1])
    return to_matrix.sum_to(matrix.shape), to_sides.sum_to(sides.shape)


def _solve_samples() -> Iterable[Sample]:
    yield Sample((regular(3, 3), TensorSpec((3, 2))))
    yield Sample((regular(3, 3), TensorSpec((3,))))
    yield Sample((regular(2, 3, 3), TensorSpec((3,))))
    yield Sample((regular(2, 3, 3), TensorSpec((2, 3, 4))))
    yield Sample((regular(3, 3), TensorSpec((2, 3, 4))))
    yield Sample((regular(2, 1, 3, 3), TensorSpec((1, 5, 3, 1))))
    yield Sample((TensorSpec((0, 0)), TensorSpec((0, 2))))
    yield Sample((regular(3, 3), TensorSpec((3, 0))))
    strided = TensorSpec((3, 2), contiguous=False)
    yield Sample((regular(3, 3, contiguous=False), strided))
    yield Sample((regular(4, 4, dtype="float64"), TensorSpec((4, 4), "float64")))


solve: Final = Op(
    name="solve",
    doc="Solution `x` of `input @ x == B`, for a vector or the columns of matrices; a singular "
    "matrix stops the program.",
    params=(operand("input", promote=True), operand("B", promote=True)),
    promotion=Promotion.COMMON,
    type_rule=_solve_type,
    shape=ShapeBehaviour.BATCHED,
    lowering=Library(lambda torch, x, sides: torch.linalg.solve(x, sides), is_fresh=True),
    grad=_solve_grad,
    torch_name="linalg.solve",
    samples=_solve_samples,
)


def _triangular_type(call: RuleCall) -> Type:
    return _sides(call, square_matrices(call), matrices(call, 1))


def _triangular_grad(p: Pullback) -> tuple[Value, Value]:
    (matrix, sides), upper = p.args, p.attrs["upper"]
    to_sides = solve_triangular(swapped(matrix), p.g, upper=not upper)
    to_matrix = -(to_sides @ swapped(p.out))
    triangle = (triu if upper else tril)(to_matrix)
    return triangle.sum_to(matrix.shape), to_sides.sum_to(sides.shape)


def _solve_triangular(torch: Any, x: Any, sides: Any, upper: bool) -> Any:
    return torch.linalg.solve_triangular(x, sides, upper=upper)


solve_triangular: Final = Op(
    name="solve_triangular",
    doc="Solution `x` of `input @ x == B`, where only the upper, or else the lower, triangle of "
    "`input` is read.",
    params=(
        operand("input", promote=True),
        operand("B", promote=True),
        attribute("upper", convert=kinds.flag),
    ),
    promotion=Promotion.COMMON,
    type_rule=_triangular_type,
    shape=ShapeBehaviour.BATCHED,
    lowering=Library(_solve_triangular, is_fresh=True),
    grad=_triangular_grad,
    torch_name="linalg.solve_triangular",
    samples=lambda: (
        Sample((regular(3, 3), TensorSpec((3, 2))), {"upper": True}),
        Sample((regular(3, 3), TensorSpec((3, 2))), {"upper": False}),
        Sample((regular(2, 3, 3), TensorSpec((3, 4))), {"upper": False}),
        Sample((regular(3, 3), TensorSpec((2, 3, 4))), {"upper": True}),
        Sample((TensorSpec((0, 0)), TensorSpec((0, 2))), {"upper": True}),
        Sample((regular(3, 3, contiguous=False), TensorSpec((3, 1))), {"upper": False}),
    ),
)
