"""How long compiling takes, stage by stage, for programs of 1,000 to 100,000 bindings.

The program is a chain of `x = tanh(x + c)`, two operators a binding, on a matrix of 64x64, which is
what tracing compilers make of a loop, and the gradient of its sum. Values are compared with torch's
before anything is timed. The last stage is the first two calls, of which the second builds C where
there is a compiler; nothing is kept on disk. Stages are timed by the clock, the garbage collector
on, as users meet them; each round compiles everything anew, and rounds go through the sizes up and
down in turn.
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import statistics
import time
from collections.abc import Callable, Sequence
from pathlib import Path

HERE = Path(__file__).resolve().parent


def arguments() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="seconds instead of minutes")
    parser.add_argument("--sizes", type=int, nargs="+", help="numbers of bindings")
    parser.add_argument("--out", type=Path, default=HERE / "results" / "compile_time.json")
    return parser.parse_args()


ARGS = arguments()
os.environ.setdefault("OMP_NUM_THREADS", "2")  # before torch is loaded
os.environ["PYRELAY_CACHE"] = "off"

import torch  # noqa: E402
from rich.console import Console  # noqa: E402
from rich.table import Table  # noqa: E402

from benchmarks import bench  # noqa: E402
from pyrelay.diagnostics.source import NOWHERE  # noqa: E402
from pyrelay.ir.expr import (  # noqa: E402
    Binding,
    Call,
    Constant,
    Differentiation,
    Expr,
    Flavour,
    Function,
    GlobalVar,
    LetBlock,
    Rule,
    Transform,
    Var,
)
from pyrelay.ir.module import Module  # noqa: E402
from pyrelay.ir.types import float32, tensor_type  # noqa: E402
from pyrelay.operators.primitive.arithmetic import add  # noqa: E402
from pyrelay.operators.primitive.math import tanh  # noqa: E402
from pyrelay.operators.primitive.reduce import sum_  # noqa: E402
from pyrelay.runtime.compile.program import Program  # noqa: E402

CPU = torch.device("cpu")
SIZES = (1_000, 10_000, 100_000)
MATRIX = tensor_type(float32, 64, 64)


def first_calls(program: Program) -> None:
    """Call a program twice."""
    x = torch.linspace(-1, 1, 64 * 64).reshape(64, 64)
    for _ in range(2):
        program.compiled(CPU)(x)


STAGES: dict[str, Callable[[Program], object]] = {
    "infer": lambda p: p.typed,
    "normal form": lambda p: p.anf,
    "gradient": lambda p: p.derived,
    "simplify": lambda p: p.at("simplified"),
    "host": lambda p: p.compiled(CPU),
    "first calls": first_calls,
}
"""The stages of a program; each works on what the one before returned."""


def shift(step: int) -> float:
    """Return what is added at a step: never what is added nearby."""
    return 0.001 * (step % 97)


def chain(length: int, *, gradient: bool) -> Program:
    """Return the program, untyped, as translation would give it."""
    x = Var("x", MATRIX, span=NOWHERE)
    last: Expr = x
    bindings: list[Binding] = []
    for step in range(length):
        shifted = Call(add, (last, Constant(shift(step), span=NOWHERE)), span=NOWHERE)
        last = Var("x", span=NOWHERE)
        bindings.append(Binding(last, Call(tanh, (shifted,), span=NOWHERE)))
    total = Call(sum_, (last,), span=NOWHERE)
    body = LetBlock(tuple(bindings), total, Flavour.PURE, span=NOWHERE)
    functions = {"forward": Function((x,), body, span=NOWHERE)}
    if gradient:
        y = Var("x", MATRIX, span=NOWHERE)
        forward = GlobalVar("forward", span=NOWHERE)
        rule = Transform(Rule.VALUE_AND_GRAD, forward, Differentiation(), span=NOWHERE)
        functions["main"] = Function((y,), Call(rule, (y,), span=NOWHERE), span=NOWHERE)
    return Program(Module(functions, {}), "main" if gradient else "forward")


def check(length: int) -> None:
    """Stop unless both programs give what torch gives."""
    x = torch.linspace(-1, 1, 64 * 64).reshape(64, 64).requires_grad_()
    y = x
    for step in range(length):
        y = torch.tanh(y + shift(step))
    y.sum().backward()
    input_ = x.detach()
    value, slope = chain(length, gradient=True).compiled(CPU)(input_)
    torch.testing.assert_close(value, y.sum().detach(), rtol=1e-4, atol=1e-4)
    torch.testing.assert_close(slope, x.grad, rtol=1e-4, atol=1e-6)
    torch.testing.assert_close(chain(length, gradient=False).compiled(CPU)(input_), value)


def compiling(program: Program) -> dict[str, float]:
    """Return the seconds of each stage."""
    found: dict[str, float] = {}
    gc.collect()
    for name, stage in STAGES.items():
        start = time.perf_counter()
        stage(program)
        found[name] = time.perf_counter() - start
    return {**found, "total": sum(found.values())}


Case = tuple[str, int]


def measure(sizes: Sequence[int]) -> dict[Case, list[dict[str, float]]]:
    """Compile every case in every round; the longest take part in fewer rounds."""
    cases = [(kind, size) for size in sizes for kind in ("forward", "gradient")]
    found: dict[Case, list[dict[str, float]]] = {case: [] for case in cases}
    compiling(chain(200, gradient=True))  # what the first program of a process loads
    for number in range(1 if ARGS.quick else 5):
        for kind, size in cases if number % 2 == 0 else cases[::-1]:
            if number < max(1, 30_000 // size):
                found[kind, size].append(compiling(chain(size, gradient=kind == "gradient")))
    return found


def medians(rounds: Sequence[dict[str, float]]) -> dict[str, float]:
    """Return the median seconds of each stage."""
    return {name: statistics.median(r[name] for r in rounds) for name in rounds[0]}


def table(found: dict[Case, list[dict[str, float]]]) -> Table:
    """Return the medians as a table; `growth` compares a binding with one of the smallest size."""
    made = Table(title="Compile time of x = tanh(x + c) on (64, 64), seconds")
    for heading in ("program", "bindings", *STAGES, "total", "us a binding", "growth"):
        made.add_column(heading, justify="left" if heading == "program" else "right")
    smallest = min(size for _, size in found)
    for (kind, size), rounds in found.items():
        middle = medians(rounds)
        each = middle["total"] / size
        growth = each / (medians(found[kind, smallest])["total"] / smallest)
        seconds = (f"{value:,.2f}" for value in middle.values())
        made.add_row(kind, f"{size:,}", *seconds, f"{each * 1e6:,.0f}", f"{growth:.2f}")
    return made


def save(found: dict[Case, list[dict[str, float]]], file: Path) -> None:
    """Write everything as JSON."""
    cases = [
        {"program": kind, "bindings": size, "median": medians(rounds), "rounds": rounds}
        for (kind, size), rounds in found.items()
    ]
    facts = {**bench.machine(), "versions": bench.versions(("pyrelay", "torch"))}
    data = {"title": "compile time", "unit": "s", "quick": ARGS.quick, **facts, "cases": cases}
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps(data, indent=1) + "\n")


def main() -> None:
    """Check, measure, print and write."""
    check(50)
    found = measure(ARGS.sizes or (SIZES[:-1] if ARGS.quick else SIZES))
    console = Console(width=120)
    console.print(table(found))
    save(found, ARGS.out)
    console.print(f"wrote {ARGS.out}")


if __name__ == "__main__":
    main()
