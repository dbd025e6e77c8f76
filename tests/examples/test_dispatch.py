"""The example that prints every operator."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

SCRIPT = Path(__file__).parents[2] / "examples" / "dispatch" / "trace.py"


def test_it_prints_the_operators_of_a_function_and_those_of_its_gradient() -> None:
    done = subprocess.run([sys.executable, str(SCRIPT)], capture_output=True, text=True, check=True)
    function, gradient = done.stdout.split("its gradient\n")
    assert function == (
        "the function\n"
        "matmul               [4, 3] [3] -> [4]\n"
        "tanh                 [4] -> [4]\n"
        "power                [4] [] -> [4]\n"
        "mean                 [4] -> []\n"
    )
    names = [line.split()[0] for line in gradient.splitlines()]
    assert names[:2] == ["matmul", "tanh"]
    assert names.count("tanh_grad") == 1
    assert gradient.splitlines()[-1].endswith("-> [3]")


def test_the_fallback_has_ten_lines_at_most() -> None:
    text = SCRIPT.read_text(encoding="utf-8")
    start, end = text.index("@dispatch.fallback"), text.index("@relay\n")
    lines = [line for line in text[start:end].splitlines() if line.strip()]
    assert len(lines) <= 10
