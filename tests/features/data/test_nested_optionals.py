"""Optionals of optionals, which `Option[...]` says: None, `Some(None)`, or a value."""

from __future__ import annotations

from pathlib import Path
from typing import Any, TypeVar

import pytest

import pyrelay.prelude as prelude
from pyrelay import Float, Int, RunError, relay
from pyrelay.prelude import List, Nothing, Option, Some
from tests.python_text import assert_reads_back

T = TypeVar("T")

TEXT = """#[pyrelay = "1"]
def @depth(%x: prelude.Option[prelude.Option[float32]]) -> float32 {
  match (%x) { None => { 0.0 }, Some(None) => { 1.0 }, Some(Some(%y)) => { %y } }
}
def @made(%n: int64) -> prelude.Option[prelude.Option[int64]] {
  if (%n == 0) { None() } else { if (%n == 1) { Some(None()) } else { Some(Some(%n)) } }
}
def @told(%x: prelude.Option[()]) -> int64 {
  match (%x) { None => { 0 }, Some(_) => { 1 } }
}
"""


@relay
def depth(x: Option[Option[Float]]) -> Float:
    match x:
        case None:
            return 0.0
        case Some(None):
            return 1.0
        case Some(Some(y)):
            return y


@relay
def found(xs: List[Option[Option[Int]]]) -> List[Option[Option[Int]]]:
    return [*xs, Nothing()]


@relay
def same(x: T) -> T:
    return x


def test_a_script_says_each_of_the_values() -> None:
    assert [depth(x).item() for x in (None, Some(None), 2.0, Some(2.0))] == [0.0, 1.0, 2.0, 2.0]
    assert depth.interpret(Some(None)) == 1.0
    assert depth.type == "(x: Option[Float | None]) -> Float"


def test_they_come_back_as_they_were() -> None:
    given: list[Any] = [None, Some(None), 3]
    assert list(found(given)) == [*given, None]
    assert same(Some(None)) == Some(None)
    assert repr(Some(Some(None))) == "Some(Some(None))"
    assert Nothing() is None


def test_a_text_and_its_python_are_the_same(tmp_path: Path) -> None:
    module = relay.parse(TEXT)
    for name in ("depth", "made", "told"):
        assert_reads_back(module.typed.ir, name, tmp_path)
    assert [module["made"](n) for n in range(3)] == [None, Some(None), 2]
    assert [module["depth"](x).item() for x in (None, Some(None), 2.0)] == [0.0, 1.0, 2.0]
    assert [int(module["told"](x)) for x in (None, Some(None), Some(()))] == [0, 1, 1]


def test_what_does_not_fit_is_refused_by_its_place() -> None:
    with pytest.raises(RunError, match="x"):
        depth(Some(Some("text")))
    with pytest.raises(TypeError, match=r"Some\(value\)"):
        vars(prelude)["Option"](1)
