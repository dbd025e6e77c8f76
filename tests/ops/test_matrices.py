"""Operators on matrices: what their type rules refuse, what stops the program, and derivatives of
functions that read one triangle."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest
import torch

from pyrelay import CheckError, Float, RunError, Tensor, float64, relay
from pyrelay.ir.op import Clash, Op
from pyrelay.ir.types import Type, bfloat16, float32, int64, tensor_type
from pyrelay.operators.matrices import determinant, inverse
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


@relay
def root(a: Tensor[Float, (2, 2)]) -> Tensor[Float, (2, 2)]:
    return relay.linalg.cholesky(a)


def test_a_matrix_that_is_not_positive_definite_stops_the_program() -> None:
    with pytest.raises(RunError) as caught:
        root(-torch.eye(2))
    assert "positive-definite" in str(caught.value)
    assert "return relay.linalg.cholesky(a)" in str(caught.value)


@relay
def lower(a: Tensor[float64, (4, 4)], by: Tensor[float64, (4, 4)]) -> float64:
    return (relay.linalg.cholesky(a + a.T) * by).sum()


@relay
def upper(a: Tensor[float64, (4, 4)], by: Tensor[float64, (4, 4)]) -> float64:
    return (relay.linalg.cholesky(a + a.T, upper=True) * by).sum()


@relay
def spectrum(a: Tensor[float64, (4, 4)], by: Tensor[float64, (4, 4)]) -> float64:
    values, vectors = relay.linalg.eigh(a + a.T)
    return (relay.exp(values) * (vectors * vectors * by).sum(0)).sum()


@relay
def slopes_of_spectrum(a: Tensor[float64, (4, 4)], by: Tensor[float64, (4, 4)]) -> float64:
    return (relay.grad(spectrum)(a, by)[0] * by).sum()


@relay
def slopes_of_lower(a: Tensor[float64, (4, 4)], by: Tensor[float64, (4, 4)]) -> float64:
    return (relay.grad(lower)(a, by)[0] * by).sum()


@pytest.mark.parametrize("function", [lower, upper, spectrum, slopes_of_spectrum, slopes_of_lower])
def test_the_gradient_by_a_symmetric_matrix_is_the_slope(function: Callable[..., Any]) -> None:
    generator = torch.Generator().manual_seed(0)
    draws = [torch.rand(4, 4, generator=generator, dtype=torch.float64) for _ in range(3)]
    by, along = draws[1], draws[2]
    a = draws[0] + torch.diag(torch.arange(3.0, 7.0, dtype=torch.float64))
    step = 1e-6
    expected = (function(a + step * along, by) - function(a - step * along, by)) / (2 * step)
    actual = (relay.grad(function)(a, by)[0] * along).sum()
    torch.testing.assert_close(actual, expected, rtol=1e-6, atol=1e-8)


def test_the_full_decomposition_is_refused() -> None:
    with pytest.raises(CheckError, match="write full_matrices=False"):
        relay.linalg.svd(torch.eye(2), full_matrices=True)
