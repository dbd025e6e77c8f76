"""Matches mean the same in every executor and after every pass, and have the right gradients."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from hypothesis import given, settings

from pyrelay.analysis.coverage import coverage
from pyrelay.infer import infer
from pyrelay.ir.equality import alpha_equal
from pyrelay.ir.expr import Match
from pyrelay.ir.module import Module
from pyrelay.ir.normal_form import to_anf
from pyrelay.ir.traverse import post_order
from pyrelay.ir.verify import Stage, verify
from pyrelay.passes.closures import first_order
from pyrelay.passes.normalise.flavours import with_flavours
from pyrelay.passes.partial_eval import partially_evaluated
from pyrelay.passes.simplify.cse import share
from pyrelay.passes.simplify.dce import remove_dead
from pyrelay.passes.simplify.fold import fold
from pyrelay.passes.simplify.inline import inline
from pyrelay.passes.simplify.simplify import simplify
from pyrelay.passes.transforms import expand_transforms
from pyrelay.runtime.compile.evaluator import evaluate
from pyrelay.runtime.host.compiled import compile_module
from pyrelay.text.parser import parse_module
from pyrelay.text.printer import to_text
from tests.match_strategies import PARAMS, MatchProgram, match_programs
from tests.tolerances import assert_program

CPU = torch.device("cpu")
SOME = settings(max_examples=settings().max_examples // 4)
"""Each example is read, typed and run several times."""


def _value(module: Module, entry: str) -> Any:
    return evaluate(module, entry, ())


PASSES: dict[str, tuple[Callable[[Module], Module], Stage]] = {
    "share": (share, Stage.ANF),
    "remove dead": (lambda m: remove_dead(m, "main"), Stage.ANF),
    "first order": (lambda m: first_order(m, "main"), Stage.FIRST_ORDER),
    "fold": (lambda m: fold(m, _value), Stage.DERIVED),
    "inline": (lambda m: inline(m, "main"), Stage.DERIVED),
    "simplify": (lambda m: simplify(m, "main", _value), Stage.DERIVED),
    "partial evaluation": (lambda m: partially_evaluated(m, "main", _value), Stage.DERIVED),
}


@pytest.mark.parametrize("name", PASSES)
def test_a_pass_keeps_the_meaning(name: str) -> None:
    change, stage = PASSES[name]

    @SOME
    @given(match_programs())
    def check(program: MatchProgram) -> None:
        module = program.module
        changed = change(module)
        verify(changed, stage)
        expected = evaluate(module, "main", program.arguments())
        assert_program(evaluate(changed, "main", program.arguments()), expected)

    check()


@SOME
@given(match_programs())
def test_compiled_code_gives_the_value_of_the_evaluator(program: MatchProgram) -> None:
    module = program.module
    expected = evaluate(module, "main", program.arguments())
    plain = with_flavours(module)
    assert_program(compile_module(plain, "main", CPU)(*program.arguments()), expected)
    simple = with_flavours(simplify(module, "main", _value))
    verify(simple, Stage.FLAVOURED)
    assert_program(compile_module(simple, "main", CPU)(*program.arguments()), expected)


@SOME
@given(match_programs())
def test_a_gradient_is_what_autograd_finds(program: MatchProgram) -> None:
    text = f"""{program.text}
        def @derived({PARAMS}) {{ value_and_grad{{wrt=(0,), single=False}}(@main)(%x, %n, %b) }}
    """
    derived = expand_transforms(to_anf(infer(parse_module(text))))
    verify(derived, Stage.DERIVED)
    x, n, b = program.arguments()
    value, (gradient,) = evaluate(derived, "derived", [x, n, b])
    x = x.requires_grad_()
    expected = evaluate(program.module, "main", [x, n, b], grad=True)
    assert_program(value, expected.detach())
    found = torch.zeros_like(x)
    if expected.requires_grad:
        (found,) = torch.autograd.grad(expected, [x], materialize_grads=True)
    assert_program(gradient, found)
    compiled = with_flavours(simplify(derived, "derived", _value))
    again, (compiled_gradient,) = compile_module(compiled, "derived", CPU)(*program.arguments())
    assert_program(again, expected.detach())
    assert_program(compiled_gradient, found)


@SOME
@given(match_programs())
def test_clauses_that_never_win_can_go(program: MatchProgram) -> None:
    """A clause that is reported as unreachable changes nothing, and the match stays complete
    without it."""
    typed = infer(parse_module(program.text))
    for node in post_order(typed.functions["main"]):
        if isinstance(node, Match):
            found = coverage(node, typed.adts)
            assert found.missing == ()
            kept = [c for i, c in enumerate(node.clauses) if i not in found.unreachable]
            assert kept
            left = Match(node.value, tuple(kept), ty=node.ty, span=node.span)
            assert coverage(left, typed.adts).missing == ()
            assert coverage(left, typed.adts).unreachable == {}


@SOME
@given(match_programs())
def test_a_program_of_matches_reads_back(program: MatchProgram) -> None:
    module = program.module
    assert alpha_equal(parse_module(to_text(module)), module)
