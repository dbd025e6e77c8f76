"""A transform that a script mentions again: one object, whose programs are compiled once."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Callable
from typing import Any

import pytest
import torch

from pyrelay import Float, Fn, relay
from pyrelay.config import no_compile

scale = 2.0


@relay
def loss(x: Float, y: Float) -> Float:
    return x * x * y * scale


@relay
def slope(f: Fn[[Float, Float], Float], x: Float) -> Float:
    return f(x, x)


MENTIONS: list[Callable[[Any], Any]] = [
    relay.grad,
    lambda f: relay.grad(f, wrt="x"),
    lambda f: relay.grad(f, wrt=("x",)),
    lambda f: relay.grad(f, ("y", "x")),
    relay.value_and_grad,
    relay.vjp,
    lambda f: relay.grad(relay.grad(f, wrt="x"), wrt="y"),
    relay.checkpoint,
    lambda f: relay.checkpoint(f, policy=("scaled",)),
    relay.autocast,
    lambda f: relay.grad(relay.autocast(relay.checkpoint(f), policy="float16")),
]


def fails(call: Callable[..., Any], *args: Any) -> str:
    with pytest.raises(Exception) as caught:  # noqa: PT011  of any kind, but always the same
        call(*args)
    return str(caught.value)


def test_a_transform_mentioned_again_is_the_same_function() -> None:
    made = [mention(loss) for mention in MENTIONS]
    assert all(mention(loss) is m for mention, m in zip(MENTIONS, made, strict=True))
    assert len(set(map(id, made))) == len(made)


def test_a_transform_mentioned_again_compiles_nothing() -> None:
    x, y = torch.tensor(3.0), torch.tensor(5.0)
    for mention in MENTIONS:
        mention(loss)(x, y)
    with no_compile():
        for mention in MENTIONS:
            mention(loss)(x, y)


def test_a_transform_passed_again_compiles_nothing() -> None:
    x = torch.tensor(3.0)
    first = slope(relay.grad(loss, wrt="x"), x)
    with no_compile():
        assert torch.equal(slope(relay.grad(loss, wrt="x"), x), first)
    assert slope.cache_info().entries == 1


def test_a_transform_of_a_text_mentioned_again_is_the_same_function() -> None:
    module = relay.parse("def @main(%x: float32) { %x * %x }")
    assert relay.grad(module["main"]) is relay.grad(module["main"])
    assert relay.grad(module["main"]) is not relay.value_and_grad(module["main"])
    assert relay.grad(module["main"], wrt="x")(torch.tensor(3.0)) == 6.0


def test_a_transform_mentioned_again_sees_what_its_program_captures_now() -> None:
    global scale
    x, y = torch.tensor(3.0), torch.tensor(5.0)
    assert relay.grad(loss, wrt="x")(x, y) == 60.0
    try:
        scale = 4.0
        assert relay.grad(loss, wrt="x")(x, y) == 120.0
    finally:
        scale = 2.0
    assert relay.grad(loss, wrt="x")(x, y) == 60.0


@pytest.mark.usefixtures("frozen_heap")
def test_a_function_and_its_transforms_go_together() -> None:
    def make() -> Any:
        @relay
        def square(x: Float) -> Float:
            return x * x

        return square

    function = make()
    assert relay.grad(relay.grad(function))(torch.tensor(3.0)) == 2.0
    gone = [weakref.ref(function), weakref.ref(relay.grad(function))]
    del function
    gc.collect()
    assert [reference() for reference in gone] == [None, None]


def test_names_that_are_no_names_are_refused_each_time() -> None:
    wrong: Any = ("x", ["y"])
    first, again = (fails(lambda: relay.grad(loss, wrt=wrong)(1.0, 2.0)) for _ in range(2))
    assert first == again
