"""Everything that compiling makes, as text: `python -m tests.scale.texts FOLDER` writes it for
LeNet's training, for recursive functions with gradients, and for the programs in the folder."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch

from pyrelay import relay
from pyrelay.runtime.compile.program import Program
from pyrelay.text.parser import parse_module
from pyrelay.text.printer import to_text
from tests.loading import load_file
from tests.scale import sources

LENET = Path(__file__).resolve().parents[2] / "examples" / "lenet" / "lenet.py"
STAGES = ("translated", "typed", "anf", "grad", "simplified", "host")


def lenet() -> Any:
    """Import the example."""
    return load_file(LENET, "lenet_program")


def of_functions() -> Iterator[str]:
    """Return the stages of functions that users wrote."""
    functions = (lenet().train, sources.slope, sources.loop_slope, sources.loop_in_recursion)
    gradient = relay.grad(relay.grad(sources.loop_in_recursion, wrt="x"), wrt="x")
    for function in (*functions, gradient):
        for stage in STAGES:
            yield function.show(stage)


def of_programs(folder: Path) -> Iterator[str]:
    """Return the stages of programs in files; each has a function `derived`."""
    for file in sorted(folder.glob("*.relay")):
        program = Program(parse_module(file.read_text(encoding="utf-8")), "derived")
        stages = (program.typed, program.anf, program.derived, program.simplified)
        yield from map(to_text, stages)
        yield program.compiled(torch.device("cpu")).source


if __name__ == "__main__":
    for text in (*of_functions(), *of_programs(Path(sys.argv[1]))):
        sys.stdout.write(f"{text}\n")
