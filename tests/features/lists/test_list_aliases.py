"""What is put into a list or taken out of one is not changed while both may hold it."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch

from pyrelay import CheckError, Float, Tensor, relay

Pair = Tensor[Float, (2,)]


def list_popped_from_a_list(x: Float) -> Float:
    row = [x]
    rows = [row, row]
    popped = rows.pop()
    popped.append(x)
    return sum(rows[0])


def list_added_to_a_list(x: Float) -> Float:
    row = [x]
    rows = [[x]]
    rows += [row]
    row.append(x)
    rows.append([x])
    return sum(rows[1])


def list_taken_out_of_a_tuple(x: Float) -> Float:
    xs = [x]
    ys = (xs, x)[0]
    xs.append(x)
    return sum(ys)


def list_that_a_round_finds_under_another_name(x: Float) -> Float:
    xs = [x]
    xs.append(x)
    ys = [x]
    for _ in range(2):
        ys.append(x)
        ys = xs
    return sum(xs)


def list_with_an_alias_and_exchanged_elements(x: Float) -> Float:
    xs = [x, 2 * x]
    ys = xs
    xs[-1], xs[-2] = xs[-2], xs[-1]
    xs.append(x)
    return ys[0]


def list_stored_in_each_round(x: Float) -> Float:
    xs = [x]
    rows = [[x]]
    for _ in range(2):
        xs.append(x)
        xs[0] = 2 * x
        rows.append(xs)
    return sum(rows[1])


LISTS = [
    list_popped_from_a_list,
    list_added_to_a_list,
    list_taken_out_of_a_tuple,
    list_that_a_round_finds_under_another_name,
    list_with_an_alias_and_exchanged_elements,
    list_stored_in_each_round,
]


def tensor_popped_from_a_list(x: Pair) -> Pair:
    y = x + 1.0
    ys = [y, y]
    popped = ys.pop()
    popped[0] = 9.0
    return ys[0]


def tensor_appended_to_a_list(x: Pair) -> Pair:
    y = x + 1.0
    ys = [x]
    ys.append(y)
    y[0] = 9.0
    return ys[1]


def tensor_in_a_list_that_grows(x: Pair) -> Pair:
    y = x + 1.0
    ys = [y]
    ys.append(x)
    y[0] = 9.0
    return ys[0]


def tensors_that_extend_a_list(x: Pair) -> Pair:
    y = x + 1.0
    ys = [x]
    ys.extend([y])
    y[0] = 9.0
    return ys[1]


def tensor_assigned_to_an_element(x: Pair) -> Pair:
    y = x + 1.0
    ys = [x]
    ys.append(x)
    ys[0] = y
    y[0] = 9.0
    return ys[0]


def tensor_assigned_to_an_element_of_a_display(x: Pair) -> Pair:
    y = x + 1.0
    ys = [x, x]
    ys[0] = y
    y[0] = 9.0
    return ys[0]


def tensor_that_a_round_finds_under_another_name(x: Pair) -> Pair:
    y, z = x + 1.0, x + 2.0
    for _ in range(2):
        z[0] = 9.0
        z = y
    return y


def element_of_a_reversed_list(x: Pair) -> Pair:
    ys = [x + 1.0]
    for y in reversed(ys):
        y[0] = 9.0
    return ys[0]


def element_of_an_enumerated_list(x: Pair) -> Pair:
    ys = [x + 1.0]
    for _, y in enumerate(ys):
        y[0] = 9.0
    return ys[0]


TENSORS = [
    tensor_popped_from_a_list,
    tensor_appended_to_a_list,
    tensor_in_a_list_that_grows,
    tensors_that_extend_a_list,
    tensor_assigned_to_an_element,
    tensor_assigned_to_an_element_of_a_display,
    tensor_that_a_round_finds_under_another_name,
    element_of_a_reversed_list,
    element_of_an_enumerated_list,
]


@pytest.mark.parametrize("function", LISTS)
def test_a_list_that_another_value_may_hold_is_not_changed(function: Callable[..., Float]) -> None:
    with pytest.raises(CheckError, match=r"the list in `\w+` may have an alias"):
        relay(function).check()


@pytest.mark.parametrize("function", TENSORS)
def test_a_tensor_that_a_list_may_hold_is_not_written(function: Callable[..., Pair]) -> None:
    with pytest.raises(CheckError, match=r"the tensor in `\w+` may have an alias"):
        relay(function).check()


@relay
def exchanged(xs: list[Float]) -> list[Float]:
    """Sort a list by exchanging neighbours, and append its largest element once more."""
    found = list(xs)
    for last in range(len(xs) - 1, 0, -1):
        for i in range(last):
            if found[i] > found[i + 1]:
                found[i], found[i + 1] = found[i + 1], found[i]
    found.append(found[-1])
    return found


def test_elements_of_a_list_that_grows_are_exchanged_and_repeated() -> None:
    xs = [torch.tensor(v) for v in (3.0, 1.0, 2.0)]
    assert [float(x) for x in exchanged(xs)] == [1.0, 2.0, 3.0, 3.0]


@relay
def runs(xs: list[Float]) -> list[Float]:
    """Double the elements, pair by pair, in a buffer that is used again."""
    found = [xs[0]]
    buffer = [xs[0]]
    found.clear()
    for x in xs:
        buffer.clear()
        buffer.append(x)
        buffer.append(2 * x)
        buffer[0], buffer[1] = buffer[1], buffer[0]
        found.extend(buffer)
        found += buffer
    return found


def test_a_list_that_has_extended_another_is_changed_on() -> None:
    assert [float(x) for x in runs([torch.tensor(1.0), torch.tensor(3.0)])] == [
        *(2.0, 1.0, 2.0, 1.0),
        *(6.0, 3.0, 6.0, 3.0),
    ]


@relay
def records(xs: list[Float]) -> list[Float]:
    found = xs[:1]
    for x in xs:
        found.append(max(found))
        found.append(min(found, key=lambda v: abs(v - x)))
        if max(found) < x:
            found.append(x)
    return found


def test_an_element_that_is_chosen_is_not_its_list() -> None:
    values = [0.5, 2.0, -1.0, 3.0]
    assert [float(x) for x in records(values)] == records.__wrapped__(values)


def chosen_list(x: Float) -> Float:
    xs = [x]
    ys = [x, x]
    longest = max(xs, ys, key=lambda v: len(v))
    xs.append(x)
    return sum(longest)


def test_a_list_that_is_chosen_is_not_changed() -> None:
    with pytest.raises(CheckError, match=r"the list in `\w+` may have an alias"):
        relay(chosen_list).check()


@relay
def sorted_in_place(xs: list[Float], x: Tensor[Float, (2,)]) -> list[Float]:
    found = [v * 1.0 for v in xs]
    pair = x * 1.0
    for _ in range(len(found)):
        pair[0], pair[1] = pair[1] + 0.0, pair[0] + 0.0
        for i in range(len(found) - 1):
            if found[i] > found[i + 1]:
                found[i], found[i + 1] = found[i + 1], found[i]
    found[0] = found[-1]
    return [*found, pair[0]]


def test_elements_are_exchanged_in_loops() -> None:
    found = sorted_in_place([3.0, 1.0, 2.0], torch.tensor([5.0, 7.0]))
    assert [float(x) for x in found] == [3.0, 2.0, 3.0, 7.0]


@relay
def exchanged_twice(x: Float) -> Float:
    pair = [x, 2.0 * x]
    pair[0], pair[1] = pair[1], pair[0]
    pair[0], pair[1] = pair[1], pair[0]
    pair[1] = pair[0]
    pair[1] = pair[1] + 1.0
    return pair[0] * 10.0 + pair[1]


def test_elements_of_one_list_are_exchanged_again() -> None:
    assert exchanged_twice(1.0).item() == 12.0


def tensor_given_to_a_list(x: Tensor[Float, (2,)]) -> Float:
    row = x * 1.0
    rows = [x]
    rows[0], row[0] = row, 5.0
    return rows[0].sum()


def row_given_to_a_list(x: Tensor[Float, (2, 2)]) -> Float:
    table = x * 1.0
    rows = [x[0]]
    rows[0], table[0] = table[0], x[1]
    return rows[0].sum()


@pytest.mark.parametrize("function", [tensor_given_to_a_list, row_given_to_a_list])
def test_a_tensor_that_a_list_gets_is_not_changed_by_the_same_assignment(
    function: Callable[..., object],
) -> None:
    with pytest.raises(CheckError, match=r"the tensor in `\w+` may have an alias"):
        relay(function).check()
