"""Values and derivatives at the points where a careless rule gives not-a-number."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import pytest
import torch

from pyrelay.ir.op import Op
from pyrelay.ir.types import TensorType, float64, tensor_type
from pyrelay.operators.builder import Value
from pyrelay.operators.composite import measure
from pyrelay.operators.primitive import activation, arithmetic, compare, extrema, reduce, scan
from pyrelay.operators.primitive import math as functions
from tests.ops.checks import assert_equal
from tests.ops.derivatives import results_of
from tests.ops.programs import Program, differentiate

INF, NAN = math.inf, math.nan


def derivatives(
    body: Callable[..., Value], *operands: list[Any]
) -> tuple[list[torch.Tensor], list[torch.Tensor]]:
    """Return the gradient of the sum of `body`'s results, and the gradient of the gradient's
    sum."""
    program = Program()
    args = [torch.tensor(v, dtype=torch.float64) for v in operands]
    values = [program.parameter(tensor_type(float64, *a.shape)) for a in args]
    result = body(*values)
    by = list(program.params)
    first = differentiate(program, [result], by)
    args.append(torch.ones(_shape(result), dtype=torch.float64))
    gradient = results_of(program, first, args)
    second = differentiate(program, first, by)
    args += [torch.ones(_shape(g), dtype=torch.float64) for g in first]
    return gradient, results_of(program, second, args)


def gradient_of(body: Callable[..., Value], operand: list[Any]) -> torch.Tensor:
    """Return the gradient of the sum of `body`'s result, a constant one's too."""
    program = Program()
    x = torch.tensor(operand, dtype=torch.float64)
    result = body(program.parameter(tensor_type(float64, *x.shape)))
    first = differentiate(program, [result], list(program.params))
    return results_of(program, first, [x, torch.ones(_shape(result), dtype=torch.float64)])[0]


def _shape(value: Value) -> tuple[int, ...]:
    assert isinstance(value.ty, TensorType)
    return tuple(d.evaluate({}) for d in value.ty.shape)


def torch_derivatives(
    body: Callable[..., torch.Tensor], *operands: list[Any]
) -> tuple[list[torch.Tensor], list[torch.Tensor]]:
    args = [torch.tensor(v, dtype=torch.float64, requires_grad=True) for v in operands]
    first = torch.autograd.grad(body(*args).sum(), args, create_graph=True)
    second = torch.autograd.grad(sum(g.sum() for g in first), args)
    return [g.detach() for g in first], list(second)


def assert_follows_torch(
    body: Callable[..., Value], torch_body: Callable[..., torch.Tensor], *operands: list[Any]
) -> None:
    actual, expected = derivatives(body, *operands), torch_derivatives(torch_body, *operands)
    assert_equal(actual[0], expected[0], rtol=1e-9, atol=1e-12)
    assert_equal(actual[1], expected[1], rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("zeros", [[], [1], [1, 3], [0, 1, 2, 3]])
def test_a_product_with_zeros_has_exact_first_and_second_derivatives(zeros: list[int]) -> None:
    row = [1.5, -2.0, 0.5, 3.0]
    elements = [0.0 if i in zeros else x for i, x in enumerate(row)]
    assert_follows_torch(lambda x: reduce.prod(x), torch.prod, elements)
    assert_follows_torch(
        lambda x: reduce.prod(x, dim=-1), lambda x: torch.prod(x, -1), [elements, row]
    )
    assert_follows_torch(lambda x: scan.cumprod(x, dim=0), lambda x: torch.cumprod(x, 0), elements)


@pytest.mark.parametrize("exponent", [0.0, 1.0, 2.0, 3.0])
def test_a_constant_power_is_smooth_at_zero(exponent: float) -> None:
    assert_follows_torch(
        lambda x: arithmetic.power(x, exponent) + 0.0 * x * x,
        lambda x: torch.pow(x, exponent) + 0.0 * x * x,
        [0.0, -1.5, 2.0],
    )


def test_a_power_of_zero_has_finite_derivatives_by_base_and_exponent() -> None:
    gradient, second = derivatives(arithmetic.power, [0.0, 0.0, 2.0], [2.0, 3.0, 0.0])
    assert_equal(gradient[0].tolist(), [0.0, 0.0, 0.0], rtol=0, atol=0)
    assert_equal(gradient[1].tolist(), [0.0, 0.0, math.log(2.0)], rtol=1e-12, atol=0)
    assert all(bool(torch.isfinite(s).all()) for s in second)


def test_a_power_with_exponent_zero_is_flat_even_at_zero() -> None:
    gradient, _ = derivatives(arithmetic.power, [0.0], [0.0])
    assert [g.tolist() for g in gradient] == [[0.0], [0.0]]


def test_the_root_at_zero_has_an_infinite_slope_as_in_torch() -> None:
    gradient, _ = derivatives(functions.sqrt, [0.0, 4.0])
    assert gradient[0].tolist() == [INF, 0.25]


@pytest.mark.parametrize("order", [1.0, 1.5, 2.0, 3.0, INF])
def test_a_norm_at_zero_has_derivative_zero(order: float) -> None:
    gradient, second = derivatives(lambda x: measure.norm(x, p=order), [0.0, 0.0])
    assert gradient[0].tolist() == [0.0, 0.0]
    assert bool(torch.isfinite(second[0]).all())


def test_a_norm_with_a_zero_element_has_finite_second_derivatives() -> None:
    assert_follows_torch(lambda x: measure.norm(x), torch.linalg.vector_norm, [0.0, 3.0, -4.0])
    assert_follows_torch(
        lambda x: measure.norm(x, p=3), lambda x: torch.linalg.vector_norm(x, 3), [0.0, 3.0, -4.0]
    )


def test_a_spread_of_equal_elements_has_derivative_zero() -> None:
    gradient, second = derivatives(lambda x: measure.std(x), [2.0, 2.0, 2.0])
    assert gradient[0].tolist() == [0.0, 0.0, 0.0]
    assert second[0].tolist() == [0.0, 0.0, 0.0]


@pytest.mark.parametrize("op", [extrema.amax, extrema.amin, extrema.max_, extrema.min_])
def test_equal_extremes_of_all_elements_share_the_derivative(op: Op) -> None:
    gradient, _ = derivatives(op, [5.0, 5.0, 5.0, 5.0])
    assert gradient[0].tolist() == [0.25] * 4


ROWS = [
    [NAN, 1.0, 2.0, 1.5],
    [1.0, NAN, NAN, 0.5],
    [INF, 1.0, INF, -1.0],
    [-INF, -INF, -INF, -INF],
    [NAN, NAN, NAN, NAN],
    [INF, NAN, -INF, 0.0],
]


@pytest.mark.parametrize("name", ["amax", "amin", "max", "min"])
@pytest.mark.parametrize("dim", [None, 0, 1])
def test_extremes_of_infinities_and_not_a_number_have_the_derivatives_of_torch(
    name: str, dim: int | None
) -> None:
    op: Op = getattr(extrema, name if name[0] == "a" else f"{name}_")
    function: Callable[..., Any] = getattr(torch, name)

    def first(extremes: Any) -> Any:
        return extremes[0] if name[0] != "a" and dim is not None else extremes

    given = {} if dim is None else {"dim": dim}
    for rows in (ROWS, *([row] for row in ROWS)):
        x = torch.tensor(rows, dtype=torch.float64, requires_grad=True)
        expected = torch.autograd.grad(first(function(x, **given)).sum(), x)
        gradient = gradient_of(lambda x: first(op(x, **given)), rows)
        assert_equal(gradient, expected[0], rtol=1e-9, atol=1e-12)


def test_the_extreme_along_a_dim_takes_the_whole_derivative() -> None:
    gradient, _ = derivatives(lambda x: extrema.max_(x, dim=1)[0], [[5.0, 5.0], [1.0, 2.0]])
    assert gradient[0].tolist() == [[1.0, 0.0], [0.0, 1.0]]


@pytest.mark.parametrize("op", [arithmetic.minimum, arithmetic.maximum])
def test_equal_operands_share_the_derivative(op: Op) -> None:
    gradient, _ = derivatives(op, [1.0, 2.0], [1.0, 2.0])
    assert [g.tolist() for g in gradient] == [[0.5, 0.5], [0.5, 0.5]]


def test_the_size_of_zero_has_derivative_zero() -> None:
    gradient, _ = derivatives(arithmetic.abs_, [0.0, -3.0])
    assert gradient[0].tolist() == [0.0, -1.0]


def test_clipping_passes_the_derivative_at_its_bounds() -> None:
    gradient, _ = derivatives(
        lambda x: activation.clip(x, 0.0, 1.0) + 0.0 * x * x, [-1.0, 0.0, 0.5, 1.0, 2.0]
    )
    assert gradient[0].tolist() == [0.0, 1.0, 1.0, 1.0, 0.0]


def test_the_arm_not_taken_does_not_spoil_the_derivative() -> None:
    def root_or_zero(x: Value) -> Value:
        positive = compare.greater(x, 0.0)
        return compare.where(positive, functions.sqrt(compare.where(positive, x, 1.0)), 0.0)

    gradient, _ = derivatives(root_or_zero, [0.0, 4.0])
    assert gradient[0].tolist() == [0.0, 0.25]


def run(op: Op, operands: list[list[float]], attrs: Mapping[str, Any] | None = None) -> Any:
    program = Program()
    args = [torch.tensor(v, dtype=torch.float64) for v in operands]
    values = [program.parameter(tensor_type(float64, *a.shape)) for a in args]
    return program.run(program.builder.call(op, values, attrs or {}), args)


@pytest.mark.parametrize(
    ("op", "function"),
    [
        (functions.exp, torch.exp),
        (functions.log, torch.log),
        (functions.log1p, torch.log1p),
        (functions.sqrt, torch.sqrt),
        (functions.rsqrt, torch.rsqrt),
        (functions.tanh, torch.tanh),
        (functions.atan, torch.atan),
        (functions.erf, torch.erf),
        (functions.floor, torch.floor),
        (functions.round_, torch.round),
        (arithmetic.sign, torch.sign),
        (arithmetic.abs_, torch.abs),
        (functions.sigmoid, torch.sigmoid),
        (activation.relu, torch.relu),
        (activation.silu, torch.nn.functional.silu),
        (activation.softplus, torch.nn.functional.softplus),
        (activation.leaky_relu, torch.nn.functional.leaky_relu),
    ],
    ids=lambda v: v.name if isinstance(v, Op) else "",
)
def test_infinities_and_not_a_number_go_through_as_in_torch(
    op: Op, function: Callable[..., torch.Tensor]
) -> None:
    elements = [INF, -INF, NAN, 0.0, -0.0, 1e-300, -1e300]
    expected = function(torch.tensor(elements, dtype=torch.float64))
    assert_equal(run(op, [elements]), expected, rtol=1e-12, atol=0)


@pytest.mark.parametrize(
    ("op", "function"),
    [
        (arithmetic.divide, torch.divide),
        (arithmetic.floor_divide, torch.floor_divide),
        (arithmetic.mod, torch.remainder),
        (arithmetic.power, torch.pow),
        (arithmetic.minimum, torch.minimum),
        (arithmetic.maximum, torch.maximum),
        (arithmetic.logaddexp, torch.logaddexp),
        (compare.less, torch.less),
        (compare.equal, torch.eq),
    ],
    ids=lambda v: v.name if isinstance(v, Op) else "",
)
def test_pairs_with_infinities_and_not_a_number_go_through_as_in_torch(
    op: Op, function: Callable[..., torch.Tensor]
) -> None:
    special = [INF, -INF, NAN, 0.0, 1.0, -2.5]
    left = [a for a in special for _ in special]
    right = [b for _ in special for b in special]
    expected = function(*(torch.tensor(v, dtype=torch.float64) for v in (left, right)))
    assert_equal(run(op, [left, right]), expected, rtol=1e-12, atol=0)
