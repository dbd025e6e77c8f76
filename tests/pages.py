"""The pages of docs/reference, made from the declarations they are about."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Final

from pyrelay.diagnostics.catalogue import by_code
from pyrelay.diagnostics.diagnostic import Problem
from pyrelay.ir.calls.op_signature import signature
from pyrelay.ir.op import Missing, Op, Param
from pyrelay.ir.verify.scene import Invariant
from pyrelay.ir.verify.stages import INVARIANTS, Stage
from pyrelay.kernels.pipeline import CUT, all_passes
from pyrelay.lower_c.math import bounds
from pyrelay.operators.table import ALIASES, ALL
from pyrelay.operators.tiers import tier
from pyrelay.passes.base import Pass
from pyrelay.passes.manager import Pipeline
from pyrelay.passes.pipeline import DEBUGGED, EVALUATED, called
from pyrelay.runtime.compile.lowerings import OWN_BACKENDS

ERRORS = Path(__file__).parent / "errors"


def operators_page() -> str:
    """Return the page that lists every operator."""
    names: dict[str, list[str]] = {}
    for alias, name in ALIASES.items():
        names.setdefault(name, []).append(alias)
    rows = [_row(op, names.get(op.name, [])) for op in sorted(ALL, key=lambda op: op.name)]
    return "\n".join((*_OPERATORS, *rows, ""))


_OPERATORS = (
    "# Every operator",
    "",
    "Each call is followed by its aliases and, in brackets, by torch's name where that differs.",
    "`In a model` lists the hyper-parameters from which omitted weights are created. A composite",
    "is a body in primitives; scalar primitives are the functions of one element.",
    "",
    "| call | value | tier |",
    "|---|---|---|",
)


def _row(op: Op, aliases: list[str]) -> str:
    call = f"`{op.name}{_parameters(op)}`"
    also = "".join(f", `{alias}`" for alias in aliases)
    there = op.torch_name or ""
    torch_name = f" [`{there}`]" if there and there.split(".")[-1] != op.name else ""
    hyper = ", ".join(_parameter(p) for p in op.hyper)
    made = f" In a model: `{hyper}`." if hyper else ""
    return f"| {call}{also}{torch_name} | {_cell(op.doc + made)} | {tier(op).value} |"


def _parameters(op: Op) -> str:
    found = signature(op).parameters.values()
    return _cell(str(inspect.Signature([_shown(p) for p in found])))


def _shown(parameter: inspect.Parameter) -> inspect.Parameter:
    """Return a parameter without a default that says nothing: the mode of the model around it."""
    is_mode = parameter.default is Missing.MODE
    return parameter.replace(default=None) if is_mode else parameter


def _parameter(param: Param) -> str:
    missing = param.default is Missing.REQUIRED
    return f"{param.name}=" if missing else f"{param.name}={param.default!r}"


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")


def c_functions_page() -> str:
    """Return the page with the bounds of the errors of functions in generated C."""
    fast, exact = bounds("fast"), bounds("exact")
    rows = [
        f"| `{op}` | {fast[op]['f32']} | {fast[op]['f64']} | {_exact(of)} |"
        for op, of in exact.items()
    ]
    return "\n".join((*_C_FUNCTIONS, *rows, ""))


def _exact(of: Mapping[str, float]) -> str:
    low, high = min(of.values()), max(of.values())
    return f"{low}" if low == high else f"{low} to {high}"


_C_FUNCTIONS = (
    "# Functions in C",
    "",
    "How far functions of real numbers in generated C are at most from the exact values, in",
    "units in the last place, where results are normal numbers. `fast` functions are computed on",
    "whole vectors, `exact` ones lane by lane with the C library, those of float32 in float64.",
    "Everywhere NaN gives NaN, infinities give limits, and the sign of zero is kept.",
    "",
    "| function | fast, float32 | fast, float64 | exact |",
    "|---|---|---|---|",
)


def passes_page() -> str:
    """Return the page that lists the passes, and the pipeline of each target."""
    passes = all_passes().values()
    rows = [f"| `{p.name}` | {p.needs.value} | {_given(p)} | {p.summary()} |" for p in passes]
    return "\n".join((*_PASSES, *rows, "", *_targets(), ""))


_PASSES = (
    "# Passes",
    "",
    "A pass maps a module to a module. It needs a stage, and preserves it or brings the module to",
    "another: the [architecture](../architecture.md#stages) lists the invariants of each. Any of",
    "them runs on a text:",
    "",
    "    python -m pyrelay opt FILE.relay -p infer,anf,simplify --verify --time --diff",
    "",
    "| pass | needs | brings to | what it does |",
    "|---|---|---|---|",
)


TARGETS: Final[Mapping[str, Pipeline]] = {
    "evaluator": EVALUATED,
    "torch": called(),
    "debugger": DEBUGGED,
    "backends": CUT,
}
"""The pipelines, by what runs the programs."""


def _given(step: Pass) -> str:
    return "" if step.gives is None else step.gives.value


def _targets() -> Iterator[str]:
    yield "## Pipelines"
    yield ""
    yield "What `f.show(STAGE)` prints is the module behind the phase of that name."
    for name, pipeline in TARGETS.items():
        yield from ("", f"### {name}", "", "| phase | passes |", "|---|---|")
        for phase in pipeline:
            yield f"| {phase.name} | {_names(phase.passes)} |"
    yield ""
    for backend in OWN_BACKENDS:
        if backend.passes:
            yield f"The backend `{backend.name}` adds a phase `launched`: {_names(backend.passes)}."


def stages_table() -> str:
    """Return the stages as a table: which pass brings a module there, and which invariants hold
    beyond those of the stage it extends."""
    lines = ["| stage | pass | extends | invariants |", "|---|---|---|---|"]
    seen: dict[Stage, frozenset[Invariant]] = {}
    for stage, invariants in INVARIANTS.items():
        below = [s for s, known in seen.items() if known <= set(invariants)]
        base = max(below, key=lambda s: len(seen[s]), default=None)
        extended = "" if base is None else base.value
        new = [i for i in invariants if base is None or i not in seen[base]]
        made = [p for p in all_passes().values() if p.gives is stage and p.needs is not stage]
        brings = "translation" if base is None else _names(made)
        stated = "; ".join(i.name for i in new) or "no others"
        lines.append(f"| {stage.value} | {brings} | {extended} | {stated} |")
        seen[stage] = frozenset(invariants)
    return "\n".join(lines)


def _names(passes: Iterable[Pass]) -> str:
    return ", ".join(f"`{step.name}`" for step in passes)


def errors_page() -> str:
    """Return the page that explains every mistake, each with a program that makes it."""
    examples = _examples()
    sections = [_section(code, found, examples.get(code)) for code, found in by_code().items()]
    return "\n".join((*_ERRORS, *sections))


_ERRORS = (
    "# Error reference",
    "",
    "RL1xx are errors of the language, RL2xx of types, sizes and cases, RL3xx of derivatives,",
    "RL4xx of models, RL5xx of calls and at run time, RL6xx of the text format.",
    "",
)


def _section(code: str, found: list[type[Problem]], example: str | None) -> str:
    told = "\n\n".join(inspect.getdoc(entry) or "" for entry in found)
    shown = "" if example is None else f"\n```\n{example}```\n"
    return f"## {code}\n\n{told}\n{shown}"


def _examples() -> dict[str, str]:
    """Return the shortest rendering of each code that stands alone in a golden file."""
    shortest: dict[str, str] = {}
    for path in sorted(ERRORS.glob("*/*.txt")):
        text = path.read_text(encoding="utf-8")
        codes = re.findall(r"^\w+\[(RL\d+)\]", text, re.MULTILINE)
        if len(codes) == 1 and len(text) < len(shortest.get(codes[0], text + " ")):
            shortest[codes[0]] = text
    return shortest
