"""The manager runs passes in order, times them and verifies what they promise."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pyrelay.ir.expr import Function
from pyrelay.ir.module import Module
from pyrelay.ir.parser import parse_module
from pyrelay.ir.verify import Stage, VerifyError, verify
from pyrelay.passes.manager import Pass, Pipeline
from pyrelay.passes.pipeline import CHECKED, DERIVED, INFER, NORMAL, NORMAL_FORM, STRICT, compiled
from tests.unit.passes.programs import evaluate, folding

TEXT = """
def @square(%x: float32) -> float32 { %x * %x }
def @main(%x: float32) -> float32 { grad(@square)(%x) + @square(2.0) }
"""


def test_a_pipeline_takes_a_program_to_its_last_stage() -> None:
    module = compiled("main", folding).run(parse_module(TEXT), check=True)
    verify(module, Stage.FLAVOURED)
    assert float(evaluate(module, "main", (3.0,))) == 10.0


@pytest.mark.parametrize(
    ("pipeline", "stage"),
    [(CHECKED, Stage.TYPED), (NORMAL, Stage.ANF), (DERIVED, Stage.DERIVED)],
)
def test_each_pipeline_reaches_its_stage(pipeline: Pipeline, stage: Stage) -> None:
    verify(pipeline.run(parse_module(TEXT)), stage)


def test_passes_fit_together() -> None:
    for pipeline in (CHECKED, NORMAL, DERIVED, compiled("main")):
        gives = Stage.TRANSLATED
        for step in pipeline:
            assert step.needs is gives
            gives = step.gives


def test_steps_say_what_changed_and_how_long_it_took() -> None:
    module = NORMAL.run(parse_module(TEXT))
    (again,) = Pipeline((NORMAL_FORM,)).steps(module)
    assert not again.changed
    assert again.module is module
    assert again.seconds >= 0.0
    assert [s.name for s in NORMAL.steps(parse_module(TEXT))] == ["infer", "anf"]


def _without_bodies(module: Module) -> Module:
    def broken(function: Function) -> Function:
        return replace(function, result=None)

    return replace(module, functions={n: broken(f) for n, f in module.functions.items()})


def test_a_pass_that_breaks_its_promise_is_caught_if_asked() -> None:
    bad = Pass("bad", _without_bodies, Stage.TYPED, Stage.TYPED)
    pipeline = CHECKED.after("infer", bad)
    assert [p.name for p in pipeline] == ["infer", "bad"]
    pipeline.run(parse_module(TEXT))
    with pytest.raises(VerifyError):
        pipeline.run(parse_module(TEXT), check=True)


def test_a_pass_is_inserted_after_another_or_not_at_all() -> None:
    assert list(NORMAL.after("infer", STRICT)) == [INFER, STRICT, NORMAL_FORM]
    with pytest.raises(KeyError):
        NORMAL.after("nothing", STRICT)
