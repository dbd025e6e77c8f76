"""Every pass and every executor keeps what a program means, whatever the program.

The reference evaluator says what it means. Each pass must also give what the verifier accepts at
the stage it promises.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from hypothesis import given

from pyrelay.infer import infer
from pyrelay.ir.equality import alpha_equal
from pyrelay.ir.module import Module
from pyrelay.ir.normal_form import to_anf
from pyrelay.ir.verify import Stage, verify
from pyrelay.passes.closures import first_order
from pyrelay.passes.normalise.flavours import with_flavours
from pyrelay.passes.partial_eval import partially_evaluated
from pyrelay.passes.simplify.cse import share
from pyrelay.passes.simplify.dce import remove_dead
from pyrelay.passes.simplify.fold import fold
from pyrelay.passes.simplify.inline import inline
from pyrelay.passes.simplify.promote_refs import promote_refs
from pyrelay.passes.simplify.simplify import simplify
from pyrelay.runtime.compile.evaluator import evaluate
from pyrelay.runtime.host.compiled import compile_module
from pyrelay.text.parser import parse_module
from pyrelay.text.printer import to_text
from tests.strategies import Program, programs
from tests.tolerances import assert_program
from tests.trees import as_trees

CPU = torch.device("cpu")
PASSES: dict[str, tuple[Callable[[Module], Module], Stage]] = {
    "effects": (with_flavours, Stage.FLAVOURED),
    "normal form": (to_anf, Stage.ANF),
    "cells": (promote_refs, Stage.ANF),
    "share": (share, Stage.ANF),
    "remove dead": (lambda m: remove_dead(m, "main"), Stage.ANF),
    "first order": (lambda m: first_order(m, "main"), Stage.FIRST_ORDER),
    "fold": (lambda m: fold(m, _value), Stage.DERIVED),
    "inline": (lambda m: inline(m, "main"), Stage.DERIVED),
    "simplify": (lambda m: simplify(m, "main", _value), Stage.DERIVED),
    "partial evaluation": (lambda m: partially_evaluated(m, "main", _value), Stage.DERIVED),
}
FINAL = ("effects", "normal form", "share", "remove dead", "first order", "partial evaluation")
"""Passes that do all there is to do at once; dead cells in dead cells go one after the other."""


def _value(module: Module, entry: str) -> Any:
    return evaluate(module, entry, ())


@pytest.mark.parametrize("name", PASSES)
def test_a_pass_keeps_the_meaning(name: str) -> None:
    change, stage = PASSES[name]

    @given(programs(effects=True))
    def check(program: Program) -> None:
        changed = change(program.module)
        verify(changed, stage)
        expected = evaluate(program.module, "main", program.arguments())
        assert_program(evaluate(changed, "main", program.arguments()), expected)

    check()


@pytest.mark.parametrize("name", FINAL)
def test_a_pass_has_nothing_to_do_on_its_own_result(name: str) -> None:
    change, _ = PASSES[name]

    @given(programs(effects=name != "remove dead"))
    def check(program: Program) -> None:
        once = change(program.module)
        assert alpha_equal(change(once), once)

    check()


@given(programs())
def test_normal_form_keeps_the_meaning_of_trees(program: Program) -> None:
    tree = as_trees(program.module)
    verify(tree, Stage.TYPED)
    normal = to_anf(tree)
    verify(normal, Stage.ANF)
    expected = evaluate(program.module, "main", program.arguments())
    assert_program(evaluate(tree, "main", program.arguments()), expected)
    assert_program(evaluate(normal, "main", program.arguments()), expected)


@given(programs(effects=True))
def test_inference_finds_the_types_again(program: Program) -> None:
    bare = parse_module(to_text(program.module).replace(", typed]", "]", 1))
    again = infer(bare)
    verify(again, Stage.TYPED)
    for name, function in program.module.functions.items():
        assert again.functions[name].ty == function.ty
    expected = evaluate(program.module, "main", program.arguments())
    assert_program(evaluate(again, "main", program.arguments()), expected)


@given(programs(effects=True))
def test_compiled_code_gives_the_value_of_the_evaluator(program: Program) -> None:
    compiled = compile_module(with_flavours(program.module), "main", CPU)
    expected = evaluate(program.module, "main", program.arguments())
    assert_program(compiled(*program.arguments()), expected)
    assert_program(compiled(*program.arguments()), expected)


@given(programs(effects=True))
def test_simplified_code_compiles_to_the_same_value(program: Program) -> None:
    simplified = with_flavours(simplify(program.module, "main", _value))
    verify(simplified, Stage.FLAVOURED)
    expected = evaluate(program.module, "main", program.arguments())
    assert_program(compile_module(simplified, "main", CPU)(*program.arguments()), expected)
