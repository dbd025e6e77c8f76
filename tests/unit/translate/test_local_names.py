# Annotations here are no text: this module has no `from __future__ import annotations`.
"""Annotations that mention names of the function around, which Python does not keep."""

from dataclasses import dataclass
from typing import Any

from pyrelay import Dim, Float, Fn, Tensor, relay
from pyrelay.infer import infer
from pyrelay.ir.types import show
from pyrelay.translate.translator import translate


def type_of(function: Any) -> str:
    translated = translate(function.__relay__)
    ty = infer(translated.module).functions[translated.entry].ty
    assert ty is not None
    return show(ty)


def test_sizes_and_aliases_of_the_function_around() -> None:
    N = Dim("N")  # noqa: N806  a size
    Row = Tensor[Float, (N,)]  # noqa: N806  a type

    @relay
    def f(x: Row, y: "Tensor[Float, (N, 2 * N)]") -> Row:
        z: Row = x + y[:, 0]
        return z

    assert type_of(f) == "Fn[[Tensor[Float, (N,)], Tensor[Float, (N, 2*N)]], Tensor[Float, (N,)]]"


def test_a_local_name_hides_the_module_s() -> None:
    LENGTH = 4  # noqa: N806  as the module's

    @relay
    def f(x: Tensor[Float, (LENGTH,)]) -> Float:
        return x.sum()

    assert type_of(f) == "Fn[[Tensor[Float, (4,)]], Float]"


LENGTH = 3


def test_a_record_and_what_takes_it() -> None:
    @dataclass(frozen=True)
    class Pair:
        left: Float
        right: Float

    Measure = Fn[[Pair], Float]  # noqa: N806  a type

    @relay
    def f(measure: Measure, pair: Pair) -> Float:
        return measure(pair)

    assert type_of(f) == "Fn[[Fn[[Pair], Float], Pair], Float]"
