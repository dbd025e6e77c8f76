"""Residual programs of texts, each verified and compared with its program."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from pyrelay.ir.equality import alpha_equal
from pyrelay.ir.module import Module
from pyrelay.ir.verify import Stage, verify
from pyrelay.passes.partial_eval import partially_evaluated
from pyrelay.passes.transforms import expand_transforms
from pyrelay.runtime.compile.evaluator import evaluate
from tests.tolerances import assert_program
from tests.unit.passes.programs import body_of, folding, normal

LISTS: Final = "type L { Cons(float32, L), Nil }\n"


def derived(text: str) -> Module:
    """Return the module of a text in A-normal form, transforms expanded."""
    return expand_transforms(normal(text))


def residual(text: str, *arguments: Sequence[Any], fast_math: bool = False) -> Module:
    """Return the residual program of a text, which gives what the program gives at arguments, has
    its type, and is its own residual program."""
    module = derived(text)
    made = partially_evaluated(module, "main", folding, fast_math=fast_math)
    verify(made, Stage.DERIVED)
    assert made.functions["main"].ty == module.functions["main"].ty
    assert alpha_equal(partially_evaluated(made, "main", folding, fast_math=fast_math), made)
    for given in arguments:
        assert_program(evaluate(made, "main", given), evaluate(module, "main", given))
    return made


def left(text: str, *arguments: Sequence[Any], fast_math: bool = False) -> str:
    """Return the body that is left of the entry of a text; other functions are an error."""
    made = residual(text, *arguments, fast_math=fast_math)
    assert list(made.functions) == ["main"]
    return body_of(made)
