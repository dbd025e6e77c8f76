"""Slices mean what they mean in Python, at every size, with types that say so."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

from pyrelay import Dim, Float, Int, Tensor, relay
from pyrelay.diagnostics.diagnostic import RunError

N = Dim("N")


def differences(x: Tensor[Float, (N,)]):
    return (x[1:] - x[:-1]) * x[1:]


def parts(x: Tensor[Float, (N,)]):
    return relay.cat([x[5:], x[:2] * 2.0, x[1:-1], x[-3:], x[::2], x[-2::-2], x[3:1], x[2:6]])


def halves(x: Tensor[Float, (N,)]):
    n = x.shape[0]
    return relay.cat([x[n // 2 :] * 2.0, x[: n // 2], x[: n + 3 : 3], x[1:][1:], x[1:][:3]])


def written(x: Tensor[Float, (N,)]):
    y = x * 1.0
    y[4:] = 0.5
    y[:-2] += 1.0
    return y * x


PROGRAMS: tuple[Callable[..., Any], ...] = (differences, parts, halves, written)


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda f: f.__name__)
def test_a_slice_of_any_size_is_pythons(program: Callable[..., Any]) -> None:
    compiled = relay(program)

    @relay
    def total(x: Tensor[Float, (N,)]) -> Float:
        y = compiled(x)
        return (y * y).sum()

    for size in range(8):
        x = torch.randn(size, generator=torch.Generator().manual_seed(size))
        leaf = x.clone().requires_grad_()
        expected = in_torch(program, leaf)
        torch.testing.assert_close(compiled(x), expected.detach())
        torch.testing.assert_close(compiled.interpret(x), expected.detach())
        (gradient,) = torch.autograd.grad((expected * expected).sum(), leaf)
        torch.testing.assert_close(relay.grad(total)(x), gradient)


def in_torch(program: Callable[..., Any], x: torch.Tensor) -> torch.Tensor:
    """Run the text of a program over torch, which has no negative steps."""
    if program is parts:
        backwards = x[: max(len(x) - 1, 0)].flip(0)[::2]
        return torch.cat([x[5:], x[:2] * 2.0, x[1:-1], x[-3:], x[::2], backwards, x[3:1], x[2:6]])
    if program is halves:
        n = len(x)
        return torch.cat([x[n // 2 :] * 2.0, x[: n // 2], x[: n + 3 : 3], x[1:][1:], x[1:][:3]])
    return program(x)


def test_the_type_of_a_slice_says_what_python_does() -> None:
    @relay
    def rest(x: Tensor[Float, (N,)]):
        return x[1:]

    @relay
    def fewer(x: Tensor[Float, (N,)]) -> Tensor[Float, (N - 1,)]:
        return x[1:]

    @relay
    def together(x: Tensor[Float, (N,)]):
        return relay.cat([x[:1], x[1:]]) + x

    assert rest.type == "(x: Tensor[Float, (N,)]) -> Tensor[Float, (max(N - 1, 0),)]"
    assert fewer.type == "(x: Tensor[Float, (N,)]) -> Tensor[Float, (N - 1,)] where N >= 1"
    assert together.type == "(x: Tensor[Float, (N,)]) -> Tensor[Float, (N,)]"
    with pytest.raises(RunError, match="needs N >= 1"):
        fewer(torch.zeros(0))


def test_a_size_counts_from_the_end_where_it_is_negative() -> None:
    @relay
    def last_half(x: Tensor[Float, (N,)]):
        return x[-(x.shape[0] // 2) :]

    assert last_half.type.endswith("Tensor[Float, (N // 2,)] where N // 2 >= 1")
    assert last_half(torch.arange(5.0)).tolist() == [3.0, 4.0]
    with pytest.raises(RunError, match="needs N // 2 >= 1"):
        last_half(torch.arange(1.0))


def test_a_bound_that_only_the_program_knows_is_pythons_too() -> None:
    @relay
    def between(x: Tensor[Float, (N,)], i: Int, j: Int):
        return x[i:j] * 2.0

    @relay
    def last(x: Tensor[Float, (N,)], k: Int) -> Float:
        return x[-k:].sum()

    x = torch.arange(5.0)
    for i in range(-7, 8):
        for j in range(-7, 8):
            assert between(x, i, j).tolist() == (x[i:j] * 2.0).tolist()
            assert between.interpret(x, i, j).tolist() == (x[i:j] * 2.0).tolist()
    for k in range(-6, 7):
        assert last(x, k) == x[-k:].sum()
        expected = torch.zeros(5)
        expected[-k:] = 1.0
        assert torch.equal(relay.grad(last)(x, k), expected)


def test_an_integer_index_out_of_range_stops_at_its_line() -> None:
    @relay
    def pick(x: Tensor[Float, (N,)], i: Int) -> Float:
        return x[i]

    assert pick(torch.arange(3.0), -3) == 0.0
    for i in (3, -4):
        with pytest.raises(RunError) as caught:
            pick(torch.arange(3.0), i)
        assert caught.value.codes == ("RL502",)
        assert "return x[i]" in str(caught.value)


def test_a_local_function_gives_a_size_unless_it_calls_itself() -> None:
    @relay
    def first_half(x: Tensor[Float, (N,)]):
        def half():
            return x.shape[0] // 2

        return x[: half()]

    @relay
    def countdown(n: Int) -> Int:
        def steps(k: Int):
            return 0 if k == 0 else steps(k - 1) + 1

        return steps(n)

    assert first_half.type == "(x: Tensor[Float, (N,)]) -> Tensor[Float, (N // 2,)]"
    assert first_half(torch.arange(5.0)).tolist() == [0.0, 1.0]
    assert int(countdown(4)) == 4
