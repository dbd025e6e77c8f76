"""`opt FILE.relay -p PASS,...`: what passes make of the program in a text."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, final

from ..diagnostics.misspelt import nearest
from ..ir.module import Module
from ..ir.printer import is_typed, to_text
from ..ir.verify import Stage, VerifyError, verify
from ..passes.commute import pool_first
from ..passes.cse import share
from ..passes.dce import remove_dead
from ..passes.effects import with_flavours
from ..passes.first_order import first_order
from ..passes.fold import fold
from ..passes.grad import expand_transforms
from ..passes.infer import infer
from ..passes.inline import inline
from ..passes.normal_form import to_anf
from ..passes.simplify import simplify
from .load import LoadError
from .texts import entry_of, load_text


@final
@dataclass(frozen=True, slots=True)
class Pass:
    """A pass on the command line: the stage it needs, and the pass; it gets the entry too."""

    needs: Stage | None
    run: Callable[[Module, str], Module]
    doc: str


def _evaluate(module: Module, entry: str) -> Any:
    from ..runtime.evaluator import evaluate  # brings in torch

    return evaluate(module, entry, (), dispatched=False)


PASSES: Final[Mapping[str, Pass]] = {
    "infer": Pass(None, lambda m, _: infer(m), "types for every expression"),
    "anf": Pass(Stage.TYPED, lambda m, _: to_anf(m), "a name for every value"),
    "inline": Pass(Stage.ANF, inline, "calls replaced by bodies"),
    "fold": Pass(Stage.ANF, lambda m, _: fold(m, _evaluate), "what is known is evaluated"),
    "cse": Pass(Stage.ANF, lambda m, _: share(m), "equal values computed once"),
    "dce": Pass(Stage.ANF, remove_dead, "what nothing uses goes"),
    "simplify": Pass(
        Stage.ANF, lambda m, e: simplify(m, e, _evaluate), "inline, fold, cse and dce, in rounds"
    ),
    "pool-first": Pass(Stage.ANF, lambda m, _: pool_first(m), "monotone functions behind pools"),
    "grad": Pass(Stage.ANF, lambda m, _: expand_transforms(m), "derivatives written out"),
    "first-order": Pass(Stage.ANF, first_order, "functions as values become data"),
    "flavours": Pass(Stage.ANF, lambda m, _: with_flavours(m), "blocks split by their effects"),
}
"""Every pass by its name."""


def opt(file: Path, names: Sequence[str], entry: str | None) -> int:
    """Print the module after passes. Raises LoadError and CheckError."""
    chosen = [_pass(name) for name in names]
    module = load_text(file)
    start = entry_of(module, entry)
    found = module.ir
    for step in chosen:
        found = step.run(_prepared(found, step.needs), start)
    sys.stdout.write(to_text(found))
    return 0


def _pass(name: str) -> Pass:
    if name in PASSES:
        return PASSES[name]
    near = nearest(name, PASSES)
    known = f"did you mean {near}?" if near else f"there are {', '.join(PASSES)}"
    raise LoadError(f"there is no pass {name}; {known}")


def _prepared(module: Module, stage: Stage | None) -> Module:
    """Give the module at the stage that a pass needs."""
    if stage is None:
        return module
    typed = module if is_typed(module) else infer(module)
    if stage is Stage.TYPED:
        return typed
    try:
        verify(typed, Stage.ANF)
    except VerifyError:
        return to_anf(typed)
    return typed
