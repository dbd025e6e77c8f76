"""The error of every operator and of its gradient in float32, measured against float64.

An error is the largest difference in a result, over the largest element of that result, in units of
float32's epsilon. An operator's error is the largest over its samples, averaged over some draws of
their elements; its gradient is taken under random cotangents. `--compare FILE` prints the operators
that differ from an earlier table.
"""

from __future__ import annotations

import argparse
import json
import math
import statistics
from collections.abc import Sequence
from pathlib import Path

import torch

from pyrelay.ir.op import Effect, NoGradient, Op, Sample
from pyrelay.ir.types import DType, float32, float64
from pyrelay.operators.builder import Value
from pyrelay.operators.table import ALL
from tests.ops.derivatives import buffer_leaves
from tests.ops.materials import in_precision, tensors
from tests.ops.programs import Program, call_program, differentiate, float_parameters, float_parts

RESULTS = Path(__file__).parent / "results" / "accuracy.json"
SEEDS = 8
EPSILON = torch.finfo(torch.float32).eps


def evaluated(
    op: Op, sample: Sample, dtype: DType, inputs: Sequence[torch.Tensor]
) -> tuple[list[torch.Tensor], list[torch.Tensor]]:
    """Return the float results of a call, and the gradients by its float operands."""
    program, result = call_program(op, in_precision(sample, dtype), {})
    held = buffer_leaves(op, sample)
    state = [v for i, v in enumerate(program.params) if i in held]
    by = [v for v in float_parameters(program) if v not in state]
    results = float_parts(result[0] if held else result)
    if not results:
        return [], []
    values = run(program, results, inputs)
    if not by or isinstance(op.grad, NoGradient):
        return values, []
    generator = torch.Generator().manual_seed(1)
    seeds = [torch.randn(v.shape, generator=generator).to(v.dtype) for v in values]
    cotangents = differentiate(program, results, by)
    return values, run(program, cotangents, [*inputs, *seeds])


def run(
    program: Program, values: Sequence[Value], inputs: Sequence[torch.Tensor]
) -> list[torch.Tensor]:
    """Return values of a program."""
    before = len(program.builder.bindings)
    found = program.run(program.builder.tuple(values), inputs)
    del program.builder.bindings[before:]
    return [torch.as_tensor(v) for v in found]


def distance(found: Sequence[torch.Tensor], exact: Sequence[torch.Tensor]) -> float:
    """Return the largest error among results, in epsilons."""
    worst = 0.0
    for value, wanted in zip(found, exact, strict=True):
        known = torch.isfinite(wanted)
        if known.any():
            scale = wanted[known].abs().max().item() or 1.0
            error = (value.double()[known] - wanted[known]).abs().max().item()
            worst = max(worst, error / scale / EPSILON)
    return worst


def errors(op: Op) -> tuple[float, float]:
    """Return the errors of an operator's value and of its gradient."""
    found = [_worst(op, seed) for seed in range(SEEDS)]
    return statistics.mean(v for v, _ in found), statistics.mean(g for _, g in found)


def _worst(op: Op, seed: int) -> tuple[float, float]:
    worst = [0.0, 0.0]
    for sample in op.samples():
        single = tensors(in_precision(sample, float32), seed)
        double = [t.double() if t.is_floating_point() else t for t in single]
        pairs = zip(
            evaluated(op, sample, float32, single),
            evaluated(op, sample, float64, double),
            strict=True,
        )
        worst = [max(w, distance(*pair)) for w, pair in zip(worst, pairs, strict=True)]
    return worst[0], worst[1]


def table() -> dict[str, tuple[float, float]]:
    """Return the errors of every operator that draws and does nothing."""
    impure = Effect.RANDOM | Effect.IO | Effect.STATE | Effect.FAIL
    found = {op.name: errors(op) for op in ALL if not op.effect & impure}
    return {name: (round(v, 2), round(g, 2)) for name, (v, g) in found.items() if v or g}


def main() -> None:
    """Print the table, and write it or compare it with an earlier one."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--compare", type=Path)
    parser.add_argument("--out", type=Path, default=RESULTS)
    options = parser.parse_args()
    found = table()
    before = json.loads(options.compare.read_text()) if options.compare else {}
    for name, (value, gradient) in found.items():
        old = before.get(name, (math.nan, math.nan))
        if not options.compare or tuple(old) != (value, gradient):
            earlier = f"   before {old[0]:8.2f} {old[1]:8.2f}" if options.compare else ""
            print(f"{name:36} {value:8.2f} {gradient:8.2f}{earlier}")
    options.out.write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()
