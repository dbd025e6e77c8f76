"""`sum`, `max` and `min` of lists and tuples: the values of Python, and the errors of empty
ones."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from pyrelay import CheckError, Dim, Float, Int, RunError, Tensor, relay
from pyrelay.prelude import List

N = Dim("N")


@relay
def sum_of_floats(xs: List[Float]) -> Float:
    return sum(xs)


@relay
def sum_of_ints(xs: List[int]) -> int:
    return sum(xs)


@relay
def sum_of_bools(xs: List[bool]) -> int:
    return sum(xs)


@relay
def sum_of_tensors(xs: List[Tensor[Float, (N,)]]) -> Tensor[Float, (N,)]:
    return sum(xs)


@relay
def extremes(xs: List[Int]) -> tuple[int, int]:
    return max(xs), min(xs)


@relay
def largest(xs: List[Float]) -> float:
    return max(xs)


@relay
def smallest(xs: List[Float]) -> float:
    return min(xs)


@relay
def of_tuples(x: float, n: int) -> tuple[float, float, float, int]:
    return sum((x, n, 1.5)), max((1, x)), min((x, n, 2.5)), sum((n,))


@relay
def of_displays(x: float) -> tuple[float, float]:
    return max([x, 3.0 * x, 2.0]), min([x * x, x])


@relay
def sum_of_no_fields() -> int:
    return sum(())


@relay
def sum_of_typed_nothing() -> float:
    xs: List[Float] = []
    return sum(xs)


@relay
def stacked(xs: List[Tensor[Float, (3,)]]) -> Float:
    return relay.sum(relay.stack(xs))


@relay
def first(xs: List[Float]) -> Float:
    return xs[0]


@relay
def spread(xs: List[Float], y: Float) -> Float:
    return max(xs) * 2.0 - min((y, 2.0 * y)) + max([x * y for x in xs])


CASES: list[tuple[Any, tuple[Any, ...], Any]] = [
    (sum_of_floats, ([],), 0.0),
    (sum_of_floats, ([1.0, 2.5],), 3.5),
    (sum_of_ints, ([],), 0),
    (sum_of_ints, ([3, 4],), 7),
    (sum_of_bools, ([],), 0),
    (sum_of_bools, ([True, False, True],), 2),
    (extremes, ([3, 1, 2],), (3, 1)),
    (largest, ([-1.5, -2.5],), -1.5),
    (smallest, ([-1.5, -2.5],), -2.5),
    (of_tuples, (2.0, 3), (6.5, 2.0, 2.0, 3)),
    (of_displays, (2.0,), (6.0, 2.0)),
    (sum_of_no_fields, (), 0),
    (sum_of_typed_nothing, (), 0.0),
]


@pytest.mark.parametrize(("function", "args", "wanted"), CASES)
def test_totals_are_those_of_python(function: Any, args: tuple[Any, ...], wanted: Any) -> None:
    assert function(*args) == wanted
    assert function.interpret(*args) == wanted


@pytest.mark.parametrize(
    ("function", "text"),
    [
        (largest, "max(xs)"),
        (smallest, "min(xs)"),
        (sum_of_tensors, "sum(xs)"),
        (stacked, "relay.stack(xs)"),
        (first, "xs[0]"),
    ],
    ids=lambda v: getattr(v, "__name__", None),
)
def test_what_needs_an_element_of_an_empty_list_says_so(function: Any, text: str) -> None:
    for run in (function, function.interpret):
        with pytest.raises(RunError) as caught:
            run([])
        (found,) = caught.value.diagnostics
        assert found.code == "RL509"
        assert found.primary is not None
        assert found.primary.span.text == text


@relay
def sum_of_nothing(x: Float) -> Float:
    return x + sum([])


@relay
def largest_of_nothing(x: Float) -> Float:
    xs = []
    return x + max(xs)


@relay
def stack_of_nothing(x: Float) -> Float:
    xs = []
    return x + relay.sum(relay.stack(xs))


@relay
def largest_of_no_fields(x: Float) -> Float:
    return x + max(())


@relay
def largest_of_tensors(xs: List[Tensor[Float, (N,)]]) -> Float:
    return max(xs)


@pytest.mark.parametrize(
    "function",
    [
        sum_of_nothing,
        largest_of_nothing,
        stack_of_nothing,
        largest_of_no_fields,
        largest_of_tensors,
    ],
    ids=lambda f: f.__name__,
)
def test_what_can_never_be_is_refused_before_running(function: Any) -> None:
    with pytest.raises(CheckError) as caught:
        function.check()
    assert caught.value.codes == ("RL201",)


def test_gradients_flow_to_the_elements_that_count() -> None:
    xs = [torch.tensor(v, requires_grad=True) for v in (1.0, 4.0, 2.0)]
    y = torch.tensor(3.0, requires_grad=True)
    expected = max(xs) * 2.0 - min((y, 2.0 * y)) + max([x * y for x in xs])
    wanted = torch.autograd.grad(expected, [*xs, y], materialize_grads=True, allow_unused=True)
    value, (of_xs, of_y) = relay.value_and_grad(spread)([x.detach() for x in xs], 3.0)
    assert torch.allclose(value, expected.detach())
    assert torch.allclose(torch.stack(of_xs.to_list()), torch.stack(wanted[:3]))
    assert torch.allclose(of_y, wanted[3])
