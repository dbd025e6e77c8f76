"""Type arguments in calls, and sizes that are the larger or smaller of two."""

from __future__ import annotations

from typing import TypeVar

import pytest
import torch

from pyrelay import CheckError, Dim, Float, Int, Tensor, float64, relay

A = TypeVar("A")
M, N = Dim("M"), Dim("N")


@relay
def flat(x: Tensor[Float, (M * N,)], y: A) -> tuple[Tensor[Float, (M * N,)], A]:
    return x * 2.0, y


@relay
def at_sizes(x: Tensor[Float, (6,)], z: Tensor[Float, (N, M)]) -> Tensor[Float, (6,)]:
    both = flat[M, N, Int](z.reshape((M * N,)), 1)
    return flat[2, 3, Float](x, 1.0)[0] + both[0].sum()


def test_a_call_says_its_sizes_and_types() -> None:
    assert "@flat[2, 3, float32](%x" in at_sizes.show()
    assert "@flat[M, N, int64](" in at_sizes.show()
    assert torch.equal(at_sizes(torch.ones(6), torch.ones(2, 2)), torch.full((6,), 10.0))


def test_one_that_contradicts_the_arguments_is_refused() -> None:
    @relay
    def wrong(x: Tensor[Float, (6,)]) -> Tensor[Float, (6,)]:
        return flat[2, 4, Float](x, 1.0)[0]

    @relay
    def wider(x: Tensor[Float, (6,)]) -> Tensor[float64, ()]:
        return flat[2, 3, float64](x, 1)[1]

    with pytest.raises(CheckError, match="`flat` takes"):
        wrong.check()
    assert wider.check()


def test_scripts_do_not_say_them() -> None:
    with pytest.raises(TypeError, match="in compiled code"):
        flat[2, 3, Float]


@relay
def without_first(x: Tensor[Float, (N,)]) -> Tensor[Float, ((N - 1).at_least(0),)]:
    return x[1:]


@relay
def as_long(x: Tensor[Float, (N,)], y: Tensor[Float, (M,)]) -> Tensor[Float, (N.at_most(M),)]:
    return x[: y.shape[0]]


def test_the_larger_and_the_smaller_of_two_sizes() -> None:
    assert without_first.type.endswith("-> Tensor[Float, (max(N - 1, 0),)]")
    assert as_long.type.endswith("-> Tensor[Float, (min(M, N),)]")
    assert without_first(torch.ones(0)).shape == (0,)
    assert as_long(torch.ones(5), torch.ones(2)).shape == (2,)
    assert str(N.at_least(4)) == "max(N, 4)"
    assert str(N.at_most(4)) == "min(N, 4)"
