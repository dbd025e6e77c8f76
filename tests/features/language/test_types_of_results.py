"""Functions whose type parameter stands in the result alone: each call chooses the type."""

from __future__ import annotations

from typing import TypeVar

import pytest

from pyrelay import Float, Int, RunError, relay
from pyrelay.prelude import List

T = TypeVar("T")


@relay
def empty() -> List[T]:
    return []


@relay
def refused(why: Int) -> T:
    raise ValueError("refused")


@relay
def one(x: Float) -> List[Float]:
    xs = empty()
    xs.append(x)
    return xs


@relay
def two_types(x: Float, n: Int) -> Int:
    xs = empty()
    ns = empty()
    xs.append(x)
    ns.append(n)
    return len(xs) + len(ns) + ns[0]


@relay
def positive(x: Float) -> Float:
    return x * x if x > 0.0 else refused(1)


@relay
def of_any(n: Int) -> List[T]:
    return empty() if n == 0 else of_any(n - 1)


@relay
def chosen(n: Int) -> List[Float]:
    return of_any(n)


@relay
def untold(x: Float) -> Float:
    ys = empty()
    return x * len(ys)


def test_each_call_chooses_the_type() -> None:
    assert one(2.0).to_list() == [2.0]
    assert two_types(1.0, 5) == 7
    assert two_types.interpret(1.0, 5) == 7
    assert positive(3.0) == 9.0
    assert relay.grad(positive)(3.0) == 6.0
    assert chosen(3).to_list() == []
    with pytest.raises(RunError, match="refused"):
        positive(-1.0)


def test_texts_may_name_the_type() -> None:
    define = "def @e[A]() -> prelude.List[A] { prelude.List::Nil() }"
    for call in ("@e()", "@e[float32]()"):
        module = relay.parse(f"{define} def @f() -> prelude.List[float32] {{ {call} }}")
        assert module["f"]().to_list() == []


def test_what_is_printed_as_python_says_the_same() -> None:
    assert "def empty() -> List[T]:" in one.show("python")


def test_a_type_that_nothing_chooses_may_be_any() -> None:
    assert untold(3.0) == 0.0
    assert untold.interpret(3.0) == 0.0
