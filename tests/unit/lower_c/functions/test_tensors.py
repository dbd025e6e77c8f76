"""Loops over tensors in C: kernels called from C, tensors that loops carry."""

from __future__ import annotations

import pytest
import torch

from benchmarks.cases.loops import kalman as plain_kalman
from benchmarks.cases.loops import viterbi
from pyrelay import Dim, Float, Int, Tensor, options, relay
from tests.unit.lower_c.functions.compared import counted

pytestmark = pytest.mark.host("lowerings are chosen here")

N, S, K = Dim("N"), Dim("S"), Dim("K")
Vector = Tensor[Float, (S,)]
kalman = relay(plain_kalman)


@relay
def mixed(n: Int, x: Tensor[Float, (16,)]) -> tuple[Float, Tensor[Float, (16,)]]:
    s = 0.0
    y = x * 1.5
    for i in range(n):
        y[i % 16] = y[i % 16] * 0.5 + s
        s = s * 0.25 + y[(i * 7) % 16]
    return s, y


@relay
def turned(
    n: Int, x: Tensor[Float, (S,)], y: Tensor[Float, (S,)], z: Tensor[Float, (S,)]
) -> tuple[Tensor[Float, (S,)], Tensor[Float, (S,)], Tensor[Float, (S,)]]:
    for i in range(n):
        x, y, z = y, z, x
        if i % 3 == 1:
            x = x + y
    return x, y, z


@relay
def nested(n: Int, x: Tensor[Float, (S, K)]) -> Tensor[Float, (K,)]:
    total = relay.sum(x, dim=0)
    for i in range(n):
        row = total
        for j in range(i):
            row = relay.tanh(row + x[(i + j) % 3])
            if j == 5:
                break
        total = total * 0.5 + row
    return total


@relay
def products(
    n: Int, x: Tensor[Float, (S, K)], w: Tensor[Float, (K, K)]
) -> tuple[Tensor[Float, (S, K)], Tensor[Float, (K, K)]]:
    for _ in range(n):
        for _ in range(3):
            x = relay.tanh(relay.linear(x, w) + x @ w)
        w = w * 0.5 + 0.1 * relay.linear(w, w)
    return x, w


@relay
def steps(x: Tensor[Float, (S,)], limit: Float) -> Int:
    count = 0
    while relay.sum(x * x) > limit:
        x = x * 0.9
        count += 1
    return count


@relay
def row_sum(x: Tensor[Float, (K,)], n: Int) -> Float:
    s = 0.0
    for i in range(n):
        s += x[i]
    return s


@relay
def calling(x: Tensor[Float, (S, K)], n: Int) -> Float:
    best = -1000.0
    for i in range(n):
        best = relay.maximum(best, row_sum(x[i], 3))
    return best


@relay
def weighted(n: Int, x: Tensor[Float, (3,)]) -> Tensor[Float, (3,)]:
    for _ in range(n):
        x = x * relay.tensor([0.5, 1.0, 2.0]) + 1.0
    return x


@relay
def settled(x: Tensor[Float, (S,)], a: Tensor[Float, (S,)], rounds: Int) -> Tensor[Float, (S,)]:
    if rounds == 0:
        return x
    following = 0.5 * relay.cos(x) + a
    if relay.amax(abs(following - x)) < 1e-5:
        return following
    return settled(following, a, rounds - 1)


@relay
def ahead(x: Tensor[Float, (S,)], rounds: Int) -> Tensor[Float, (S,)]:
    if rounds == 0:
        return x
    return behind(relay.tanh(x), rounds - 1)


@relay
def behind(x: Tensor[Float, (S,)], rounds: Int) -> Tensor[Float, (S,)]:
    return ahead(x * 0.5, rounds)


def agree(function, *args) -> None:
    before = [a.clone() if isinstance(a, torch.Tensor) else a for a in args]
    with options(lowering="torch"):
        expected = function(*args)
    for _ in range(2):
        with options(lowering="c"), counted() as ran:
            found = function(*args)
        assert ran, "C did not run"
        torch.testing.assert_close(found, expected, rtol=1e-5, atol=1e-5)
    for value, kept in zip(args, before, strict=True):
        if isinstance(value, torch.Tensor):
            assert torch.equal(value, kept), "an argument has changed"


def numbers(*shape: int) -> torch.Tensor:
    generator = torch.Generator().manual_seed(sum(shape) + len(shape))
    return torch.randn(shape, generator=generator)


@pytest.mark.parametrize(("length", "states"), [(0, 3), (1, 1), (30, 5), (40, 33)])
def test_the_best_path_is_found_for_any_sizes(length: int, states: int) -> None:
    seen = torch.arange(length) % 7
    agree(viterbi, seen, numbers(states, states), numbers(states, 7), numbers(states))


def test_products_of_matrices_are_carried() -> None:
    for n in (0, 1, 2, 9):
        agree(kalman, n, numbers(4, 4) * 0.4, numbers(4, 4).abs(), torch.eye(4))


@pytest.mark.parametrize("rows", [1, 16, 33])
def test_operands_are_packed_for_each_loop_in_which_they_stay(rows: int) -> None:
    agree(products, 3, numbers(rows, 70), numbers(70, 70) * 0.1)


def test_items_are_assigned_and_arguments_stay() -> None:
    for n in (0, 1, 20, 50):
        agree(mixed, n, numbers(16))


def test_tensors_change_places_from_round_to_round() -> None:
    for n in range(9):
        agree(turned, n, numbers(4), numbers(4) + 1.0, numbers(4) + 2.0)


def test_loops_lie_in_loops() -> None:
    for n in (0, 1, 4, 12):
        agree(nested, n, numbers(3, 5))


def test_values_of_tensors_end_a_loop() -> None:
    agree(steps, numbers(10), torch.tensor(0.01))


def test_functions_of_tensors_call_each_other() -> None:
    agree(calling, numbers(6, 4), 6)


@pytest.mark.parametrize("rounds", [0, 1, 2, 50])
def test_a_function_of_tensors_that_calls_itself_last_is_a_loop(rounds: int) -> None:
    agree(settled, numbers(7), numbers(7), rounds)


def test_functions_of_tensors_that_call_each_other_last_run_on_the_host() -> None:
    x = numbers(5)
    with options(lowering="c"):
        found = ahead(x, 9)
        assert "call each other in tail position" in ahead.explain()
    with options(lowering="torch"):
        torch.testing.assert_close(found, ahead(x, 9))


def test_constant_tensors_are_part_of_the_text() -> None:
    agree(weighted, 3, numbers(3))


def test_operands_that_lie_anyhow_are_taken() -> None:
    table = numbers(14, 10)
    agree(viterbi, (torch.arange(40) % 7)[::2], table[:5, :5].T, table[5:10, :7], table[0, ::2])


def test_many_sizes_are_met_by_one_text() -> None:
    for states in range(1, 12):
        agree(
            viterbi, torch.arange(3), numbers(states, states), numbers(states, 3), numbers(states)
        )


def test_an_index_that_does_not_exist_is_the_error_of_host_code() -> None:
    operands = (torch.tensor([0, 99]), numbers(3, 3), numbers(3, 7), numbers(3))
    with pytest.raises(Exception, match="RL502"), options(lowering="torch"):
        viterbi(*operands)
    with pytest.raises(Exception, match="RL502"), options(lowering="c"):
        viterbi(*operands)


def test_long_loops_take_the_memory_of_one_round() -> None:
    with options(lowering="c"), counted() as ran:
        found = kalman(100_000, torch.eye(4) * 0.5, torch.eye(4), torch.eye(4))
    assert ran == ["relay_kalman"]
    torch.testing.assert_close(found, torch.eye(4) / 0.75)


def test_what_is_no_tensor_in_memory_of_the_host_goes_past_c() -> None:
    class Own(torch.Tensor):
        pass

    operand = numbers(10).as_subclass(Own)
    with options(lowering="c"), counted() as ran:
        steps(operand, torch.tensor(0.01))
    assert ran == []


@relay
def walk(key: Tensor[Int, (2,)], field: Tensor[Float, (N, N)], turns: int) -> Tensor[Float, (N, N)]:
    field = field.clone()
    for _ in range(turns):
        for i in range(len(field)):
            key, index_1 = relay.random_split(key)
            f_walk = field[i, (i + 1) % len(field)] * 0.5
            k_2 = relay.random.uniform(index_1, ())
            field[i, i] = 1.0 if k_2 < f_walk else -1.0
    return field


def test_names_of_values_differ_from_those_of_functions_and_kernels() -> None:
    agree(walk, relay.random.key(1), torch.rand(3, 3), 4)
