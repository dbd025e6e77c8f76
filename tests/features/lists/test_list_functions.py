"""Lists and tensors that functions return are changed only where that changes no other value."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import pytest
import torch

from pyrelay import CheckError, Float, Fn, Tensor, relay
from pyrelay.prelude import foldl, hd

Pair = Tensor[Float, (2,)]


@dataclass(frozen=True)
class Box:
    """A list in a field."""

    xs: list[Float]


@dataclass(frozen=True)
class Held:
    """A tensor in a field."""

    x: Pair


@relay
def same(xs: list[Float]):
    """Return the list itself."""
    return xs


@relay
def under_another_name(xs: list[Float]):
    """Return the list itself, as a local name."""
    ys = xs
    return ys  # noqa: RET504  what is tested


@relay
def one_of(first: bool, xs: list[Float], ys: list[Float]):
    """Return one of two lists."""
    return xs if first else ys


@relay
def unboxed(box: Box):
    """Return the list in a field."""
    return box.xs


@relay
def boxed(xs: list[Float]):
    """Return a value that holds the list."""
    return Box(xs)


@relay
def first_row(rows: list[list[Float]]):
    """Return a list that another holds."""
    return rows[0]


@relay
def applied(f: Fn[[list[Float]], list[Float]], xs: list[Float]):
    """Return what a function makes of a list."""
    return f(xs)


@relay
def tensor_itself(x: Pair):
    """Return the tensor itself."""
    return x


@relay
def twice_the_same(x: Pair):
    """Return one new tensor in two places."""
    y = x + 1.0
    return y, y


def appended_to_the_result(x: Float) -> Float:
    xs = [x]
    ys = same(xs)
    ys.append(x)
    return sum(xs)


def appended_to_the_argument(x: Float) -> Float:
    xs = [x]
    ys = same(xs)
    xs.append(x)
    return sum(ys)


def from_a_local_name(x: Float) -> Float:
    xs = [x]
    ys = under_another_name(xs)
    ys.append(x)
    return sum(xs)


def one_of_two(x: Float) -> Float:
    xs = [x]
    ys = one_of(x > 0.0, xs, [x, x])
    ys.append(x)
    return sum(xs)


def out_of_a_field(x: Float) -> Float:
    box = Box([x])
    ys = unboxed(box)
    ys.append(x)
    return sum(box.xs)


def into_a_field(x: Float) -> Float:
    xs = [x]
    box = boxed(xs)
    xs.append(x)
    return sum(box.xs)


def out_of_a_list(x: Float) -> Float:
    xs = [x]
    ys = first_row([xs])
    ys.append(x)
    return sum(xs)


def by_a_function_value(x: Float) -> Float:
    xs = [x]
    ys = applied(same, xs)
    ys.append(x)
    return sum(xs)


def of_a_closure(x: Float) -> Float:
    xs = [x]

    def captured():
        return xs

    ys = captured()
    ys.append(x)
    return sum(xs)


def in_a_comprehension(x: Float) -> Float:
    xs = [x]
    rows = [xs for _ in range(2)]
    xs.append(x)
    return sum(rows[0])


def repeated(x: Float) -> Float:
    xs = [x]
    rows = [xs] * 2
    xs.append(x)
    return sum(rows[0])


def joined(x: Float) -> Float:
    xs = [x]
    rows = [[x]] + [xs]  # noqa: RUF005  what is tested
    xs.append(x)
    return sum(rows[1])


def the_longest(x: Float) -> Float:
    xs = [x, x]
    ys = max([xs, [x]], key=lambda v: len(v))
    ys.append(x)
    return sum(xs)


def the_first(x: Float) -> Float:
    rows = [[x], [x]]
    ys = hd(rows)
    ys.append(x)
    return sum(rows[0])


def folded(x: Float) -> Float:
    xs = [x]
    ys = foldl(lambda kept, _: kept, xs, [x, x])
    ys.append(x)
    return sum(xs)


def in_a_cell(x: Float) -> Float:
    xs = [x]
    cell = relay.ref(xs)
    xs.append(x)
    return sum(cell.value)


def stored_by_a_function(x: Float) -> Float:
    xs = [x]
    cell = relay.ref([x])

    def put(zs: list[Float]) -> Float:
        cell.value = zs
        return 0.0

    if put(xs) > 1.0:
        return x
    xs.append(x)
    return sum(cell.value)


def stored_in_each_round(x: Float) -> Float:
    xs = [x]
    cell = relay.ref([x])

    def put(zs: list[Float]) -> Float:
        cell.value = zs
        return 0.0

    for _ in range(3):
        xs.append(x)
        put(xs)
    return sum(cell.value)


def captured_by_a_pattern(x: Float) -> Float:
    xs = [x]
    match (xs, 1):
        case (ys, _):
            xs.append(x)
            return sum(ys)


def run_over(x: Float) -> Float:
    xs = [x, x]
    for v in xs:
        if v > 2.0:
            xs.append(v)
    return sum(xs)


LISTS = [
    appended_to_the_result,
    appended_to_the_argument,
    from_a_local_name,
    one_of_two,
    out_of_a_field,
    into_a_field,
    out_of_a_list,
    by_a_function_value,
    of_a_closure,
    in_a_comprehension,
    repeated,
    joined,
    the_longest,
    the_first,
    folded,
    in_a_cell,
    stored_by_a_function,
    stored_in_each_round,
    captured_by_a_pattern,
    run_over,
]


def tensor_of_a_function(x: Pair) -> Pair:
    y = x + 1.0
    z = tensor_itself(y)
    z[0] = 9.0
    return y


def tensor_of_a_closure(x: Pair) -> Pair:
    y = x + 1.0

    def captured():
        return y

    z = captured()
    z[0] = 9.0
    return y


def tensor_in_a_field(x: Pair) -> Pair:
    y = x + 1.0
    held = Held(y)
    y[0] = 9.0
    return held.x


def tensor_in_a_comprehension(x: Pair) -> Pair:
    y = x + 1.0
    ys = [y for _ in range(2)]
    y[0] = 9.0
    return ys[0]


def tensor_in_a_joined_list(x: Pair) -> Pair:
    y = x + 1.0
    ys = [x] + [y]  # noqa: RUF005  what is tested
    y[0] = 9.0
    return ys[1]


def largest_tensor(x: Pair) -> Pair:
    y = x + 1.0
    z = max([y, x], key=lambda v: v[0])
    z[0] = 9.0
    return y


def tensor_twice_in_a_result(x: Pair) -> Pair:
    y, z = twice_the_same(x)
    y[0] = 9.0
    return z


TENSORS = [
    tensor_of_a_function,
    tensor_of_a_closure,
    tensor_in_a_field,
    tensor_in_a_comprehension,
    tensor_in_a_joined_list,
    largest_tensor,
    tensor_twice_in_a_result,
]


@pytest.mark.parametrize("function", LISTS)
def test_a_list_that_a_name_may_share_is_not_changed(function: Callable[..., Float]) -> None:
    with pytest.raises(CheckError, match=r"the list in `\w+` may have an alias"):
        relay(function).check()


@pytest.mark.parametrize("function", TENSORS)
def test_a_tensor_that_a_name_may_share_is_not_written(function: Callable[..., Pair]) -> None:
    with pytest.raises(CheckError, match=r"the tensor in `\w+` may have an alias"):
        relay(function).check()


def bound_by_a_pattern(x: Float) -> Float:
    match Box([x, 2.0]):
        case Box(ys):
            ys.append(3.0)
            return ys[0]


def test_a_list_that_a_pattern_binds_is_changed_under_another_name() -> None:
    with pytest.raises(CheckError, match="`ys` here, which is appended to elsewhere"):
        relay(bound_by_a_pattern).check()


@relay
def copied(xs: list[Float]):
    """Return a copy of a list."""
    return list(xs)


@relay
def counted_up(n: int, x: Float) -> list[Float]:
    """Return a list that each call lengthens."""
    if n == 0:
        return [x]
    rest = counted_up(n - 1, x)
    rest.append(x)
    return rest


@relay
def collected(n: int, found: list[Float]) -> list[Float]:
    """Lengthen the list that a call passes on, which it has copied."""
    if n == 0:
        return found + [1.0]  # noqa: RUF005  the copy
    found = collected(n - 1, found)
    found.append(2.0)
    return found


@relay
def with_positive(xs: list[Float], v: Float) -> list[Float]:
    """Return a longer list, or the list itself."""
    if v > 0.0:
        return xs + [v]  # noqa: RUF005  the copy
    return xs


@relay
def evens(n: int) -> list[Float]:
    """Return a list by mutual recursion."""
    if n == 0:
        return []
    found = odds(n - 1)
    found.append(1.0 * n)
    return found


@relay
def odds(n: int) -> list[Float]:
    """Return a list by mutual recursion."""
    if n == 0:
        return []
    found = evens(n - 1)
    found.append(-1.0 * n)
    return found


@relay
def cell(x: Pair, h: Pair):
    """Return two new tensors."""
    new = relay.tanh(x + h)
    return new, new * 2.0


def result_under_the_same_name(x: Float) -> Float:
    xs = [x]
    xs.append(x)
    xs = same(xs)
    xs.append(x)
    return sum(xs)


def copies_and_originals(x: Float) -> Float:
    xs = [x]
    ys, zs = copied(xs), list(xs)
    ys.append(x)
    xs.append(x)
    zs.append(x)
    xs.append(x)
    return sum(xs) + 10.0 * sum(ys) + 100.0 * sum(zs)


def recursive_results(x: Float) -> Float:
    xs = counted_up(3, x)
    xs.append(x)
    ys = collected(3, xs)
    ys.append(x)
    zs = evens(5)
    zs.append(x)
    return sum(xs) + 10.0 * sum(ys) + 100.0 * sum(zs)


def recursive_local_results(x: Float) -> Float:
    def made(n: int):
        if n == 0:
            return [x]
        rest = made(n - 1)
        rest.append(x)
        return rest

    xs = made(3)
    xs.append(x)
    return sum(xs)


def carried_by_a_loop(x: Float) -> Float:
    found = [x]
    for _ in range(3):
        found = with_positive(found, x)
        found.append(x)
    return sum(found)


HARMLESS = [
    (result_under_the_same_name, 3.0),
    (copies_and_originals, 3.0 + 20.0 + 200.0),
    (recursive_results, 5.0 + 130.0 + 400.0),
    (recursive_local_results, 5.0),
    (carried_by_a_loop, 7.0),
]


@pytest.mark.parametrize(("function", "expected"), HARMLESS)
def test_a_list_that_no_other_name_shares_is_changed(
    function: Callable[..., Float], expected: float
) -> None:
    assert float(relay(function)(1.0)) == expected


@relay
def written(x: Pair) -> Pair:
    """Write into what a function has computed anew, and into what it was given."""
    h = x * 0.0
    for _ in range(2):
        h, y = cell(x, h)
        h[0] = 1.0
        y[1] = 5.0
    return h


def test_a_tensor_that_a_function_computes_is_written() -> None:
    x = torch.tensor([1.0, 2.0])
    h = torch.tanh(x + torch.tensor([1.0, float(torch.tanh(x)[1])]))
    assert torch.allclose(written(x), torch.tensor([1.0, float(h[1])]))
