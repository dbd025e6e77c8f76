"""Programs as text, stage by stage, for `f.show`."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Final

import torch

from ..config import current
from ..ir.expr import type_of
from ..ir.printer import to_text
from ..ir.traverse import bound_vars, post_order
from ..ir.types import show
from ..lower_triton.shown import kernels_text, reading_again, without_text
from ..passes.regions.explain import explain, explain_calls, summary_of
from ..translate.printing.text import to_python

if TYPE_CHECKING:
    from .program import Program

_CPU: Final = torch.device("cpu")

STAGES: Final[Mapping[str, Callable[[Program], str]]] = {
    "translated": lambda p: to_text(p.translated),
    "typed": lambda p: to_text(p.typed),
    "python": lambda p: _python(p),
    "anf": lambda p: to_text(p.anf),
    "grad": lambda p: to_text(p.derived),
    "simplified": lambda p: to_text(p.simplified),
    "regions": lambda p: _regions(p),
    "triton": lambda p: kernels_text(p.regions, p.cut.kernels),
    "host": lambda p: p.now(_CPU).as_torch(_CPU).source,
}
"""What each stage shows."""


def difference(show: Callable[[str], str], before: str, after: str) -> str:
    """Give what changed between two stages, as a unified diff."""
    first, second = show(before).splitlines(), show(after).splitlines()
    return "\n".join(difflib.unified_diff(first, second, before, after, lineterm=""))


def _python(program: Program) -> str:
    """Give the typed program as Python; what the user named keeps its name."""
    nodes = (n for f in program.typed.functions.values() for n in post_order(f))
    return to_python(program.anf, {var for node in nodes for var in bound_vars(node)})


_QUOTED: Final = len("def @`")


def _regions(program: Program) -> str:
    """Give the program in kernels and regions, with what each kernel is and costs."""
    lines: list[str] = []
    heads = {f"def @`{name}`": name for name in program.cut.kernels}
    for line in to_text(program.regions).splitlines():
        name = heads.get(line[: line.find("`", _QUOTED) + 1])
        if name is not None:
            lines.append(f"/* {summary_of(program.regions.functions[name])} */")
        lines.append(line)
    return "\n".join(lines) + "\n"


_RUN_BY: Final = {
    "auto": "torch runs it (PYRELAY_LOWERING=auto); `triton` makes kernels of it, for GPUs",
    "torch": "torch runs it (PYRELAY_LOWERING=torch); `triton` makes kernels of it, for GPUs",
    "torch-regions": "torch runs it (PYRELAY_LOWERING=torch-regions), kernel by kernel",
    "triton": "kernels run it on a GPU (PYRELAY_LOWERING=triton)",
    "triton-interpret": "Triton's interpreter runs it (PYRELAY_LOWERING=triton-interpret)",
    "debug": "torch runs it, line by line, for a debugger",
    "evaluator": "the reference evaluator runs it (PYRELAY_LOWERING=evaluator), call by call",
}
"""What runs a program under each value of the option `lowering`, and under a debugger."""


def explanation(program: Program) -> str:
    """Return what a program becomes by the lowering in effect: the calls of torch that it makes, or
    what is fused into kernels, what is not, and why."""
    lowering = "debug" if program.is_debugged else current().lowering
    is_cut = lowering in ("triton", "triton-interpret", "torch-regions")
    module = program.derived if lowering == "evaluator" else program.simplified
    text = _fused(program) if is_cut else explain_calls(module, program.entry)
    head, _, rest = text.partition("\n")
    return f"{head}\n{_RUN_BY[lowering]}\n{rest}"


def _fused(program: Program) -> str:
    text = explain(program.cut, program.entry)
    kernels = program.regions, program.cut.kernels
    for head, found in (
        ("kernels that run as calls of torch", without_text(*kernels)),
        (
            "rows that are read again where registers do not hold them",
            reading_again(*kernels),
        ),
    ):
        if found:
            lines = [f"  {name}: {what}" for name, what in found.items()]
            text = "\n".join((text, head, *lines, ""))
    return text


def stage_text(program: Program, stage: str) -> str:
    """Give the program at a stage. Raises ValueError for a stage that does not exist."""
    give = STAGES.get(stage)
    if give is None:
        raise ValueError(f"there is no stage {stage!r}; there are source, {', '.join(STAGES)}")
    return give(program)


def type_text(program: Program, skip: int = 0) -> str:
    """Give the type of the entry in the user's notation, with the equations it assumes; without
    the first `skip` parameters."""
    function = program.function
    params = ", ".join(f"{p.name}: {show(type_of(p))}" for p in function.params[skip:])
    text = f"({params}) -> {show(program.type.result)}"
    assumed = " and ".join(map(str, function.assumptions))
    return f"{text} where {assumed}" if assumed else text
