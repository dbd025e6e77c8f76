"""Strings: the same text as Python's own, in compiled code and in the evaluator."""

from __future__ import annotations

import enum
import io
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest
import torch

from pyrelay import Dim, Float, Int, Tensor, relay
from pyrelay.diagnostics.diagnostic import RunError

N = Dim("N")
UNIT = "m"


class Mode(enum.Enum):
    FAST = "fast"


@dataclass(frozen=True)
class Config:
    name: str = "run"
    rate: float = 0.1


CONFIG = Config()


def formats(x: Tensor[Float, (N,)], k: int, name: str) -> str:
    rate = 0.1
    print(f"loss {x.mean():.4f} {rate!r:>6} {k=} {{}} {x.shape[0]:03d} {k:{x.shape[0]}d}|", name)
    print("a", k, k == 3, x.shape[0], rate, (1, k), sep="; ", end="!\n", flush=True)
    print(f"{CONFIG.name} at {CONFIG.rate} {UNIT} {Mode.FAST}", f"{CONFIG}", CONFIG.rate)
    print()
    print(f"{x}", f"{x.sum()}", "{not a place}", f"{'nested'}")
    return f"{k}/{name}" + "." + str(k) + repr(name) + str(CONFIG.rate)


def joins(x: Tensor[Float, (N,)], k: int, name: str) -> str:
    text = name
    for i in range(k):
        text += f"{i}," if i != 1 else "-"
    if text == "go0,-2," or name != "go":
        return text + "!"
    return text


def measures(x: Tensor[Float, (N,)], k: int, name: str) -> int:
    def twice(words):
        return words + words

    return len(twice(name)) + len("abc") + len(x)


def picks(x: Tensor[Float, (N,)], k: int, name: str) -> str:
    mode = "train" if k > 2 else "eval"
    if mode == Mode.FAST.value:
        mode = "fast"
    return mode


each_program = pytest.mark.parametrize(
    "program", [formats, joins, measures, picks], ids=lambda f: f.__name__
)


@each_program
@pytest.mark.parametrize("k", [1, 3])
def test_text_is_what_python_makes_of_it(
    program: Callable[..., Any], k: int, capsys: pytest.CaptureFixture[str]
) -> None:
    args = (torch.arange(4.0), k, "go")
    expected, printed = program(*args), capsys.readouterr().out
    compiled = relay(program)
    for run in (compiled, compiled.interpret):
        assert run(*args) == expected
        # A number of rank 0 is a number in compiled code, which torch prints as a tensor.
        assert capsys.readouterr().out == printed.replace("tensor(6.)", "6.0")


@relay
def pairs(x: Float, name: str) -> tuple[str, Float]:
    return name + "?", x + 1


@relay
def uses_pairs(x: Float) -> tuple[str, Float]:
    name, y = pairs(x, f"n{3}")
    return pairs(y, name)


def test_strings_pass_through_tuples_and_calls() -> None:
    name, value = uses_pairs(1.0)
    assert (name, value.item()) == ("n3??", 3.0)


@relay
def checked(n: Int, d: Int) -> Int:
    assert n > 0, f"never made unless needed: {10 // d}"
    return n


def test_the_text_of_an_assertion_is_made_only_when_it_fails() -> None:
    assert checked(1, 0).item() == 1
    with pytest.raises(RunError, match="needed: 5"):
        checked(0, 2)
    with pytest.raises(RunError, match="integer division by zero"):
        checked(0, 0)


@relay
def scaled(x: Tensor[Float, (N,)], name: str) -> Float:
    total = x.sum() * 2
    if name == "big":
        total = total * 10
    print(f"total of {name}: {total:.1f}")
    return total


def test_gradients_go_past_strings(capsys: pytest.CaptureFixture[str]) -> None:
    found = relay.grad(scaled, wrt="x")(torch.ones(2), "big")
    assert found.tolist() == [20.0, 20.0]
    assert capsys.readouterr().out == "total of big: 40.0\n"


def test_a_captured_string_that_changes_is_seen() -> None:
    words = "one"

    @relay
    def say(x: Float) -> str:
        return f"{words} {x:.0f}"

    assert say(1.0) == "one 1"
    words = "two"
    assert say(1.0) == "two 1"


def shown(text: str) -> str:
    print("a", text, f"{text}é", sep="|", end="!")
    return text


def test_what_the_output_cannot_encode_is_escaped(monkeypatch: pytest.MonkeyPatch) -> None:
    for encoding, expected in (
        ("utf-8", "a|\\ud800|\\ud800é!"),
        ("ascii", "a|\\ud800|\\ud800\\xe9!"),
    ):
        for run in (relay(shown), relay(shown).interpret):
            written = io.BytesIO()
            output = io.TextIOWrapper(written, encoding, write_through=True)
            with monkeypatch.context() as patch:
                patch.setattr("sys.stdout", output)
                assert run("\ud800") == "\ud800"
            assert written.getvalue().decode(encoding) == expected
