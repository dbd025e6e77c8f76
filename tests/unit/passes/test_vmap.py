"""The work of `vmap`: how often code is written, and programs are expanded."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from pyrelay import CheckError
from pyrelay.infer import infer
from pyrelay.ir.module import Module
from pyrelay.ir.normal_form import to_anf
from pyrelay.passes.transforms import expand_transforms, expansion
from pyrelay.passes.vmap import deriver
from pyrelay.text.parser import parse_module

AXES = "in_axes=(0, 0), out_axes=0"


def counted(monkeypatch: pytest.MonkeyPatch, place: Any, name: str) -> Counter[str]:
    """Return the count of objects that a module makes of a class, which grows as it makes them."""
    counts: Counter[str] = Counter()
    made = getattr(place, name)

    def make(*args: Any) -> Any:
        counts[name] += 1
        return made(*args)

    monkeypatch.setattr(place, name, make)
    return counts


def program(text: str) -> Module:
    return to_anf(infer(parse_module(text)))


def chain(length: int) -> Module:
    """Return a map of a function that calls the next one under a condition, and so on. The last of
    them alone shows that what all return is batched."""
    functions = [
        f"def @f{i}(%x: float64, %y: float64) -> float64"
        f" {{ if (%x > 0f64) {{ @f{i + 1}(%x, 1f64) }} else {{ @f{i + 1}(2f64, %y) * %x }} }}"
        for i in range(length)
    ]
    last = f"def @f{length}(%x: float64, %y: float64) -> float64 {{ %x * %y }}"
    entry = "def @main[N: Dim](%x: Tensor[(N,), float64], %y: Tensor[(N,), float64])"
    body = f"{{ vmap{{{AXES}}}(@f0)(%x, %y) }}"
    return program("\n".join((*functions, last, f"{entry} {body}")))


def test_code_is_written_a_few_times_however_many_functions_there_are(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    counts = counted(monkeypatch, deriver, "Body")
    length = 40
    expand_transforms(chain(length), "main")
    # For each function: with either parameter batched or both.
    assert length < counts["Body"] <= 3 * 3 * (length + 1)


REFUSED = """def @f(%x: float64, %n: float64) -> float64 {
        if (%x > 0f64) { sum(cast(nonzero(stack((%x, %n))), dtype=float64)) } else { %n } }"""


def test_a_program_that_is_refused_is_expanded_once(monkeypatch: pytest.MonkeyPatch) -> None:
    counts = counted(monkeypatch, expansion, "Store")
    entry = "def @main[N: Dim](%x: Tensor[(N,), float64], %y: Tensor[(N,), float64])"
    with pytest.raises(CheckError, match="RL320"):
        expand_transforms(program(f"{REFUSED} {entry} {{ vmap{{{AXES}}}(@f)(%x, %y) }}"), "main")
    assert counts["Store"] == 1
