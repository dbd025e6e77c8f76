"""Lists between scripts and programs: taken, given, checked, differentiated, at any length."""

from __future__ import annotations

import copy
import pickle
from dataclasses import dataclass
from typing import Any

import pytest
import torch

from pyrelay import Dim, Float, Int, RunError, Tensor, relay
from pyrelay.prelude import Cons, List, Nil

N = Dim("N")
LONG = 20_000


@relay
def scaled(xs: List[Tensor[Float, (N,)]], k: Float) -> List[Tensor[Float, (N,)]]:
    return [x * k for x in xs]


@relay
def total(xs: List[Float]) -> Float:
    return sum(xs)


@relay
def measured(xs: List[List[Float]]) -> List[tuple[Float, Int]]:
    return [(sum(x), len(x)) for x in xs]


def test_lists_go_in_and_come_out() -> None:
    xs = [torch.tensor([1.0, 2.0]), torch.tensor([3.0, 4.0])]
    for run in (scaled, scaled.interpret):
        for given in (xs, List.of(xs), Cons(xs[0], [xs[1]])):
            found = run(given, 2.0)
            assert isinstance(found, List)
            assert found == [2 * x for x in xs]
    assert scaled([], 1.0) == Nil()
    pairs = measured([[1.0, 2.0], [], [3.0]])
    assert [(float(a), int(b)) for a, b in pairs] == [(3.0, 2), (0.0, 0), (3.0, 1)]


def test_a_result_shares_no_storage_with_an_argument() -> None:
    @relay
    def same(xs: List[Float]) -> List[Float]:
        return xs

    x = torch.tensor(1.0)
    found = same([x, x])
    x += 1
    assert [float(y) for y in found] == [1.0, 1.0]


def test_one_program_serves_all_lengths() -> None:
    @relay
    def summed(xs: List[Float]) -> Float:
        return sum(xs)

    for n in range(5):
        assert float(summed([1.0] * n)) == n
    assert summed.cache_info().entries == 1


@dataclass(frozen=True)
class Box:
    items: List[Float]
    scale: Float


@relay
def packed(xs: List[Float]) -> Box:
    return Box(xs + xs, 2.0)


def test_data_of_lists() -> None:
    box = packed([1.0, 2.0])
    assert isinstance(box, Box)
    assert isinstance(box.items, List)
    assert [float(x) for x in box.items] == [1.0, 2.0, 1.0, 2.0]


def test_gradients_are_lists() -> None:
    found = relay.grad(total)([1.0, 2.0, 3.0])
    assert isinstance(found, List)
    assert [float(x) for x in found] == [1.0, 1.0, 1.0]


def test_lists_join_torchs_graph() -> None:
    xs = [torch.tensor([1.0, 2.0], requires_grad=True) for _ in range(3)]
    k = torch.tensor(3.0, requires_grad=True)
    ys = scaled(xs, k)
    (ys[0].sum() * 2 + ys[2][1] * 5).backward()
    grads = [x.grad for x in xs]
    torch.testing.assert_close(grads[0], torch.tensor([6.0, 6.0]))
    torch.testing.assert_close(grads[1], torch.tensor([0.0, 0.0]))
    torch.testing.assert_close(grads[2], torch.tensor([0.0, 15.0]))
    assert k.grad == 2 * 3.0 + 5 * 2.0


def test_a_pullback_takes_a_list() -> None:
    xs = [torch.tensor([1.0, 2.0]), torch.tensor([3.0, 4.0])]
    value, back = relay.vjp(scaled, wrt="k")(xs, 2.0)
    assert value == [2 * x for x in xs]
    assert float(back([torch.ones(2), torch.zeros(2)])) == 3.0
    assert float(back(List.of([torch.zeros(2), torch.ones(2)]))) == 7.0


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ([1.0, 2.0, 3.0, "a"], "`total` got the str 'a' as `xs[3]`"),
        ([torch.ones(2)], "`total` got Tensor[Float, (2,)] as `xs[0]`"),
        (3.0, "`total` got the float 3.0 as `xs`"),
        ((1.0, "a"), "`total` got the str 'a' as `xs[1]`"),
    ],
)
def test_a_wrong_element_is_named(given: Any, message: str) -> None:
    with pytest.raises(RunError) as caught:
        total(given)
    assert message in str(caught.value)


def test_a_wrong_size_is_named() -> None:
    with pytest.raises(RunError) as caught:
        scaled([torch.ones(2), torch.ones(3)], 1.0)
    assert "dimension 0 of `xs[1]` is 3, not 2" in str(caught.value)
    with pytest.raises(RunError) as caught:
        measured([[1.0], [2.0, True]])
    assert "as `xs[1][1]`" in str(caught.value)


def test_long_lists_need_no_deep_stack() -> None:
    xs = [float(n % 7) for n in range(LONG)]
    assert float(total(xs)) == sum(xs)
    found = scaled([torch.tensor([x]) for x in xs], 2.0)
    assert len(found) == LONG
    assert float(found[-1]) == 2 * xs[-1]
    gradient = relay.grad(total)(xs)
    assert float(sum(gradient)) == LONG
    del found, gradient
    tracked = [torch.tensor(x, requires_grad=True) for x in xs]
    total(tracked).backward()
    assert tracked[-1].grad == 1


# The object.


def test_a_list_behaves_as_pythons() -> None:
    xs, plain = List.of([1, 2, 3, 4]), [1, 2, 3, 4]
    assert list(xs) == plain == xs.to_list()
    assert xs == plain
    assert xs != plain[:3]
    assert xs != [1, 2, 3, 5]
    assert (xs == 3) is False
    for i in range(-4, 4):
        assert xs[i] == plain[i]
    assert xs[1:] == plain[1:]
    assert xs[::-2] == plain[::-2]
    assert list(reversed(xs)) == plain[::-1]
    assert repr(xs) == "List([1, 2, 3, 4])"
    with pytest.raises(IndexError, match="index 4 of a list of length 4"):
        _ = xs[4]
    with pytest.raises(AttributeError):
        xs.head = 3  # type: ignore[attr-defined]
    with pytest.raises(TypeError):
        List([1])
    with pytest.raises(TypeError):
        hash(xs)


def test_a_list_can_be_taken_apart() -> None:
    def total_of(xs: Any) -> int:
        match xs:
            case Cons(head, tail):
                return head + total_of(tail)
            case Nil():
                return 0
        return -1

    assert total_of(List.of([1, 2, 3])) == 6
    assert total_of(Cons(1, Cons(2, Nil()))) == 3
    assert isinstance(Cons(1, []), Cons)
    assert isinstance(Nil(), Nil)
    assert not isinstance(Nil(), Cons)


def test_elements_that_are_tensors_are_compared_as_a_whole() -> None:
    xs = List.of([torch.ones(2), torch.zeros(3)])
    assert xs == [torch.ones(2), torch.zeros(3)]
    assert xs != [torch.ones(2), torch.ones(3)]
    assert xs != [torch.ones(2), torch.zeros(2)]


def test_a_list_is_copied_and_pickled() -> None:
    xs = List.of([1, [2]])
    assert copy.deepcopy(xs) == xs
    assert pickle.loads(pickle.dumps(xs)) == xs
