"""Equations of sizes in functions that call themselves hold where a branch needs them."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from pyrelay import Dim, Float, Int, RunError, Tensor, relay

N, K = Dim("N"), Dim("K")


@relay
def folded(x: Tensor[Float, (N,)]) -> Float:
    if x.shape[0] > 1:
        half = x.shape[0] // 2
        return folded(x[:half] * x[half:])
    return relay.sum(x)


@relay
def added(x: Tensor[Float, (N,)], y: Tensor[Float, (K,)], n: Int) -> Float:
    if n > 0:
        return added(x + y, y, n - 1)
    return relay.sum(x) * relay.sum(y)


@pytest.mark.parametrize("n", [1, 2, 4, 16])
def test_a_function_halves_its_argument(n: int) -> None:
    x = torch.rand(n) + 0.5
    torch.testing.assert_close(folded(x), x.prod())
    torch.testing.assert_close(folded.interpret(x), x.prod())
    torch.testing.assert_close(relay.grad(folded)(x), x.prod() / x)


@pytest.mark.parametrize("n", [3, 6, 12])
def test_sizes_are_compared_at_each_call(n: int) -> None:
    for call in (folded, folded.interpret):
        with pytest.raises(RunError) as caught:
            call(torch.ones(n))
        assert caught.value.codes == ("RL508",)


def test_what_a_branch_needs_is_compared_where_it_is_taken() -> None:
    x, y = torch.ones(2), torch.ones(3)
    assert "where" not in added.type
    for call in (added, added.interpret):
        f: Any = call
        assert f(x, y, 0) == 6
        assert f(x, x, 3) == 16
        with pytest.raises(RunError, match="2 and 3"):
            f(x, y, 1)


def test_what_every_call_needs_is_still_found_at_the_entry() -> None:
    @relay
    def always(x: Tensor[Float, (N,)], y: Tensor[Float, (K,)], n: Int) -> Float:
        both = x + y
        if n > 0:
            return always(both, y, n - 1)
        return relay.sum(both)

    with pytest.raises(RunError):
        always(torch.ones(2), torch.ones(3), 0)


def test_the_text_says_which_equations_the_function_compares_itself() -> None:
    text = added.show()
    assert "where N == K ?" in text
    module = relay.parse(text)
    assert str(module) == text
    assert module["added"](torch.ones(2), torch.ones(3), 0) == 6
    again = relay.parse(module.to_json())
    assert str(again) == text
