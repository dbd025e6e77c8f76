"""The memory of gradients of loops in C: the values saved by each round lie in columns, which are
not copied, and memory is reused after the last use of a value."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
import torch

from pyrelay import Dim, Float, Int, Tensor, options, relay
from pyrelay.lower_c.functions import spare
from tests.tolerances import assert_program
from tests.unit.lower_c.functions.compared import counted

pytestmark = pytest.mark.host("lowerings are chosen here")

T, B, H = Dim("T"), Dim("B"), Dim("H")
Steps = Tensor[Float, (T, B, H)]
Weight = Tensor[Float, (H, H)]
State = Tensor[Float, (B, H)]


@relay
def net(w: Weight, xs: Steps, start: State) -> Float:
    hidden = start
    for x in xs:
        given = relay.tanh(x @ w)
        hidden = given * relay.tanh(hidden @ w + x) + hidden
    return relay.mean(hidden * hidden)


@relay
def stopping(w: Weight, xs: Steps, start: State) -> Float:
    hidden = start
    for x in xs:
        hidden = relay.tanh(hidden @ w + x)
        if relay.amax(hidden) < 0.4:
            break
        hidden = relay.sigmoid(hidden @ w)
    return relay.mean(hidden * hidden)


@relay
def branching(w: Weight, xs: Steps, start: State) -> Float:
    hidden, other = start, start
    for x in xs:
        other = relay.tanh(other @ w)
        if relay.amax(x) > 1.0:
            hidden = relay.tanh(hidden @ w + x) * other
    return relay.mean(hidden * other)


@relay
def nested(w: Weight, xs: Steps, start: State) -> Float:
    hidden = start
    for x in xs:
        inner = x
        for _ in range(3):
            inner = relay.tanh(inner @ w)
        hidden = relay.tanh(hidden @ w) + inner
    return relay.mean(hidden * hidden)


@relay
def gates(w: Tensor[Float, (4 * H, H)], xs: Steps, start: State) -> Float:
    hidden, memory = start, start
    size = start.shape[1]
    for x in xs:
        gates = relay.linear(x, w) + relay.linear(hidden, w)
        forget = relay.sigmoid(gates[:, size : 2 * size])
        entry = relay.sigmoid(gates[:, :size]) * relay.tanh(gates[:, 2 * size : 3 * size])
        memory = forget * memory + entry
        hidden = relay.sigmoid(gates[:, 3 * size :]) * relay.tanh(memory)
    return relay.mean(hidden * hidden)


@relay
def resets(w: Tensor[Float, (3 * H, H)], xs: Steps, start: State) -> Float:
    state = start
    size = start.shape[1]
    for x in xs:
        given, own = relay.linear(x, w), relay.linear(state, w)
        reset = relay.sigmoid(given[:, :size] + own[:, :size])
        update = relay.sigmoid(given[:, size : 2 * size] + own[:, size : 2 * size])
        candidate = relay.tanh(given[:, 2 * size :] + reset * own[:, 2 * size :])
        state = (1.0 - update) * candidate + update * state
    return relay.mean(state * state)


@relay
def twice(w: Weight, xs: Steps, start: State) -> Float:
    hidden, gate = start, start
    for x in xs:
        gate = relay.sigmoid(x @ start.T @ start + hidden)
        hidden = gate * relay.tanh(hidden @ w)
    for x in xs:
        other = relay.sigmoid(x @ start.T @ start - hidden)
        hidden = other * relay.tanh(hidden @ w) + gate
    return relay.mean(hidden * hidden)


def drawn(steps: int, batch: int, size: int) -> tuple[torch.Tensor, ...]:
    torch.manual_seed(steps + size)
    w = torch.randn(size, size) / size**0.5
    return w, torch.randn(steps, batch, size), torch.randn(batch, size)


SIZES = ((0, 3, 5), (1, 3, 5), (7, 1, 16), (5, 33, 63), (9, 64, 128))
"""The last ones are large enough for blocks of their own."""


def in_c_as_over_torch(function: Any, *args: Any) -> None:
    """Assert that a function runs in C, with the values that it has over torch."""
    with options(lowering="torch"):
        expected = function(*args)
    with options(lowering="c"), counted() as ran:
        found = function(*args)
    assert ran
    assert_program(found, expected)


@pytest.mark.parametrize("function", [net, stopping, branching, nested, twice])
def test_gradients_of_loops_agree_whatever_ran_before(function: Any) -> None:
    gradient = relay.value_and_grad(function, wrt=("w", "start"))
    for steps, batch, size in (*SIZES, *reversed(SIZES)):
        in_c_as_over_torch(gradient, *drawn(steps, batch, size))


@pytest.mark.parametrize(("function", "count"), [(gates, 4), (resets, 3)])
def test_gradients_in_the_room_of_gates(function: Any, count: int) -> None:
    gradient = relay.value_and_grad(function, wrt=("w", "start"))
    for steps, batch, size in (*SIZES, *reversed(SIZES)):
        w, xs, start = drawn(steps, batch, size)
        in_c_as_over_torch(gradient, torch.cat([w] * count), xs, start)


def test_a_pullback_walks_over_what_is_saved_twice() -> None:
    @relay
    def both(
        w: Tensor[Float, (4 * H, H)], xs: Steps, start: State
    ) -> tuple[Tensor[Float, (4 * H, H)], Tensor[Float, (4 * H, H)]]:
        _, pull = relay.vjp(gates, wrt="w")(w, xs, start)
        return pull(1.0), pull(2.0)

    w, xs, start = drawn(5, 33, 63)
    in_c_as_over_torch(both, torch.cat([w] * 4), xs, start)
    once, again = both(torch.cat([w] * 4), xs, start)
    torch.testing.assert_close(again, once * 2.0)


def test_a_loop_that_stops_early_of_more_rounds_than_there_is_room_for() -> None:
    @relay
    def early(w: Weight, times: Int, start: State) -> Float:
        hidden = start
        for _ in range(times):
            hidden = relay.tanh(hidden @ w)
            if relay.amax(hidden) < 0.5:
                return relay.mean(hidden)
        return relay.mean(hidden * hidden)

    gradient = relay.value_and_grad(early, wrt=("w",))
    in_c_as_over_torch(gradient, torch.eye(3), 1 << 62, torch.ones(2, 3))


def kept_by(gradient: Any, *args: Any, products: str = "own") -> int:
    """Return the bytes that a thread keeps for its next calls after some of a gradient: all that
    these have needed at once."""

    def calls() -> int:
        with options(lowering="c", products=products):
            for _ in range(3):
                gradient(*args)
        return spare._KEPT.spare._cells[1]  # pyright: ignore[reportPrivateUsage]

    with ThreadPoolExecutor(1) as pool:
        return pool.submit(calls).result()


def test_a_gradient_needs_what_it_saves_and_little_else() -> None:
    @relay
    def gated(w: Weight, u: Weight, xs: Steps, start: State) -> Float:
        hidden = start
        for x in xs:
            given = relay.sigmoid(x @ w + hidden @ u)
            hidden = given * relay.tanh(hidden) + hidden
        return relay.mean(hidden * hidden)

    steps, batch, size = 40, 64, 128
    w, xs, start = drawn(steps, batch, size)
    gradient = relay.value_and_grad(gated, wrt=("w", "u"))
    saved = 3  # the gate, tanh and the state of each step
    hoisted = 1  # what is made of all inputs, then the gradients of the gates in its place
    packed = 1  # the operands of a product, and those of the next one in their place
    column = steps * batch * size * 4
    assert kept_by(gradient, w, w, xs, start) < (saved + hoisted + packed + 1) * column


def test_gates_and_their_gradients_need_no_room_of_their_own() -> None:
    steps, batch, size = 40, 64, 128
    w, xs, start = drawn(steps, batch, size)
    gradient = relay.value_and_grad(gates, wrt="w")
    hoisted = 4  # what is made of all inputs, then the gates, then the gradients of these
    saved = 3  # the memory, the product of two gates, and the state of each step
    collected = 8  # the two terms of the gradient of the weight, side by side
    column = steps * batch * size * 4
    needed = kept_by(gradient, torch.cat([w] * 4), xs, start, products="library")
    assert needed < (hoisted + saved + collected + 1.5) * column
