"""A captured integer that changes becomes an input of the program where it need not be known."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch

import pyrelay
from pyrelay import Float, Int, Tensor, relay, relay_model
from pyrelay.operators.captured import CapturedInteger
from pyrelay.translate.source.scope import Scope

K = 2
SIZE = 2
WIDE = 2
SCALE = 1.0


@relay
def factor(x: Float) -> Float:
    return x * K + K


@relay
def division(n: Int) -> tuple[int, Float]:
    return n // K, n / K


@relay
def rounds(x: Float) -> Float:
    for _ in range(K):
        x = x * 2.0
    return x


@relay
def condition(x: Float) -> Float:
    if K > 3:
        return x * 2.0
    return x if K == 2 else -x


@relay
def place(x: Tensor[Float, (6,)]) -> Float:
    return x[K] * K**2


@relay
def text(x: Float) -> str:
    return f"{K}: {x * K:.1f}"


@relay
def local_name(x: Float) -> Float:
    k = K * 2 - 1
    return x * k


@relay
def shape(x: Float) -> Float:
    return relay.sum(relay.zeros((SIZE, 2)) + x) * SCALE


@relay
def annotated(x: Tensor[Float, (WIDE,)]) -> Float:
    return relay.sum(x) / WIDE


@relay_model
def net(x: Tensor[Float, (3, 4)], *, hidden: int) -> Tensor[Float, (3, 2)]:
    return relay.linear(relay.linear(x, out_features=hidden), out_features=2)


@relay
def made(x: Tensor[Float, (3, 4)]) -> Tensor[Float, (3, 2)]:
    model = relay.create_model(net, hidden=SIZE)
    return model(x)


@pytest.fixture(autouse=True)
def _restored() -> Iterator[None]:
    before = K, SIZE, WIDE, SCALE
    yield
    globals().update(zip(("K", "SIZE", "WIDE", "SCALE"), before, strict=True))


X = torch.arange(6.0)
PLAIN: list[tuple[Any, tuple[Any, ...], Callable[[int], Any]]] = [
    (factor, (3.0,), lambda k: 3.0 * k + k),
    (division, (17,), lambda k: (17 // k, 17 / k)),
    (rounds, (3.0,), lambda k: 3.0 * 2.0**k),
    (condition, (3.0,), lambda k: 6.0 if k > 3 else 3.0 if k == 2 else -3.0),
    (place, (X,), lambda k: float(X[k]) * k**2),
    (text, (1.5,), lambda k: f"{k}: {1.5 * k:.1f}"),
    (local_name, (1.5,), lambda k: 1.5 * (k * 2 - 1)),
]


@pytest.mark.parametrize(("function", "args", "wanted"), PLAIN, ids=[p[0].__name__ for p in PLAIN])
def test_after_its_first_change_an_integer_costs_no_compilation(
    function: Any, args: tuple[Any, ...], wanted: Callable[[int], Any]
) -> None:
    global K
    for k in (2, 3, 4, 5):
        K = k
        compiles = pyrelay.no_compile() if k > 3 else pyrelay.options()
        with compiles:
            assert function(*args) == pytest.approx(wanted(k))
        assert function.interpret(*args) == pytest.approx(wanted(k))


def test_gradients_see_the_number_that_is() -> None:
    global K
    slope = relay.grad(factor)
    for k in (2, 3, 4):
        K = k
        assert float(slope(1.0)) == k


def test_a_size_stays_part_of_the_program_and_leaves_floats_inputs() -> None:
    global SIZE, SCALE
    for size in (2, 3, 4):
        SIZE = size
        assert float(shape(1.0)) == 2 * size * SCALE
    SCALE = 2.0
    assert float(shape(1.0)) == 16.0
    SCALE = 3.0
    with pyrelay.no_compile():
        assert float(shape(1.0)) == 24.0


def test_what_annotations_mention_stays_part_of_the_program() -> None:
    global WIDE
    for wide in (2, 3, 4):
        WIDE = wide
        assert float(annotated(torch.ones(wide))) == 1.0


def test_a_static_argument_stays_part_of_the_program() -> None:
    global SIZE
    for size in (2, 3, 5):
        SIZE = size
        outside = relay.create_model(net, hidden=size).train()
        assert torch.equal(made(torch.ones(3, 4)), outside(torch.ones(3, 4)))


def test_a_number_of_another_kind_is_translated_anew() -> None:
    globals()["K"] = 3
    assert float(factor(1.0)) == 6.0
    globals()["K"] = 4
    assert float(factor(1.0)) == 8.0
    globals()["K"] = 0.5
    assert float(factor(1.0)) == 1.0
    globals()["K"] = 5
    assert float(factor(1.0)) == 10.0


def test_one_operator_reads_a_number_wherever_it_stands() -> None:
    read: dict[Any, Any] = {}
    places = {(id(globals()), "K")}
    scopes = (Scope(f.__relay__.function, varying=places, captured=read) for f in (factor, place))
    first, second = (scope.find("K") for scope in scopes)
    assert isinstance(first, CapturedInteger)
    assert first.op is second.op
