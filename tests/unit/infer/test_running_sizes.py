"""Sizes that only the running program knows: types never say that two are equal unless they are.

Each program gives, beside a value, zeros of the size that the type of the value has: the two agree,
or the program stops.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import torch

from pyrelay import CheckError, Dim, Float, Int, Ref, RunError, Tensor, relay
from pyrelay.config import options
from tests.python_text import assert_reads_back

N, M, K = Dim("N"), Dim("M"), Dim("K")
X = torch.tensor([0.1, 0.55, 0.6, 0.75, 0.9])


def both(f: Any, *args: Any) -> Any:
    """Return the value of a function, on which the executors agree."""
    found = f(*args)
    torch.testing.assert_close(f.interpret(*args), found)
    with options(lowering="torch-regions"):
        torch.testing.assert_close(f(*args), found)
    return found


def assert_stops(f: Any, *args: Any) -> None:
    """Assert that both executors find sizes that differ."""
    for call in (f, f.interpret):
        with pytest.raises(RunError) as caught:
            call(*args)
        assert caught.value.codes == ("RL508",)


# Branches.


@relay
def two_masks(x: Tensor[Float, (N,)], which: Int):
    y = x[x > 0.5] if which > 0 else x[x > 0.7]
    return y, relay.zeros(y.shape[0])


@relay
def mask_or_all(x: Tensor[Float, (N,)], which: Int):
    y = x if which > 0 else x[x > 0.7]
    return y, relay.zeros(y.shape[0])


@relay
def pairs(x: Tensor[Float, (N,)], which: Int):
    a, b = x[x > 0.5], x[x > 0.7]
    y, z = (a, a * 2.0) if which > 0 else (b, b * 3.0)
    # Both of one branch have one size, so their sum needs no comparison.
    return y + z, relay.zeros(z.shape[0])


@relay
def matched(x: Tensor[Float, (N,)], which: Int):
    match which:
        case 0:
            y = x
        case 1:
            y = x[x > 0.5]
        case _:
            y = relay.zeros(which)
    return y, relay.zeros(y.shape[0])


@pytest.mark.parametrize("function", [two_masks, mask_or_all, pairs, matched])
@pytest.mark.parametrize("which", [0, 1, 2])
def test_a_value_of_several_branches_has_a_size_of_its_own(function: Any, which: int) -> None:
    value, zeros = both(function, X, which)
    assert value.shape == zeros.shape


def test_branches_with_one_size_keep_it() -> None:
    @relay
    def one_mask(x: Tensor[Float, (N,)], which: Int):
        y = x[x > 0.5]
        return y + (y * 2.0 if which > 0 else y * 3.0)

    assert "equal_sizes" not in one_mask.show("typed")
    assert both(one_mask, X, 1).shape == (4,)


# Operators, calls, annotations and cells compare sizes.


@relay
def added(x: Tensor[Float, (N,)], low: Float, high: Float):
    y = x[x > low] + x[x > high]
    return y, relay.zeros(y.shape[0])


@relay
def of_one_size(a: Tensor[Float, (N,)], b: Tensor[Float, (N,)]):
    return a, relay.zeros(b.shape[0])


@relay
def called(x: Tensor[Float, (N,)], low: Float, high: Float):
    return of_one_size(x[x > low], x[x > high])


@relay
def told_equal(a: Tensor[Float, (N,)], b: Tensor[Float, (M,)]):
    return a, relay.zeros(b.shape[0]) + b * a


@relay
def assumed(x: Tensor[Float, (N,)], low: Float, high: Float):
    return told_equal(x[x > low], x[x > high])


@relay
def kept(x: Tensor[Float, (N,)], low: Float, high: Float):
    cell = relay.ref(x[x > low])
    cell.value = x[x > high]
    y = cell.value
    return y, relay.zeros(y.shape[0])


@relay
def annotated_local(x: Tensor[Float, (N,)], low: Float, high: Float):
    y = x[x > low]

    def doubled(z: Tensor[Float, (N,)]) -> Tensor[Float, (N,)]:
        return z * 2.0

    return doubled(x[x > high]), y + relay.zeros(x.shape[0])


@pytest.mark.parametrize("function", [added, called, assumed, kept])
def test_sizes_that_types_take_to_be_equal_are_compared(function: Any) -> None:
    value, zeros = both(function, X, 0.2, 0.5)
    assert value.shape == zeros.shape == (4,)
    assert_stops(function, X, 0.2, 0.65)
    # A size of 1 would be broadcast without a word.
    assert_stops(function, X, 0.2, 0.8)


def test_an_annotation_is_compared_with_what_arrives() -> None:
    assert both(annotated_local, X, 0.0, 0.0)[0].shape == (5,)
    assert_stops(annotated_local, X, 0.0, 0.2)
    assert_stops(annotated_local, X, 0.2, 0.0)


def test_a_result_has_the_size_that_its_annotation_says() -> None:
    @relay
    def above(x: Tensor[Float, (N,)], limit: Float) -> Tensor[Float, (N,)]:
        return x[x > limit]

    @relay
    def size_alone(x: Tensor[Float, (N,)], limit: Float):
        return relay.zeros(above(x, limit).shape[0])

    assert both(above, X, 0.0).shape == both(size_alone, X, 0.0).shape == (5,)
    assert_stops(above, X, 0.2)
    assert_stops(size_alone, X, 0.2)


def test_what_a_size_is_taken_from_is_evaluated() -> None:
    @relay
    def noted(x: Tensor[Float, (N,)], cell: Ref[Int]):
        cell.value = cell.value + 1
        return x

    @relay
    def selected(x: Tensor[Float, (N,)]):
        cell = relay.ref(0)
        sizes = relay.zeros(x[x > 0.5].shape[0]), relay.zeros(noted(x, cell).shape[0])
        return sizes, cell.value

    (some, every), count = both(selected, X)
    assert (some.shape, every.shape, count) == ((4,), (5,), 1)


@pytest.mark.parametrize(
    "function", [pairs, matched, added, called, assumed, kept, annotated_local]
)
def test_comparisons_are_not_written_in_python_and_come_back(function: Any, tmp_path: Path) -> None:
    assert "equal_sizes" not in function.show("python")
    assert_reads_back(function.module, function.__name__, tmp_path)


def test_gradients_go_through_compared_sizes() -> None:
    @relay
    def product(x: Tensor[Float, (N,)], low: Float, high: Float) -> Float:
        return (x[x > low] * x[x > high]).sum()

    gradient = relay.grad(product, wrt="x")
    torch.testing.assert_close(gradient(X, 0.2, 0.5), torch.where(X > 0.2, 2 * X, 0.0))
    with pytest.raises(RunError):
        gradient(X, 0.2, 0.65)


# What runs more than once.


def refused(function: Any) -> str:
    with pytest.raises(CheckError) as caught:
        function.check()
    return str(caught.value)


def test_a_local_function_that_finds_a_size_is_called_once() -> None:
    @relay
    def once(x: Tensor[Float, (N,)]):
        def above(limit: Float):
            return x[x > limit]

        y = above(0.5)
        return y, relay.zeros(y.shape[0])

    @relay
    def twice(x: Tensor[Float, (N,)]):
        def above(limit: Float):
            return x[x > limit]

        return above(0.2) + above(0.5)

    value, zeros = both(once, X)
    assert value.shape == zeros.shape
    assert "RL223" in refused(twice)


def test_a_global_function_that_finds_a_size_is_not_passed_on() -> None:
    @relay
    def above(x: Tensor[Float, (N,)]):
        return x[x > 0.5]

    @relay
    def mapped(x: Tensor[Float, (N,)]):
        from_all = relay.map(above, [x, x * 0.5])
        return from_all[0] + from_all[1]

    assert "RL223" in refused(mapped)


@dataclass(frozen=True)
class Part:
    """A tensor with a size of its own."""

    x: Tensor[Float, (K,)]


def test_lists_of_different_sizes_are_refused_and_those_of_records_are_not() -> None:
    @relay
    def parts(x: Tensor[Float, (N,)]):
        found = [Part(x[x > limit]) for limit in [0.2, 0.7]]
        first, second = found[0].x, found[1].x
        return (first, second), (relay.zeros(first.shape[0]), relay.zeros(second.shape[0]))

    values, zeros = both(parts, X)
    assert [v.shape for v in values] == [z.shape for z in zeros] == [(4,), (2,)]

    @relay
    def listed(x: Tensor[Float, (N,)]):
        found = [x[x > limit] for limit in [0.2, 0.7]]
        return found[0] + found[1]

    assert "RL223" in refused(listed)


@pytest.mark.parametrize("times", [0, 1, 3])
def test_recursion_may_change_a_size_that_its_annotation_leaves_open(times: int) -> None:
    @relay
    def halved(x: Tensor[Float, (N,)], times: Int) -> Tensor[Float, (Any,)]:
        if times == 0:
            return x
        y = halved(x[x > 0.5] * 0.9, times - 1)
        return relay.cat([y, relay.zeros(y.shape[0]), x])

    @relay
    def total(x: Tensor[Float, (N,)], times: Int) -> Float:
        return halved(x * x, times).sum()

    found = both(halved, X, times)
    assert found.shape == reference(X, times).shape
    x = X.clone().requires_grad_()
    reference(x * x, times).sum().backward()
    torch.testing.assert_close(relay.grad(total, wrt="x")(X, times), x.grad)


def reference(x: torch.Tensor, times: int) -> torch.Tensor:
    if times == 0:
        return x
    y = reference(x[x > 0.5] * 0.9, times - 1)
    return torch.cat([y, torch.zeros(y.shape[0]), x])
