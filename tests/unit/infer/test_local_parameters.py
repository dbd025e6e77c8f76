"""Local functions whose annotations have sizes or types of their own: one copy a use."""

from __future__ import annotations

from typing import TypeVar

import torch

from pyrelay import Dim, Float, Tensor, relay

T = TypeVar("T")
K, N = Dim("K"), Dim("N")


@relay
def of_two_sizes(x: Tensor[Float, (4,)], y: Tensor[Float, (N,)]) -> Float:
    def total(v: Tensor[Float, (K,)]) -> Float:
        return relay.sum(v)

    return total(x) + 10 * total(y)


@relay
def of_two_types(x: Tensor[Float, (N,)]) -> tuple[Tensor[Float, (N,)], Float]:
    def twice(f, v: T) -> T:
        return f(f(v))

    return twice(lambda v: v + 1, x), twice(lambda v: v * 3, 1.0)


@relay
def with_a_size_of_the_result(x: Tensor[Float, (4,)]) -> Tensor[Float, (K,)]:
    def more(v: Tensor[Float, (K,)]) -> Tensor[Float, (K,)]:
        return v + 1

    return more(x)


def test_each_use_has_sizes_of_its_own() -> None:
    args = torch.ones(4), torch.ones(3)
    assert float(of_two_sizes(*args)) == 34
    assert float(of_two_sizes.interpret(*args)) == 34


def test_each_use_has_types_of_its_own() -> None:
    vector, number = of_two_types(torch.zeros(2))
    assert vector.tolist() == [2.0, 2.0]
    assert float(number) == 9


def test_a_size_of_the_result_alone_is_found() -> None:
    assert with_a_size_of_the_result.type.endswith("-> Tensor[Float, (4,)]")
    assert with_a_size_of_the_result(torch.zeros(4)).tolist() == [1.0] * 4
