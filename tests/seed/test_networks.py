"""Networks out of folds, after the introduction to algebraic data types: encoders, generators,
recurrent networks in one and in both directions, with the cell given there and with others.

The accumulating maps and the bidirectional network give what Relay gives: `map_accumr` goes from
right to left, `map_accuml` gives its outputs last first.
"""

from __future__ import annotations

from typing import Any, TypeVar

import pytest
import torch

from pyrelay import Float, Fn, Tensor, prelude, relay, relay_model
from pyrelay.prelude import Cons, List, Nil

from .values import agree

A = TypeVar("A")
B = TypeVar("B")
C = TypeVar("C")
S = TypeVar("S")
S2 = TypeVar("S2")
In = TypeVar("In")
Out = TypeVar("Out")
Out2 = TypeVar("Out2")


@relay
def linear(x: Float, w: Float, b: Float) -> Float:
    return w * x + b


@relay
def relu_cell(
    w: tuple[Float, Float], b: tuple[Float, Float], s: Float, x: Float
) -> tuple[Float, Float]:
    x2 = linear(x, w[0], b[0])
    s2 = linear(s, w[1], b[1])
    return s, relay.relu(x2 + s2)  # does not change the state


@relay
def trained_cell(w: tuple[Float, Float], b: tuple[Float, Float]):
    return lambda s, x: relu_cell(w, b, s, x)


@relay
def encode(cell: Fn[[S, In], tuple[S, Out]], xs: List[In], init: S) -> S:
    return prelude.foldl(lambda state, x: cell(state, x)[0], init, xs)


@relay
def unfoldr(f: Fn[[B], tuple[A, B] | None], z: B) -> List[A]:
    match f(z):
        case (a, rest):
            return Cons(a, unfoldr(f, rest))
        case None:
            return Nil()


@relay
def gen_func(
    cell: Fn[[S, In], tuple[S, Out]], generate_input: Fn[[S], In | None], state: S
) -> tuple[Out, S] | None:
    match generate_input(state):
        case None:
            return None
        case x:
            out = cell(state, x)
            return out[1], out[0]


@relay
def generator(
    cell: Fn[[S, In], tuple[S, Out]], generate_input: Fn[[S], In | None], init: S
) -> List[Out]:
    return unfoldr(lambda state: gen_func(cell, generate_input, state), init)


@relay
def map_accumr(f: Fn[[A, B], tuple[A, C]], acc: A, xs: List[B]) -> tuple[A, List[C]]:
    def step(b, p):
        out = f(p[0], b)
        return out[0], Cons(out[1], p[1])

    return prelude.foldr(step, (acc, Nil()), xs)


@relay
def map_accuml(f: Fn[[A, B], tuple[A, C]], acc: A, xs: List[B]) -> tuple[A, List[C]]:
    def step(p, b):
        out = f(p[0], b)
        return out[0], Cons(out[1], p[1])

    return prelude.foldl(step, (acc, Nil()), xs)


@relay
def map_accumr_plain(f: Fn[[A, B], tuple[A, C]], acc: A, xs: List[B]) -> tuple[A, List[C]]:
    match xs:
        case Nil():
            return acc, Nil()
        case Cons(b, t):
            update = f(acc, b)
            rest = map_accumr_plain(f, update[0], t)
            return rest[0], Cons(update[1], rest[1])


@relay
def general_rnn(cell: Fn[[S, In], tuple[S, Out]], init: S, xs: List[In]) -> tuple[S, List[Out]]:
    return map_accumr(cell, init, xs)


@relay
def zip_(xs: List[A], ys: List[B]) -> List[tuple[A, B]]:
    match xs:
        case Nil():
            return Nil()
        case Cons(a, more_xs):
            match ys:
                case Nil():
                    return Nil()
                case Cons(b, more_ys):
                    return Cons((a, b), zip_(more_xs, more_ys))


@relay
def bidirectional_rnn(
    cell1: Fn[[S, In], tuple[S, Out]],
    cell2: Fn[[S2, In], tuple[S2, Out2]],
    state1: S,
    state2: S2,
    xs: List[In],
) -> List[tuple[Out, Out2]]:
    return zip_(map_accumr(cell1, state1, xs)[1], map_accuml(cell2, state2, xs)[1])


# With the trained cell, in Python: weights (2, 3), offsets (0.5, -1).


def relu_output(s: float, x: float) -> float:
    """Return the output of the trained cell, whose state stays as it is."""
    return max((2 * x + 0.5) + (3 * s - 1), 0.0)


@relay
def cell_of_numbers(s: Float, x: Float) -> tuple[Float, Float]:
    return trained_cell((2.0, 3.0), (0.5, -1.0))(s, x)


@relay
def leaky(s: Float, x: Float) -> tuple[Float, Float]:
    """Keep half of the state."""
    return s * 0.5 + x, s + x


@relay
def next_input(s: Float) -> Float | None:
    return None if s > 20.0 else s + 1.0


@relay
def with_trained_cell(xs: List[Float], s: Float):
    cell = trained_cell((2.0, 3.0), (0.5, -1.0))
    return encode(cell, xs, s), general_rnn(cell, s, xs), bidirectional_rnn(cell, leaky, s, s, xs)


XS = [1.0, -2.0, 3.0]


def test_the_cell_gives_its_state_and_an_output() -> None:
    assert agree(cell_of_numbers, 4.0, 1.0) == (4.0, relu_output(4.0, 1.0))
    assert agree(cell_of_numbers, -4.0, 1.0) == (-4.0, 0.0)


def test_a_closure_is_a_cell() -> None:
    state, general, both = agree(with_trained_cell, XS, 4.0)
    outputs = [relu_output(4.0, x) for x in XS]
    assert state == 4.0
    assert general == (4.0, outputs)
    assert [a for a, _ in both] == outputs
    assert [b for _, b in both] == from_the_left(XS, 4.0)[1][::-1]


def test_an_encoder_gives_the_last_state() -> None:
    assert agree(encode, cell_of_numbers, XS, 4.0) == 4.0
    state = 4.0
    for x in XS:
        state = state * 0.5 + x
    assert agree(encode, leaky, XS, 4.0) == state


def test_a_generator_goes_on_while_there_is_input() -> None:
    state, outputs = 4.0, []
    while state <= 20.0:
        x = state + 1.0
        outputs.append(state + x)
        state = state * 0.5 + x
    assert agree(generator, leaky, next_input, 4.0) == outputs
    assert len(outputs) == 4
    assert agree(generator, leaky, next_input, 21.0) == []


def from_the_right(xs: list[float], state: float) -> tuple[float, list[float]]:
    """Return the last state and the outputs of `leaky` over the elements from right to left."""
    outputs = []
    for x in reversed(xs):
        outputs = [state + x, *outputs]
        state = state * 0.5 + x
    return state, outputs


def from_the_left(xs: list[float], state: float) -> tuple[float, list[float]]:
    """Return the last state and the outputs of `leaky` over the elements from left to right."""
    outputs = []
    for x in xs:
        outputs.append(state + x)
        state = state * 0.5 + x
    return state, outputs


def test_a_general_network_goes_from_right_to_left() -> None:
    assert agree(general_rnn, leaky, 4.0, XS) == from_the_right(XS, 4.0)
    assert agree(map_accumr, leaky, 4.0, XS) == from_the_right(XS, 4.0)
    state, outputs = from_the_left(XS, 4.0)
    assert agree(map_accuml, leaky, 4.0, XS) == (state, outputs[::-1])
    assert agree(map_accumr_plain, leaky, 4.0, XS) == (state, outputs)


def test_the_two_directions_are_paired_as_relay_pairs_them() -> None:
    found = agree(bidirectional_rnn, leaky, cell_of_numbers, 4.0, 1.0, XS)
    backwards = [relu_output(1.0, x) for x in reversed(XS)]
    assert found == list(zip(from_the_right(XS, 4.0)[1], backwards, strict=True))
    assert agree(bidirectional_rnn, leaky, leaky, 4.0, 1.0, []) == []


@relay
def general_by_the_prelude(xs: List[Float], s: Float):
    return prelude.map_accumr(leaky, s, xs), prelude.map_accuml(leaky, s, xs)


def test_the_prelude_gives_the_same() -> None:
    right, left = agree(general_by_the_prelude, XS, 4.0)
    assert right == agree(map_accumr, leaky, 4.0, XS)
    assert left == agree(map_accuml, leaky, 4.0, XS)


# Models as cells.


@relay_model
def recurrent(
    state: Tensor[Float, (4,)], x: Tensor[Float, (3,)]
) -> tuple[Tensor[Float, (4,)], Tensor[Float, (4,)]]:
    new = relay.tanh(
        relay.linear(x, out_features=4) + relay.linear(state, out_features=4, bias=False)
    )
    return new, new * 2.0


Rows = List[Tensor[Float, (3,)]]


@relay
def uses(xs: Rows, h: Tensor[Float, (4,)]):
    return (
        encode(recurrent, xs, h),
        general_rnn(recurrent, h, xs),
        bidirectional_rnn(recurrent, recurrent, h, h, xs),
    )


@relay
def loss(xs: Rows, h: Tensor[Float, (4,)]) -> Float:
    return encode(recurrent, xs, h).sum()


def expected_step(model: Any, h: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
    """Return the next state as torch computes it."""
    input_weight, input_bias, state_weight = model.parameters()
    return torch.tanh(input_weight @ x + input_bias + state_weight @ h)


@pytest.fixture
def rows() -> list[torch.Tensor]:
    generator = torch.Generator().manual_seed(0)
    return [torch.randn(3, generator=generator) for _ in range(5)]


def test_a_model_is_a_cell(rows: list[torch.Tensor]) -> None:
    model = relay.create_model(recurrent, seed=0)
    zero = torch.zeros(4)
    state, general, both = model.bind(uses)(rows, zero)
    forwards, backwards = [zero], [zero]
    with torch.no_grad():
        for x in rows:
            forwards.append(expected_step(model, forwards[-1], x))
        for x in reversed(rows):
            backwards.append(expected_step(model, backwards[-1], x))
    torch.testing.assert_close(state, forwards[-1])
    torch.testing.assert_close(general[0], backwards[-1])
    outputs = [2 * h for h in reversed(backwards[1:])]
    torch.testing.assert_close(list(general[1]), outputs)
    paired = list(zip(outputs, [2 * h for h in reversed(forwards[1:])], strict=True))
    torch.testing.assert_close(list(both), paired)


def test_a_fold_of_a_model_is_differentiated(rows: list[torch.Tensor]) -> None:
    model = relay.create_model(recurrent, seed=0)
    zero = torch.zeros(4)
    value, grads = relay.value_and_grad(model, loss, (rows, zero))
    state = zero
    for x in rows:
        state = expected_step(model, state, x)
    state.sum().backward()
    torch.testing.assert_close(value, state.detach().sum())
    for name, parameter in model.named_parameters():
        torch.testing.assert_close(grads[name], parameter.grad)
