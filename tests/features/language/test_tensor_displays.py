"""`relay.tensor` of numbers written out, in programs and in scripts."""

from __future__ import annotations

import pytest
import torch

from pyrelay import CheckError, Dim, Float, Tensor, float64, relay

N = Dim("N")


def test_rows_of_computed_numbers_become_a_matrix() -> None:
    @relay
    def motion(dt: Float):
        return relay.tensor([[1.0, dt], [0, dt**2]])

    torch.testing.assert_close(motion(3.0), torch.tensor([[1.0, 3.0], [0.0, 9.0]]))


def test_elements_that_are_tensors_become_rows() -> None:
    @relay
    def rows(x: Tensor[Float, (N,)]):
        return relay.tensor([x, 2 * x])

    assert rows(torch.ones(3)).tolist() == [[1.0] * 3, [2.0] * 3]


def test_a_tensor_display_is_differentiated_by_its_elements() -> None:
    @relay
    def f(x: Float):
        return (relay.tensor((x * x, 2 * x, 1)) ** 2).sum()

    torch.testing.assert_close(relay.grad(f)(2.0), torch.tensor(4 * 8.0 + 8 * 2.0))


def test_literals_take_the_dtype_of_the_tensor_they_meet() -> None:
    @relay
    def f(x: Tensor[float64, (2,)]):
        return x * relay.tensor([0.1, 3]), relay.tensor([1, 2]), relay.tensor([True, False])

    scaled, integers, bools = f(torch.ones(2, dtype=torch.float64))
    assert torch.equal(scaled, torch.tensor([0.1, 3.0], dtype=torch.float64))
    assert (integers.dtype, bools.dtype) == (torch.int64, torch.bool)


def test_a_dtype_is_that_of_all_elements() -> None:
    @relay
    def f(x: Float):
        return relay.tensor([x, 1], dtype=relay.float64), relay.tensor([], dtype=relay.int32)

    numbers, nothing = f(0.5)
    assert torch.equal(numbers, torch.tensor([0.5, 1.0], dtype=torch.float64))
    assert torch.equal(nothing, torch.tensor([], dtype=torch.int32))


def test_rows_of_two_lengths_are_refused() -> None:
    @relay
    def f(x: Float):
        return relay.tensor([[x, 1.0], [x]])

    with pytest.raises(CheckError, match="number 2 is") as caught:
        f.check()
    assert caught.value.codes == ("RL201",)


def test_starred_elements_are_refused_with_what_to_write() -> None:
    @relay
    def f(x: Float):
        xs = [x, x]
        return relay.tensor([x, *xs])

    with pytest.raises(CheckError, match=r"relay\.stack\(xs\)"):
        f.check()


def test_lists_and_tuples_that_have_names_are_stacked() -> None:
    @relay
    def f(xs: list[Float], rows: list[Tensor[Float, (N,)]], x: Tensor[Float, (N,)]):
        pair = (x, 2.0 * x)
        evens = relay.tensor([i for i in range(4) if i % 2 == 0], dtype=relay.float64)
        return relay.tensor(xs), relay.tensor(rows), relay.tensor(pair), relay.tensor(x), evens

    vector, matrix, both, same, evens = f([1.0, 2.0], [torch.zeros(2)] * 3, torch.ones(2))
    assert vector.tolist() == [1.0, 2.0]
    assert torch.equal(matrix, torch.zeros(3, 2))
    assert both.tolist() == [[1.0, 1.0], [2.0, 2.0]]
    assert same.tolist() == [1.0, 1.0]
    assert torch.equal(evens, torch.tensor([0, 2], dtype=torch.float64))


def test_a_stacked_list_is_differentiated_by_its_elements() -> None:
    @relay
    def f(xs: list[Float]) -> Float:
        squares = [x * x for x in xs]
        return (relay.tensor(squares) * relay.tensor([1.0, 2.0])).sum()

    assert relay.grad(f)([1.0, 3.0]).to_list() == [2.0, 12.0]


def test_in_a_script_it_is_torchs() -> None:
    assert torch.equal(relay.tensor([[1, 2]]), torch.tensor([[1, 2]]))
    assert relay.tensor([1, 2], dtype=relay.float64).dtype is torch.float64
    assert relay.tensor([1, 2], dtype=torch.int32).dtype is torch.int32
