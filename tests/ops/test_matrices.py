"""Operators on matrices: what their type rules refuse, and what stops the program."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
import torch

from pyrelay import Float, RunError, Tensor, relay
from pyrelay.ir.op import Clash, Op
from pyrelay.ir.types import Type, bfloat16, float32, int64, tensor_type
from pyrelay.operators.primitive import determinant, inverse
from tests.ops.programs import Program

WIDE = tensor_type(float32, 3, 4)
SQUARE = tensor_type(float32, 3, 3)


@pytest.mark.parametrize(
    ("op", "operands", "message"),
    [
        (
            inverse.inv,
            (WIDE,),
            "`inv` takes square matrices: Tensor[Float, (3, 4)] has 3 rows and 4 columns",
        ),
        (
            determinant.det,
            (tensor_type(float32, 3),),
            "`det` takes a matrix or a batch of matrices, not Tensor[Float, (3,)]",
        ),
        (
            inverse.inv,
            (tensor_type(int64, 3, 3),),
            "`inv` takes a float tensor, not Tensor[Int, (3, 3)]",
        ),
        (
            inverse.inv,
            (tensor_type(bfloat16, 3, 3),),
            "`inv` computes in float32 or float64, not in bfloat16",
        ),
        (
            inverse.solve,
            (SQUARE, tensor_type(float32, 4, 3)),
            "`solve` takes right-hand sides with a row for each row of `input`: "
            "Tensor[Float, (3, 3)] and Tensor[Float, (4, 3)] do not fit",
        ),
        (
            inverse.solve,
            (tensor_type(float32, 2, 3, 3), tensor_type(float32, 2, 3)),
            "`solve` cannot tell vectors from a matrix here: "
            "Tensor[Float, (2, 3, 3)] and Tensor[Float, (2, 3)]",
        ),
        (
            inverse.solve,
            (SQUARE, tensor_type(float32, 4)),
            "`solve` cannot solve Tensor[Float, (3, 3)] for Tensor[Float, (4,)]",
        ),
    ],
)
def test_a_matrix_that_does_not_fit_is_refused_with_its_sizes(
    op: Op, operands: Sequence[Type], message: str
) -> None:
    program = Program()
    with pytest.raises(Clash) as caught:
        program.builder.call(op, [program.parameter(ty) for ty in operands])
    assert caught.value.message == message


@relay
def solution(a: Tensor[Float, (2, 2)], b: Tensor[Float, (2,)]) -> Tensor[Float, (2,)]:
    return relay.linalg.solve(a, b)


@relay
def volume(a: Tensor[Float, (2, 2)]) -> Float:
    return relay.det(a)


def test_a_singular_matrix_stops_the_program_at_the_line_of_the_user() -> None:
    with pytest.raises(RunError) as caught:
        solution(torch.ones(2, 2), torch.ones(2))
    assert "singular" in str(caught.value)
    assert "return relay.linalg.solve(a, b)" in str(caught.value)


def test_a_singular_matrix_has_a_determinant_and_no_derivative_of_it() -> None:
    assert volume(torch.ones(2, 2)).item() == 0.0
    with pytest.raises(RunError) as caught:
        relay.grad(volume)(torch.ones(2, 2))
    assert "return relay.det(a)" in str(caught.value)


def test_linalg_has_the_operators_by_the_names_of_torch() -> None:
    assert relay.linalg.inv is relay.inv
    x = torch.eye(3, dtype=torch.float64) * 2.0
    torch.testing.assert_close(relay.linalg.inv(x), torch.linalg.inv(x))
