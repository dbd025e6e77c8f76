"""Local functions annotated with a size of their own, which their bodies mention or fix."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from pyrelay import Dim, Float, Int, Tensor, relay

H, N = Dim("H"), Dim("N")


@relay
def four(x: Tensor[Float, (4,)]) -> Float:
    return relay.sum(x)


@relay
def mentioned(x: Tensor[Float, (4,)]) -> Float:
    def f(y: Tensor[Float, (H,)]) -> Tensor[Float, (H,)]:
        return y + relay.ones((H,))

    return relay.sum(f(x))


@relay
def fixed_by_an_operator(x: Tensor[Float, (4,)]) -> Float:
    def f(y: Tensor[Float, (H,)]):
        return relay.sum(y + relay.ones((4,)) * relay.ones((H,)))

    return f(x)


@relay
def fixed_by_a_call(x: Tensor[Float, (4,)]) -> Float:
    def f(y: Tensor[Float, (H,)], n: Int):
        if n == 0:
            return four(y)
        return f(y, n - 1) + relay.sum(relay.ones((H, 2)))

    return f(x, 3)


@relay
def fixed_by_a_captured_name(x: Tensor[Float, (N,)]) -> Float:
    def f(y: Tensor[Float, (H,)]):
        return relay.sum(y * x + relay.ones((H,)))

    return f(x)


@relay
def at_two_sizes(x: Tensor[Float, (4,)]) -> Float:
    def f(y: Tensor[Float, (H,)]):
        inner = relay.ones((H, 2))
        return relay.sum(y) + relay.sum(inner)

    return f(x) + f(relay.ones((7,)))


@pytest.mark.parametrize(
    ("function", "value", "slope"),
    [
        (mentioned, 8.0, 1.0),
        (fixed_by_an_operator, 8.0, 1.0),
        (fixed_by_a_call, 28.0, 1.0),
        (fixed_by_a_captured_name, 8.0, 2.0),
        (at_two_sizes, 33.0, 1.0),
    ],
)
def test_the_size_is_what_the_argument_and_the_body_say(
    function: Any, value: float, slope: float
) -> None:
    x = torch.ones(4)
    assert function(x).item() == value
    assert function.interpret(x).item() == value
    assert torch.equal(relay.grad(function)(x), torch.full((4,), slope))


def test_a_text_says_the_same() -> None:
    module = relay.parse("""
        def @main(%x: Tensor[(4,), float32]) -> float32 {
          let %f = fn [H: Dim](%y: Tensor[(H,), float32]) {
            let %ones: Tensor[(H,), float32] = ones(size=(H,));
            sum(%y + %ones)
          };
          %f(%x) + %f(ones(size=(2,)))
        }""")
    assert module["main"](torch.ones(4)).item() == 12.0


def test_a_type_shows_open_sizes_as_they_are_annotated() -> None:
    @relay
    def doubled(x: Tensor[Float, (Any,)]) -> Tensor[Float, (Any,)]:
        return relay.cat((x, x))

    @relay
    def added(x: Tensor[Float, (Any,)], y: Tensor[Float, (N, Any)]):
        return x + y[0], x[x > 0]

    assert doubled.type == "(x: Tensor[Float, (Any,)]) -> Tensor[Float, (2*Any,)]"
    assert added.type == (
        "(x: Tensor[Float, (Any,)], y: Tensor[Float, (N, Any')]) -> "
        "tuple[Tensor[Float, (Any',)], Tensor[Float, (Any'',)]] where Any == Any'"
    )


@relay
def windows(x: Tensor[Float, (N,)], h: Tensor[Float, (2,)], n: Int) -> Tensor[Float, (2,)]:
    for i in range(n):
        h = h * 0.5 + x[i : i + 2]
    return h + x[x > 0.5]


@relay
def rows(xs: list[Tensor[Float, (Any,)]]) -> list[Tensor[Float, (Any,)]]:
    return [x * 2.0 for x in xs if len(x) > 1]


def test_a_typed_text_names_sizes_that_the_running_program_finds() -> None:
    x, h = torch.tensor([0.25, 0.75, 0.0, 1.0]), torch.ones(2)
    again = relay.parse(windows.show("typed"))["windows"]
    torch.testing.assert_close(again(x, h, 2), windows(x, h, 2))
    again = relay.parse(rows.show("typed"))["rows"]
    (only,) = again([x, x[:1]]).to_list()
    torch.testing.assert_close(only, x * 2.0)
