"""Tensors of a number that only the running program knows, as torch fills them."""

import pytest
import torch

from pyrelay import CheckError, Dim, Float, Tensor, float64, relay
from pyrelay.ir.types import int64

M, N = Dim("M"), Dim("N")


@relay
def filled(x: Float, n: int, b: bool, v: Tensor[Float, (N,)]):
    return (
        relay.full((len(v), 2), x * 2.0),
        relay.full((3,), n - 10),
        relay.full((2,), b),
        relay.full(v.shape, n, dtype=float64),
        relay.full_like(v, n),
        relay.full_like(v > 0.0, b),
        relay.full_like(v, x, dtype=int64),
    )


def test_the_number_may_be_computed() -> None:
    v = torch.tensor([1.0, -1.0])
    expected = (
        torch.full((2, 2), 3.0),
        torch.full((3,), -6),
        torch.full((2,), True),
        torch.full((2,), 4.0, dtype=torch.float64),
        torch.full((2,), 4.0),
        torch.full((2,), True),
        torch.full((2,), 1),
    )
    for run in (filled, filled.interpret):
        for found, wanted in zip(run(1.5, 4, True, v), expected, strict=True):
            assert found.dtype == wanted.dtype
            assert torch.equal(found, wanted)


@relay
def scaled(v: Tensor[Float, (N,)], x: Float) -> Float:
    weights = relay.full_like(v, x)
    for i in range(len(v)):
        weights[i] = weights[i] * v[i]
    return (weights * weights).sum()


def test_what_is_filled_is_written_to_and_differentiated() -> None:
    v = torch.tensor([1.0, 2.0, 3.0])
    torch.testing.assert_close(scaled(v, 0.5), torch.tensor(3.5))
    torch.testing.assert_close(relay.grad(scaled, wrt="x")(v, 0.5), torch.tensor(14.0))


@relay
def inside(v: Tensor[Float, (N,)]):
    def total(x: Tensor[Float, (M,)], n: int):
        return relay.full((len(x), n), x.sum())

    return total(v, 2), total(relay.cat((v, v)), 3)


def test_a_local_function_fills_at_the_sizes_of_each_call() -> None:
    small, large = inside(torch.ones(2))
    assert torch.equal(small, torch.full((2, 2), 2.0))
    assert torch.equal(large, torch.full((4, 3), 4.0))


@relay
def drawn(low: Float, v: Tensor[Float, (N,)]):
    key = relay.random_key(3)
    return relay.uniform(key, v.shape, low=low, high=low + 2.0), relay.uniform(key, high=low)


def test_uniform_numbers_have_bounds_that_are_computed() -> None:
    found, one = drawn(0.5, torch.ones(5))
    key = relay.random_key(3)
    torch.testing.assert_close(found, relay.uniform(key, (5,), low=0.5, high=2.5))
    torch.testing.assert_close(one, relay.uniform(key, (), high=0.5))


@relay
def many(v: Tensor[Float, (N,)]):
    return relay.full((2,), v)


def test_a_tensor_of_several_elements_is_no_number() -> None:
    with pytest.raises(CheckError, match="`fill_value` of `full` is one number"):
        many.check()


@relay
def masks(v: Tensor[Float, (N,)]):
    return relay.ones((2,), dtype=bool), relay.zeros_like(v, dtype=int), v.to(bool)


@relay
def floats(v: Tensor[Float, (N,)]):
    return relay.zeros_like(v, dtype=float)


def test_classes_of_python_are_dtypes_where_they_mean_one() -> None:
    found = masks(torch.tensor([0.0, 2.0]))
    expected = (
        torch.ones(2, dtype=torch.bool),
        torch.zeros(2, dtype=torch.int64),
        torch.tensor([False, True]),
    )
    for each, wanted in zip(found, expected, strict=True):
        assert each.dtype == wanted.dtype
        assert torch.equal(each, wanted)
    with pytest.raises(CheckError, match=r"write `relay.float32`, or `relay.float64`"):
        floats.check()
