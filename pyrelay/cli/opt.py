"""`opt FILE.relay -p PASS,...`: run passes on the program in a text.

A pass is one of the package (`passes.pipeline.all_passes`) or `MODULE:NAME`, a `Pass` of a module
that can be imported. A pass whose stage the program has not reached is preceded by the passes that
bring it there.
"""

from __future__ import annotations

import difflib
import importlib
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from ..diagnostics.misspelt import nearest
from ..ir.module import Module
from ..ir.verify import Stage, VerifyError, includes, verify
from ..kernels.fusion.fuse import Fuse
from ..kernels.pipeline import all_passes
from ..passes.base import Context, Pass
from ..passes.manager import Ran, run_passes
from ..passes.normalise.lowering import InferTypes, NormalForm
from ..passes.transforms import ExpandTransforms
from ..text.printer import is_typed, to_text
from .load import LoadError, entry_of, load_text

_LOWERING: Final = (InferTypes(), NormalForm(), ExpandTransforms(), Fuse())
"""The passes that bring a program from stage to stage."""


def opt(
    file: Path,
    names: Sequence[str],
    entry: str | None,
    *,
    verified: bool = False,
    timed: bool = False,
    diffed: bool = False,
) -> int:
    """Print the module after passes; with `diffed`, what each of them changed instead. Times go to
    stderr. Raises LoadError, CheckError and VerifyError."""
    chosen = [_pass(name) for name in names]
    parsed = load_text(file)
    context = Context(entry=entry_of(parsed, entry), evaluate=_evaluate)
    module = parsed.ir
    stage = _reached(module)

    def observe(ran: Ran) -> None:
        if timed:
            sys.stderr.write(f"{ran.step.name}: {1e3 * ran.seconds:.1f} ms\n")
        if diffed:
            sys.stdout.write(_difference(ran))

    for step in chosen:
        for needed in (*_before(step, stage), step):
            module, stage = run_passes(
                module, stage, (needed,), context, verified=verified, observer=observe
            )
    if not diffed:
        sys.stdout.write(to_text(module))
    return 0


def _evaluate(module: Module, entry: str) -> Any:
    from ..runtime.compile.evaluator import evaluate  # brings in torch

    return evaluate(module, entry, (), dispatched=False)


def _reached(module: Module) -> Stage:
    """Return the stage of a module that was read."""
    if not is_typed(module):
        return Stage.TRANSLATED
    for stage in (Stage.DERIVED, Stage.ANF):
        try:
            verify(module, stage)
        except VerifyError:
            continue
        return stage
    return Stage.TYPED


def _before(step: Pass, stage: Stage) -> Sequence[Pass]:
    """Return the passes that bring a module to the stage that a pass needs."""
    found: list[Pass] = []
    for lowering in _LOWERING:
        if includes(stage, step.needs):
            break
        if lowering.gives is not None and not includes(stage, lowering.gives):
            found.append(lowering)
            stage = lowering.gives
    return found


def _difference(ran: Ran) -> str:
    before, after = to_text(ran.before).splitlines(), to_text(ran.after).splitlines()
    name = ran.step.name
    lines = difflib.unified_diff(before, after, f"before {name}", f"after {name}", lineterm="")
    return "".join(f"{line}\n" for line in lines)


def _pass(name: str) -> Pass:
    if ":" in name:
        return _from_outside(name)
    passes = all_passes()
    if name in passes:
        return passes[name]
    near = nearest(name, passes)
    known = f"did you mean {near}?" if near else f"there are {', '.join(passes)}"
    raise LoadError(f"there is no pass {name}; {known}")


def _from_outside(name: str) -> Pass:
    """Return the pass `MODULE:NAME`: an instance of `Pass`, or a class whose options all have
    defaults."""
    module_name, _, attribute = name.partition(":")
    if "" not in sys.path:
        sys.path.insert(0, "")
    try:
        found = getattr(importlib.import_module(module_name), attribute)
    except (ImportError, AttributeError) as error:
        raise LoadError(f"there is no pass {name}: {error}") from None
    made = found() if isinstance(found, type) and issubclass(found, Pass) else found
    if not isinstance(made, Pass):
        raise LoadError(f"{name} is a {type(made).__name__}, not a pyrelay.passes.Pass")
    return made
