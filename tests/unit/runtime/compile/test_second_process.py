"""A second process runs an unchanged program without the compiler."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Final

PROGRAM: Final = """
import sys

import torch

from pyrelay import Dim, Float, Tensor, relay

N = Dim("N")


@relay
def loss(x: Tensor[Float, (N,)], w: Tensor[Float, (N,)]) -> Float:
    return relay.sum(relay.tanh(x * w) * relay.softmax(x, dim=0))


@relay
def slope(x: Tensor[Float, (N,)], w: Tensor[Float, (N,)]) -> Tensor[Float, (N,)]:
    return relay.grad(loss, wrt="w")(x, w)


x = torch.linspace(-1, 1, 5)
print(slope(x, x + 0.5).tolist())
print(sorted(name for name in sys.modules if name.startswith("pyrelay.")))
"""

COMPILER: Final = (
    *("infer", "kernels.pipeline", "lower_c.text", "lower_triton", "passes.pipeline"),
    *("passes.grad", "text.parser", "to_python"),
)


def run(program: Path, cache: Path, lowering: str) -> tuple[str, set[str]]:
    """Return the first line that a process with a program prints, and the modules it loads."""
    plain = {k: v for k, v in os.environ.items() if not k.startswith("PYRELAY_")}
    chosen = {"PYRELAY_CACHE_DIR": str(cache), "PYRELAY_LOWERING": lowering}
    done = subprocess.run(
        [sys.executable, str(program)],
        env={**plain, **chosen, "PYTHONPATH": str(Path(__file__).parents[4])},
        capture_output=True,
        text=True,
        check=True,
    )
    value, names = done.stdout.splitlines()
    return value, {n.strip(" '[]").removeprefix("pyrelay.") for n in names.split(",")}


def test_a_second_process_loads_no_compiler(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    first, loaded = run(program, tmp_path / "cache", "torch")
    assert {"infer", "passes.pipeline", "passes.grad"} <= loaded
    second, loaded = run(program, tmp_path / "cache", "torch")
    assert second == first
    assert not loaded & set(COMPILER)
    changed, loaded = run(program, tmp_path / "other", "torch")
    assert changed == first
    assert "infer" in loaded
