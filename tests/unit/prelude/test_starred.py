"""Lists opened in displays: `[x, *xs]`."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from pyrelay import CheckError, Float, Int, Tensor, relay
from pyrelay.prelude import List


@relay
def in_front(x: Float, xs: List[Float]) -> List[Float]:
    return [x, *xs]


@relay
def between(x: Float, xs: List[Float]) -> Float:
    ys = [*xs, x, *[y * 2.0 for y in xs], *xs]
    ys.append(x)
    total = 0.0
    for place, y in enumerate([x, *ys]):
        total += place * y
    return total


@relay
def stacked(x: Tensor[Float, (2,)], xs: List[Tensor[Float, (2,)]]) -> Float:
    return relay.stack([x, *xs]).sum() * (x * x).sum()


@relay
def in_order(x: Int) -> tuple[List[Int], str]:
    said = relay.ref("")

    def note(text: str, value: Int) -> Int:
        said.value = said.value + text
        return value

    xs = [note("a", x), *[note("b", x + 1), note("c", x + 2)], note("d", x + 3)]
    return xs, said.value


def in_python(f: Any, *args: Any) -> Any:
    """Run the text of a function as Python."""
    return f.__relay__.function(*args)


@pytest.mark.parametrize("xs", [[], [2.0], [2.0, 3.0]])
def test_a_list_is_opened_in_a_display(xs: list[float]) -> None:
    for run in (in_front, in_front.interpret):
        assert [float(y) for y in run(1.0, xs)] == in_python(in_front, 1.0, xs)
    for run in (between, between.interpret):
        assert float(run(1.0, xs)) == pytest.approx(in_python(between, 1.0, xs))


def test_elements_are_evaluated_in_order() -> None:
    for run in (in_order, in_order.interpret):
        found, said = run(1)
        assert [int(y) for y in found] == [1, 2, 3, 4]
        assert said == "abcd"


def test_gradients_go_through_lists_that_are_opened() -> None:
    slope, slopes = relay.grad(between)(1.0, [2.0, 3.0])
    x = torch.tensor(1.0, requires_grad=True)
    xs = [torch.tensor(2.0, requires_grad=True), torch.tensor(3.0, requires_grad=True)]
    expected = torch.autograd.grad(in_python(between, x, xs), [x, *xs])
    torch.testing.assert_close([slope, *slopes], list(expected))
    v = torch.tensor([1.0, 2.0])
    w = v.clone().requires_grad_()
    (torch.stack([w, w, w * 2.0]).sum() * (w * w).sum()).backward()
    first, rest = relay.grad(stacked)(v, [v, v * 2.0])
    torch.testing.assert_close(first + rest[0] + 2.0 * rest[1], w.grad)


def test_only_lists_are_opened() -> None:
    @relay
    def rows(x: Tensor[Float, (3,)]) -> List[Float]:
        return [1.0, *x]

    @relay
    def mixed(x: Float, xs: List[Int]) -> List[Float]:
        return [x, *xs]

    for wrong, words in ((rows, "opens lists"), (mixed, "one type")):
        with pytest.raises(CheckError, match=words):
            wrong.check()


@relay
def with_gaps(x: Float, maybe: Float | None, xs: List[Float | None]) -> Float:
    total = x
    ys = [maybe, x, None]
    ys.append(None)
    for y in [*xs, None, x, *ys, 3.0]:
        total = total * 2.0 if y is None else total + y
    return total + len([None, 1, 2])


@relay
def optionals(x: Float) -> List[Float | None]:
    return [None, 1.0, x]


def test_none_in_a_display_makes_optionals_of_the_others() -> None:
    for maybe, xs in ((None, []), (1.5, [None, 2.0])):
        expected = in_python(with_gaps, 0.5, maybe, xs)
        assert float(with_gaps(0.5, maybe, xs)) == pytest.approx(expected)
        assert float(with_gaps.interpret(0.5, maybe, xs)) == pytest.approx(expected)
        x = torch.tensor(0.5, requires_grad=True)
        (slope,) = torch.autograd.grad(in_python(with_gaps, x, maybe, xs), x)
        torch.testing.assert_close(relay.grad(with_gaps, wrt="x")(0.5, maybe, xs), slope)
    assert [None if y is None else float(y) for y in optionals(2.0)] == [None, 1.0, 2.0]


def test_a_display_with_none_has_values_of_one_type() -> None:
    @relay
    def wrong(x: Float) -> Int:
        return len([x, None, "a"])

    with pytest.raises(CheckError) as caught:
        wrong.check()
    assert caught.value.codes == ("RL172",)
