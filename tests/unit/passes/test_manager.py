"""Pipelines run each pass once, in order, on modules at the stages they need."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import pairwise
from typing import ClassVar, final

import pytest
import torch

from pyrelay import options
from pyrelay.ir.expr import Constant, Expr
from pyrelay.ir.module import Module, ModuleKey
from pyrelay.ir.traverse import rewrite
from pyrelay.ir.verify import Stage, VerifyError
from pyrelay.kernels.pipeline import CUT, all_passes
from pyrelay.passes.base import Context, Pass
from pyrelay.passes.insertion import insert
from pyrelay.passes.manager import Manager, Phase, Pipeline, Ran, StageError, run_passes, up_to
from pyrelay.passes.normalise.lowering import InferTypes, NormalForm
from pyrelay.passes.pipeline import EVALUATED, called
from pyrelay.passes.simplify.simplify import Simplify
from pyrelay.runtime.compile.program import Program
from pyrelay.text.parser import parse_module
from pyrelay.text.printer import to_text

TEXT = "def @main(%x: Tensor[(3,), float32]) { exp(%x) * 2f32 + (1f32 + 1f32) }"
MAIN = Context(entry="main")


@final
@dataclass(frozen=True)
class Counting(Pass):
    """Count runs and change nothing."""

    name: ClassVar = "counting"
    needs: ClassVar = Stage.ANF

    runs: list[Module] = field(default_factory=list[Module], compare=False)

    def run(self, module: Module, _: Context) -> Module:
        self.runs.append(module)
        return module


@final
@dataclass(frozen=True)
class ReplaceConstant(Pass):
    """Replace one number by another."""

    name: ClassVar = "replace-constant"
    needs: ClassVar = Stage.TYPED

    old: float = 2.0
    new: float = 3.0

    def run(self, module: Module, _: Context) -> Module:
        def change(node: Expr) -> Expr:
            if isinstance(node, Constant) and node.value == self.old:
                return Constant(self.new, ty=node.ty, span=node.span)
            return node

        return module.map_bodies(lambda function: rewrite(function.body, change))


@final
@dataclass(frozen=True)
class DropTypes(Pass):
    """Break what holds of a typed module."""

    name: ClassVar = "drop-types"
    needs: ClassVar = Stage.TYPED

    def run(self, module: Module, _: Context) -> Module:
        def change(node: Expr) -> Expr:
            return Constant(node.value, span=node.span) if isinstance(node, Constant) else node

        return module.map_bodies(lambda function: rewrite(function.body, change))


def test_a_pass_needs_its_stage() -> None:
    with pytest.raises(StageError, match="simplify needs a module at stage anf, not translated"):
        run_passes(parse_module(TEXT), Stage.TRANSLATED, (Simplify(),), MAIN)


def test_each_pass_is_reported_with_the_modules_around_it() -> None:
    seen: list[Ran] = []
    passes = (InferTypes(), NormalForm(), Simplify())
    module, stage = run_passes(
        parse_module(TEXT), Stage.TRANSLATED, passes, MAIN, observer=seen.append
    )
    assert [ran.step for ran in seen] == list(passes)
    assert [ran.stage for ran in seen] == [Stage.TYPED, Stage.ANF, Stage.ANF]
    assert seen[-1].after is module
    assert stage is Stage.ANF
    assert all(ran.after is after.before for ran, after in pairwise(seen))


def test_a_pass_that_breaks_the_module_is_found_where_it_stands() -> None:
    passes = (InferTypes(), DropTypes())
    run_passes(parse_module(TEXT), Stage.TRANSLATED, passes, MAIN)
    with pytest.raises(VerifyError):
        run_passes(parse_module(TEXT), Stage.TRANSLATED, passes, MAIN, verified=True)


def test_pipelines_that_begin_alike_share_their_modules() -> None:
    counting = Counting()
    first = (Phase("typed", (InferTypes(),)), Phase("anf", (NormalForm(), counting)))
    manager = Manager(parse_module(TEXT), Stage.TRANSLATED, MAIN)
    module = manager.run(first)
    assert manager.run((*first, Phase("changed", (ReplaceConstant(),)))) is not module
    assert manager.run(first) is module
    assert counting.runs == [module]


def test_an_idempotent_pass_is_skipped_on_its_own_result() -> None:
    seen: list[str] = []
    manager = Manager(
        parse_module(TEXT), Stage.TRANSLATED, MAIN, observer=lambda ran: seen.append(ran.step.name)
    )
    passes = (InferTypes(), NormalForm(), Simplify(), Counting(), Simplify())
    manager.run((Phase("all", passes),))
    assert seen == ["infer", "anf", "simplify", "counting"]


def test_phases_whose_stage_is_reached_are_skipped() -> None:
    counting = Counting()
    typed, _ = run_passes(parse_module(TEXT), Stage.TRANSLATED, (InferTypes(),), MAIN)
    manager = Manager(typed, Stage.TYPED, MAIN)
    phases = (Phase("typed", (InferTypes(),)), Phase("anf", (NormalForm(), counting)))
    assert manager.run(phases[:1]) is typed
    assert manager.run(phases) is counting.runs[0]


def test_data_that_a_pass_attaches_stays_with_the_module() -> None:
    key: ModuleKey[tuple[str, ...]] = ModuleKey("names")
    module = parse_module(TEXT)
    assert module.attribute(key) is None
    attached = module.with_attribute(key, ("main",))
    assert attached.map_bodies(lambda f: f.body).attribute(key) == ("main",)
    assert attached.with_functions({}).attribute(key) == ("main",)


@pytest.mark.parametrize("phases", [EVALUATED, called(()), CUT])
def test_every_phase_of_a_pipeline_can_be_asked_for(phases: Pipeline) -> None:
    names = [phase.name for phase in phases]
    assert len(set(names)) == len(names)
    assert [up_to(phases, name)[-1].name for name in names] == names
    with pytest.raises(KeyError):
        up_to(phases, "nothing")


def test_every_pass_has_a_name_of_its_own_and_a_summary() -> None:
    for name, step in all_passes().items():
        assert step.name == name
        assert step.summary()
        assert type(step)() == step


@pytest.mark.parametrize("lowering", ["torch", "evaluator", "torch-regions"])
def test_a_pass_from_outside_joins_the_pipelines_while_it_is_inserted(lowering: str) -> None:
    program = Program(parse_module(TEXT), "main")
    x, cpu = torch.zeros(3), torch.device("cpu")
    with options(lowering=lowering, verify=True):
        assert program.compiled(cpu)(x).tolist() == [4.0] * 3
        with insert(ReplaceConstant(), after="infer"):
            assert program.compiled(cpu)(x).tolist() == [5.0] * 3
            assert "3.0f32" in to_text(program.typed)
        assert program.compiled(cpu)(x).tolist() == [4.0] * 3
