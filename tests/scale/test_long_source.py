"""Source text may be as long, and its expressions nest as deeply, as Python itself allows."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

import pytest
import torch

from pyrelay import relay
from pyrelay.translate.translator import translate
from tests.loading import load_file

HEAD = """from pyrelay import Int, float64, relay

@relay
def f(x: float64, n: Int) -> float64:
"""


def loaded(body: str, folder: Path) -> Any:
    """Import a file with one function, given its body."""
    file = folder / "long_source.py"
    file.write_text(HEAD + body, encoding="utf-8")
    return load_file(file).f


ELIFS = "".join(f"    elif n == {i}:\n        return x * {i + 1}\n" for i in range(1, 300))
BODIES = {
    "a sum of many terms": (f"    return {' + '.join(['x'] * 2500)}\n", 2500.0),
    "a chain of methods": (f"    return x{'.abs()' * 600} * 2\n", 2.0),
    "many assignments": ("    x = x * 1.0\n" * 1000 + "    return x\n", 1.0),
    "many elifs": (f"    if n == 0:\n        return x\n{ELIFS}    return x * 0\n", 201.0),
    "many early returns": (
        "".join(f"    if n == {i}:\n        return x * {i}\n" for i in range(300))
        + "    return x\n",
        200.0,
    ),
}


@pytest.mark.parametrize("name", BODIES)
def test_long_source_compiles_with_its_gradient(name: str, tmp_path: Path) -> None:
    body, factor = BODIES[name]
    function = loaded(body, tmp_path)
    x = torch.tensor(0.5, dtype=torch.float64)
    torch.testing.assert_close(function(x, 200).item(), 0.5 * factor)
    torch.testing.assert_close(relay.grad(function, wrt="x")(x, 200).item(), factor)


def calls_to_translate(function: Any) -> int:
    """Count the calls of Python functions that a translation makes, as a measure of its work."""
    count = 0

    def note(frame: FrameType, event: str, arg: object) -> None:
        nonlocal count
        count += event == "call"

    sys.setprofile(note)
    try:
        translate(function.__relay__)
    finally:
        sys.setprofile(None)
    return count


def chain(links: int) -> str:
    return f"    return x{'.abs()' * links} * 2\n"


def elifs(links: int) -> str:
    arms = "".join(f"    elif n == {i}:\n        y = x * {i}\n" for i in range(links))
    return f"    if n < 0:\n        y = x\n{arms}    else:\n        y = -x\n    return y\n"


def returning_elifs(links: int) -> str:
    arms = "".join(f"    elif n == {i}:\n        return x * {i}\n" for i in range(links))
    return f"    if n < 0:\n        return x\n{arms}    return -x\n"


@pytest.mark.parametrize("body", [chain, elifs, returning_elifs], ids=lambda f: f.__name__)
def test_translation_takes_time_linear_in_the_length_of_a_chain(
    body: Callable[[int], str], tmp_path: Path
) -> None:
    short, long = (calls_to_translate(loaded(body(n), tmp_path)) for n in (100, 400))
    assert long < 4.5 * short
