"""The pipelines: every order of passes that the compiler uses, written out.

What a pass takes besides the module (the entry function, the evaluator for constants) is fixed
when a pipeline is made; a `Pass` itself goes from module to module.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ..ir.verify import Stage
from .effects import with_flavours
from .grad import expand_transforms
from .infer import infer
from .manager import Pass, Pipeline
from .normal_form import to_anf
from .simplify import simplify

if TYPE_CHECKING:
    from .fold import Evaluate

INFER: Final = Pass("infer", infer, Stage.TRANSLATED, Stage.TYPED)
STRICT: Final = Pass("infer", lambda m: infer(m, strict=True), Stage.TRANSLATED, Stage.TYPED)
NORMAL_FORM: Final = Pass("anf", to_anf, Stage.TYPED, Stage.ANF)
EXPAND: Final = Pass("expand", expand_transforms, Stage.ANF, Stage.DERIVED)
FLAVOURS: Final = Pass("flavours", with_flavours, Stage.DERIVED, Stage.FLAVOURED)

CHECKED: Final = Pipeline((INFER,))
"""What checking a program takes."""
NORMAL: Final = Pipeline((INFER, NORMAL_FORM))
"""A program in A-normal form, its transforms still in it."""
DERIVED: Final = Pipeline((INFER, NORMAL_FORM, EXPAND))
"""A program that the reference evaluator can run."""


def simplifying(entry: str, evaluate: Evaluate | None = None) -> Pass:
    """Give the pass that simplifies what a function reaches, transforms expanded."""
    return Pass("simplify", lambda m: simplify(m, entry, evaluate), Stage.DERIVED, Stage.DERIVED)


def compiled(entry: str, evaluate: Evaluate | None = None) -> Pipeline:
    """Give everything between translation and code for the host."""
    return Pipeline(
        (INFER, NORMAL_FORM, EXPAND, simplifying(entry, evaluate), FLAVOURS),
    )
