"""Compiling and running take little of Python's stack, whatever the program."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
LIMIT = 300
"""Frames, those of torch's own Python code and of `DEPTH` plain calls included."""

PREPARE = f"""
import sys
import torch
from pyrelay import relay
from pyrelay.runtime.compile.program import Program
from tests.scale import sources
from tests.scale.programs import alternating, nested, with_gradient
from tests.scale.sources import iterated

relay.grad(sources.slope, wrt="x")(torch.ones((), dtype=torch.float64), 1)  # imports what it needs
x = torch.tensor(0.7, dtype=torch.float64)
v = torch.tensor([0.3, -0.7], dtype=torch.float64)
cpu = torch.device("cpu")
sys.setrecursionlimit({LIMIT})
"""
PIECES = {
    "bindings": """
module = with_gradient(alternating(1000), has_aux=True)
gradient, (value, writes) = Program(module, "gradient").compiled(cpu)(v)
assert writes == 250
assert gradient.min() > 0
""",
    "nested ifs": """
for in_tail in (True, False):
    module = with_gradient(nested(310, in_tail=in_tail))
    assert Program(module, "gradient").compiled(cpu)(v, 309)[0] == (310 if in_tail else 620)
""",
    "recursion and loops": """
for f in (sources.recursion, sources.even, sources.local_recursion, sources.loop):
    g = relay.grad(f, wrt="x")
    expected = iterated(0.7, 3000)
    assert abs(f(x, 3000) - expected.value) < 1e-9
    assert abs(g(x, 3000) - expected.first) < 1e-9
    assert abs(relay.grad(g, wrt="x")(x, 3000) - expected.second) < 1e-9
y = x.clone().requires_grad_()
sources.recursion(y, 3000).backward()
assert abs(y.grad - iterated(0.7, 3000).first) < 1e-9
""",
    "the evaluator": """
assert abs(sources.recursion.interpret(x, 3000) - iterated(0.7, 3000).value) < 1e-9
assert abs(sources.slope.interpret(x, 500) - iterated(0.7, 500).first) < 1e-9
""",
}


@pytest.mark.parametrize("piece", PIECES)
def test_a_small_stack_is_enough(piece: str) -> None:
    script = f"{PREPARE}{PIECES[piece]}assert sys.getrecursionlimit() == {LIMIT}\n"
    run = subprocess.run(
        [sys.executable, "-c", script],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 0, run.stderr
