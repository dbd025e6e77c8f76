"""Residual programs of random programs have their values, types, output and failures, in order."""

from __future__ import annotations

import contextlib
import io
from dataclasses import replace
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from pyrelay import RelayError
from pyrelay.ir.equality import alpha_equal
from pyrelay.ir.expr import Call, Constant, GlobalVar
from pyrelay.ir.module import Module
from pyrelay.ir.types import as_arguments
from pyrelay.ir.verify import Stage, verify
from pyrelay.operators.host.failing import AssertionFailed
from pyrelay.passes.partial_eval import partially_evaluated
from pyrelay.runtime.compile.evaluator import evaluate
from tests.strategies import Draw, Program, programs
from tests.tolerances import assert_program


def value_of(module: Module, entry: str) -> Any:
    return evaluate(module, entry, ())


def residual(module: Module) -> Module:
    """Return the residual program of `main`, which has its type and is its own residual program."""
    made = partially_evaluated(module, "main", value_of)
    verify(made, Stage.DERIVED)
    assert made.functions["main"].ty == module.functions["main"].ty
    assert alpha_equal(partially_evaluated(made, "main", value_of), made)
    return made


def observed(module: Module, arguments: list[Any]) -> tuple[Any, str, str]:
    """Return the value of `main`, its output and the message that it stopped with."""
    written = io.StringIO()
    try:
        with contextlib.redirect_stdout(written):
            value = evaluate(module, "main", arguments)
    except (RelayError, AssertionFailed, ArithmeticError) as error:
        return None, written.getvalue(), str(error).splitlines()[0]
    return value, written.getvalue(), ""


def expect_same(made: Module, program: Program) -> None:
    """Compare what is observed of a module and of a program."""
    found, expected = (observed(m, program.arguments()) for m in (made, program.module))
    assert found[1:] == expected[1:]
    if expected[0] is not None:
        assert_program(found[0], expected[0])


@st.composite
def known_in_part(draw: Draw) -> Program:
    """Draw a program with some of its numbers known."""
    program = draw(programs(effects=True, output=True))
    base = program.module.functions["main"]
    known = draw(st.sets(st.sampled_from(base.params[3:]), min_size=1))
    values = dict(zip(base.params, program.arguments(), strict=True))
    params = tuple(replace(p) for p in base.params)
    args = tuple(
        Constant(values[old], old.ty, span=new.span) if old in known else new
        for old, new in zip(base.params, params, strict=True)
    )
    whole = GlobalVar("whole", span=base.span)
    own = as_arguments(base.type_params)
    call = Call(whole, args, type_args=own, ty=base.result, span=base.span)
    functions = {("whole" if n == "main" else n): f for n, f in program.module.functions.items()}
    functions["main"] = replace(base, params=params, body=call)
    return replace(program, module=Module(functions, program.module.adts))


@given(programs(effects=True, output=True))
def test_a_residual_program_prints_and_stops_as_the_program_does(program: Program) -> None:
    expect_same(residual(program.module), program)


@given(known_in_part())
def test_a_program_that_knows_some_numbers_prints_and_stops_as_it_did(program: Program) -> None:
    expect_same(residual(program.module), program)
