"""Programs as text, stage by stage, for `f.show`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import chain
from typing import Final

import torch

from ...config import current
from ...ir.traverse import bound_vars, nodes_of
from ...kernels.backend import Backend, KernelFunction, ProgramFunction
from ...kernels.explain import explain, explain_calls, summary_of
from ...kernels.gradient_forms import explain_gradients
from ...kernels.outlined import outlined_of
from ...kernels.residuals import explain_saved
from ...text.printer import to_text
from ...to_python.text import to_python
from .kernels import Kernels
from .lowerings import Plain, all_backends
from .program import Program

_CPU: Final = torch.device("cpu")

STAGES: Final[Mapping[str, Callable[[Program], str]]] = {
    "translated": lambda p: to_text(p.translated),
    "typed": lambda p: to_text(p.typed),
    "python": lambda p: _python(p),
    "anf": lambda p: to_text(p.anf),
    "grad": lambda p: to_text(p.at("grad")),
    "simplified": lambda p: to_text(p.at("simplified")),
    "regions": lambda p: _regions(p),
    "host": lambda p: p.now(_CPU).as_torch(_CPU).source,
}
"""A description of each stage."""


def _python(program: Program) -> str:
    """Return the typed program as Python; what the user named keeps its name."""
    nodes = nodes_of(program.typed)
    return to_python(program.anf, {var for node in nodes for var in bound_vars(node)})


_QUOTED: Final = len("def @`")


def _regions(program: Program) -> str:
    """Return the program in kernels and regions, with what each kernel is and costs."""
    lines: list[str] = []
    module = program.regions
    groups = outlined_of(module).groups
    heads = {f"def @`{name}`": name for name in groups}
    for line in to_text(module).splitlines():
        name = heads.get(line[: line.find("`", _QUOTED) + 1])
        if name is not None:
            lines.append(f"/* {summary_of(groups[name])} */")
        lines.append(line)
    return "\n".join(lines) + "\n"


def explanation(program: Program) -> str:
    """Return the form of a program under the lowering in effect: its calls of torch, or its
    kernels, the code outside of them, and why."""
    lowering = program.lowering
    match lowering:
        case Plain.TORCH:
            text = explain_calls(program.simplified, program.entry)
            option = f"PYRELAY_LOWERING={current().lowering}"
            what = f"torch runs it ({option}); `triton` makes kernels of it, for GPUs"
        case Plain.DEBUGGER:
            text = explain_calls(program.simplified, program.entry)
            what = "torch runs it, line by line, for a debugger"
        case Plain.EVALUATOR:
            text = explain_calls(program.derived, program.entry)
            what = "the reference evaluator runs it (PYRELAY_LOWERING=evaluator), call by call"
        case Backend():
            text = _fused(program, lowering)
            what = f"{lowering.description} (PYRELAY_LOWERING={current().lowering})"
    head, _, rest = text.partition("\n")
    saved = explain_saved(program.derived)
    kept = "\n".join(("", "gradients save", *saved, "")) if saved else ""
    forms = explain_gradients(program.simplified) if lowering is not Plain.EVALUATOR else []
    taken = "\n".join(("", "updates take gradients as", *forms, "")) if forms else ""
    return f"{head}\n{what}\n{rest}{kept}{taken}"


def _fused(program: Program, backend: Backend) -> str:
    text = explain(program.cut(backend), program.entry)
    found: dict[str, list[str]] = {}
    findings = backend.findings(_kernels_of(program, backend))
    for finding in chain(findings, backend.function_findings(_functions_of(program, backend))):
        found.setdefault(finding.heading, []).append(f"  {finding.kernel}: {finding.text}")
    for heading, lines in found.items():
        text = "\n".join((text, heading, *lines, ""))
    return text


def _kernels_of(program: Program, backend: Backend) -> list[KernelFunction]:
    groups = outlined_of(program.cut(backend)).groups
    return [KernelFunction(name, group) for name, group in groups.items()]


def _texts(program: Program, backend: Backend) -> str:
    """Return the text of the functions, kernels and regions that a backend makes of a program."""
    functions = map(backend.function_text, _functions_of(program, backend))
    kernels = map(backend.text, _kernels_of(program, backend))
    outlined = Kernels(backend, program.launched(backend), _CPU)
    regions = map(backend.region_text, outlined.regions())
    return "\n\n".join((*filter(None, functions), *kernels, *filter(None, regions)))


def _functions_of(program: Program, backend: Backend) -> list[ProgramFunction]:
    """Return the functions of a program that are no kernels and no regions."""
    cut, launched = program.cut(backend), program.launched(backend)
    outlined = outlined_of(cut)
    taken = {*outlined.groups, *outlined.regions}
    return [ProgramFunction(n, launched) for n in cut.functions if n not in taken]


def stage_text(program: Program, stage: str) -> str:
    """Return the program at a stage. Raises ValueError for a stage that does not exist."""
    text = STAGES.get(stage)
    if text is not None:
        return text(program)
    backend = all_backends().get(stage)
    if backend is None:
        known = ("source", *STAGES, *all_backends())
        raise ValueError(f"there is no stage {stage!r}; there are {', '.join(known)}")
    return _texts(program, backend)
