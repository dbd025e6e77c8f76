"""Transforms of functions of texts look into the functions that are passed, and know policies and
derivatives of the user's own, as those of programs do."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

from pyrelay import CheckError, Dim, Float, Fn, Tensor, relay

N = Dim("N")
TEXT = relay.parse("""
type Pair[A] { Pair(A, A) }
def @apply(%f: fn (float32) -> float32, %x: float32) -> float32 { %f(%x) * %x }
def @twice[A](%f: fn (A) -> A, %x: A) -> A { %f(%f(%x)) }
def @swapped[A](%f: fn (A) -> A, %x: Pair[A]) -> Pair[A] {
  match (%x) { Pair(%a, %b) => Pair(%f(%b), %f(%a)) }
}
def @square(%x: float32) -> float32 { %x * %x }
def @square_fwd(%x: float32) -> (float32, float32) { (%x * %x, %x) }
def @square_bwd(%saved: float32, %g: float32) -> float32 { %g * 100.0 * %saved }
def @square_jvp(%x: (float32,), %d: (float32,)) -> (float32, float32) { (%x.0 * %x.0, %d.0 * 50.0) }
""")
factor = 3.0


@relay
def square(x: Float) -> Float:
    return x * x


@relay
def squares(x: Tensor[Float, (N,)]) -> Tensor[Float, (N,)]:
    return x * x


@relay
def times_factor(x: Float) -> Float:
    return x * factor


@relay
def apply(f: Fn[[Float], Float], x: Float) -> Float:
    return f(x) * x


@pytest.mark.parametrize("f", [square, TEXT["square"], relay.specialise(square)])
def test_each_transform_looks_into_what_is_passed(f: Any) -> None:
    taken = TEXT["apply"]
    assert float(relay.grad(taken, wrt="x")(f, 2.0)) == 12.0
    assert float(relay.grad(taken, wrt="x").interpret(f, 2.0)) == 12.0
    assert tuple(map(float, relay.value_and_grad(taken, wrt="x")(f, 2.0))) == (8.0, 12.0)
    value, pull = relay.vjp(taken, wrt="x")(f, 2.0)
    assert (float(value), float(pull(1.0))) == (8.0, 12.0)
    assert tuple(map(float, relay.jvp(taken, wrt="x")((f, 2.0), (1.0,)))) == (8.0, 12.0)
    assert float(relay.hvp(taken, wrt="x")((f, 2.0), (1.0,))) == 12.0
    for second in (relay.hessian, relay.jacfwd, relay.jacrev):
        assert float(second(taken, wrt="x")(f, 2.0)) == 12.0
    assert float(relay.linearize(taken, wrt="x")(f, 2.0)[1](2.0)) == 24.0
    mapped = relay.vmap(taken, in_axes=(None, 0))
    assert mapped(f, torch.tensor([2.0, 3.0])).tolist() == [8.0, 27.0]
    assert float(relay.specialise(taken, f=f)(2.0)) == 8.0


def test_a_call_with_what_is_passed_joins_torchs_graph() -> None:
    x = torch.tensor(2.0, requires_grad=True)
    TEXT["apply"](square, x).backward()
    assert x.grad is not None
    assert x.grad.item() == 12.0


def test_an_operator_is_passed() -> None:
    slope = relay.grad(TEXT["apply"], wrt="x")(relay.sin, 0.5)
    torch.testing.assert_close(slope, torch.tensor(0.5).sin() + 0.5 * torch.tensor(0.5).cos())


def test_what_is_passed_decides_types() -> None:
    assert float(relay.grad(TEXT["twice"], wrt="x")(square, 3.0)) == 108.0
    ones = torch.ones(3)
    _, tangent = relay.jvp(TEXT["twice"], wrt="x")((squares, ones), (ones,))
    assert torch.equal(tangent, 4.0 * ones)
    pair = TEXT.classes["Pair"]
    _, moved = relay.jvp(TEXT["swapped"], wrt="x")((square, pair(1.0, 2.0)), (pair(1.0, 0.0),))
    assert (float(moved.field0), float(moved.field1)) == (0.0, 2.0)


def test_a_changed_number_that_is_captured_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    slope = relay.grad(TEXT["apply"], wrt="x")
    assert float(slope(times_factor, 2.0)) == 12.0
    monkeypatch.setitem(globals(), "factor", 5.0)
    assert float(slope(times_factor, 2.0)) == 20.0


def test_programs_take_functions_of_texts() -> None:
    of_text = TEXT["apply"]

    @relay
    def inside(x: Float) -> Float:
        return relay.grad(of_text, wrt="x")(square, x)

    assert float(inside(2.0)) == 12.0
    assert float(relay.grad(apply, wrt="x")(TEXT["square"], 2.0)) == 12.0
    mapped = relay.vmap(apply, in_axes=(None, 0))
    assert mapped(TEXT["square"], torch.tensor([2.0, 3.0])).tolist() == [8.0, 27.0]


@pytest.mark.parametrize("function", [TEXT["square"], relay.specialise(square), square])
def test_functions_of_texts_stand_under_policies(function: Any) -> None:
    assert float(relay.grad(relay.checkpoint(function))(3.0)) == 6.0
    assert float(relay.checkpoint(function, policy="products")(3.0)) == 9.0
    assert float(relay.autocast(function)(3.0)) == 9.0
    assert relay.checkpoint(TEXT["square"]) is relay.checkpoint(TEXT["square"])


@pytest.mark.parametrize("function", [TEXT["square"], square])
def test_derivatives_of_the_users_own(function: Callable[..., Any]) -> None:
    made: Any = relay.custom_vjp(TEXT["square_fwd"], TEXT["square_bwd"])(function)
    assert float(relay.grad(made)(3.0)) == 300.0
    made = relay.custom_jvp(TEXT["square_jvp"])(function)
    assert float(relay.grad(made)(3.0)) == 50.0
    assert float(made(3.0)) == 9.0


def test_a_rule_of_a_program_is_refused_for_a_function_of_a_text() -> None:
    with pytest.raises(CheckError, match="write `square` in a text as well"):
        relay.custom_jvp(square)(TEXT["square"])
