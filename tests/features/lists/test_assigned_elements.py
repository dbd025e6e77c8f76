"""Elements of lists are assigned after they were read; what was read stays as it was."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch

from pyrelay import CheckError, Float, Int, Tensor, relay

Pair = Tensor[Float, (2,)]


def bubble_sorted(args: list[Float]) -> list[Float]:
    xs = list(args)
    for i in range(len(xs)):
        for j in range(len(xs) - 1 - i):
            if xs[j] > xs[j + 1]:
                held = xs[j]
                xs[j] = xs[j + 1]
                xs[j + 1] = held
    return xs


def insertion_sorted(xs: list[Float]) -> list[Float]:
    xs = list(xs)
    for i in range(1, len(xs)):
        key = xs[i]
        j = i - 1
        while j >= 0 and xs[j] > key:
            xs[j + 1] = xs[j]
            j -= 1
        xs[j + 1] = key
    return xs


def kept_elsewhere(args: list[Float]) -> list[Float]:
    memory = args[:]
    kept = []
    for i in range(3):
        kept.append(memory[i])
        memory[i] = 10.0 * i
        memory[i] += 1.0
        kept.append(memory[i])
    return kept


def copied_twice(args: list[Float]) -> list[Float]:
    first = sorted(args)
    second = first[1:] + first
    largest = first[-1]
    first[-1] = 0.0
    second[0] = largest
    return [*first, *second, largest]


PROGRAMS = pytest.mark.parametrize(
    "program", [bubble_sorted, insertion_sorted, kept_elsewhere, copied_twice]
)


@PROGRAMS
def test_what_was_read_of_a_list_is_not_changed_by_an_assignment(
    program: Callable[..., list[float]],
) -> None:
    given = [3.0, 1.0, 2.5, -1.0]
    expected = program(list(given))
    function = relay(program)
    assert [float(x) for x in function(given)] == expected
    assert [float(x) for x in function.interpret(given)] == expected
    assert given == [3.0, 1.0, 2.5, -1.0]


@relay
def weighted(args: list[Float]) -> Float:
    xs = bubbles(args)
    return sum(x * i for i, x in enumerate(xs))


bubbles = relay(bubble_sorted)


def test_gradients_follow_exchanged_elements() -> None:
    assert list(relay.grad(weighted)([3.0, 1.0, 2.5])) == [2.0, 0.0, 1.0]


@relay
def counted(n: Int) -> tuple[Int, Int]:
    counts = [i for i in range(n)]  # noqa: C416  the case
    same = list(range(n))
    first, second = counts[0], same[1]
    counts[0] += 3
    same[1] += 4
    return first + second, counts[0] + same[1]


@relay
def rows(n: Int) -> list[Pair]:
    found: list[Pair] = []
    for _ in range(n):
        row = relay.zeros((2,))
        found.append(row)
    found[0] += 1.0
    return found


def test_elements_that_nothing_else_holds_are_changed_where_they_are() -> None:
    assert counted(3) == (1, 8)
    first, second = rows(2)
    assert first.tolist() == [1.0, 1.0]
    assert second.tolist() == [0.0, 0.0]


def element_that_is_written(args: list[Pair]) -> Pair:
    xs = list(args)
    first = xs[0]
    first[0] = 5.0
    return xs[0]


def list_under_two_names(args: list[Float]) -> Float:
    xs = list(args)
    ys = xs
    xs[0] = 5.0
    return ys[0]


def list_of_the_caller(args: list[Float]) -> Float:
    args[0] = 5.0
    return args[0]


def element_that_is_multiplied_where_it_is(args: list[Pair]) -> Pair:
    xs = list(args)
    first = xs[0]
    xs[0] *= 2.0
    return first


def tensor_with_a_name_of_its_own(args: list[Pair]) -> Pair:
    row = relay.zeros((2,))
    xs = [row, args[0]]
    xs[0] += 2.0
    return row


def tensor_in_two_places(args: list[Pair]) -> Pair:
    row = relay.zeros((2,))
    xs = [row, row]
    xs[0] += 2.0
    return xs[1]


@pytest.mark.parametrize(
    ("program", "message"),
    [
        (tensor_with_a_name_of_its_own, "an item of `xs` may have an alias"),
        (tensor_in_two_places, "an item of `xs` may have an alias"),
        (element_that_is_written, "the tensor in `first` may have an alias"),
        (list_under_two_names, "the list in `xs` may have an alias"),
        (list_of_the_caller, "the list in `args` may have an alias"),
        (element_that_is_multiplied_where_it_is, "an item of `xs` may have an alias"),
    ],
)
def test_what_python_would_change_under_another_name_is_refused(
    program: Callable[..., object], message: str
) -> None:
    with pytest.raises(CheckError, match=message):
        relay(program).check()


def test_a_function_that_is_called_as_a_builtin_is_looks_like_it_no_longer() -> None:
    list = relay(_same)  # noqa: A001  the case

    @relay
    def written(x: Tensor[Float, (3,)]) -> Tensor[Float, (3,)]:
        y = list(x)
        first = y[0:1]
        y[0] = 5.0
        return first

    with pytest.raises(CheckError, match="the tensor in `y`"):
        written(torch.ones(3))


def _same(x: Tensor[Float, (3,)]) -> Tensor[Float, (3,)]:
    return x


@relay
def executed(code: list[Int], args: list[Float]) -> Float:
    """Even numbers load, odd ones store."""
    memory = list(args)
    stack: list[Float] = []
    for word in code:
        if word % 2 == 0:
            stack.append(memory[word // 2])
        else:
            memory[word // 2] = stack.pop() * 2.0
    return stack[-1]


def test_the_memory_of_a_machine_is_a_list() -> None:
    assert executed([0, 3, 2], [1.5, 0.0]) == 3.0
    slope = relay.grad(executed, wrt="args")
    assert slope([0, 3, 2], [1.5, 0.0]).to_list() == [2.0, 0.0]


def test_elements_of_a_copy_are_assigned() -> None:
    @relay
    def exchanged(xs: list[Float]) -> list[Float]:
        xs = xs.copy()
        xs[0], xs[1] = xs[1], xs[0]
        return xs

    assert exchanged([1.0, 2.0]).to_list() == [2.0, 1.0]


def test_several_elements_are_assigned_one_number() -> None:
    @relay
    def sieve(n: int) -> list[int]:
        prime = [True] * (n + 1)
        prime[0] = prime[1] = False
        for p in range(2, n + 1):
            if prime[p]:
                for multiple in range(p * p, n + 1, p):
                    prime[multiple] = False
        return [i for i, is_prime in enumerate(prime) if is_prime]

    assert sieve(20).to_list() == sieve.__wrapped__(20)

    @relay
    def ends(n: int):
        x = relay.zeros(n)
        x[0] = x[-1] = 1.0
        return x

    assert ends(3).tolist() == [1.0, 0.0, 1.0]


def test_rows_that_several_elements_get_are_not_changed() -> None:
    @relay
    def rows(n: int):
        table = [[0.0] * n, [0.0] * n]
        table[0] = table[1] = [1.0] * n
        table[0][0] = 5.0
        return table[1]

    with pytest.raises(CheckError) as caught:
        rows.check()
    assert caught.value.codes[-1] == "RL174"
