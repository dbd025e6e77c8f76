"""Long and deeply nested programs, built as IR, go through every stage, with their gradients."""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
import torch

from pyrelay.ir.equality import alpha_equal, structural_hash
from pyrelay.ir.module import Module
from pyrelay.ir.verify import Stage, verify
from pyrelay.runtime.compile.program import Program
from pyrelay.text.json import from_json, to_json
from pyrelay.text.parser import parse_module
from pyrelay.text.printer import to_text
from tests.scale.programs import alternating, chain, nested, with_gradient

CPU = torch.device("cpu")
X = torch.tensor([0.3, -0.7], dtype=torch.float64)
STAGES = ("typed", "anf", "derived", "simplified", "compiled")


def compiled(module: Module, entry: str = "main") -> Any:
    return Program(module, entry).compiled(CPU)


def lengths(quick: int, full: int) -> pytest.MarkDecorator:
    patient = (pytest.mark.slow, pytest.mark.timeout(1800))
    return pytest.mark.parametrize("size", [quick, pytest.param(full, marks=patient)])


def sines(count: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the sum of the sine of the sine, so many times, of X; and its gradient."""
    x, slope = X, torch.ones_like(X)
    for _ in range(count):
        slope = slope * torch.cos(x)
        x = torch.sin(x)
    return x.sum(), slope


@lengths(2_000, 100_000)
def test_bindings_alternately_pure_and_impure_compile(size: int) -> None:
    expected, slope = sines(size // 4)
    value, (kept, writes) = compiled(alternating(size))(X)
    torch.testing.assert_close((value, kept), (expected, expected))
    assert int(writes) == size // 4
    derived = with_gradient(alternating(size), has_aux=True)
    gradient, (kept, writes) = compiled(derived, "gradient")(X)
    torch.testing.assert_close((gradient, kept), (slope, expected))
    assert int(writes) == size // 4


@lengths(250, 10_000)
@pytest.mark.parametrize("in_tail", [True, False])
def test_nested_ifs_compile(size: int, in_tail: bool) -> None:
    program = compiled(nested(size, in_tail=in_tail))
    gradient = compiled(with_gradient(nested(size, in_tail=in_tail)), "gradient")
    for n in (-1, 0, 1, size // 2, size, size + 1):
        went = min(max(n, 0), size)  # the number of ifs that go on to the next
        entered = 0 if in_tail else min(went + 1, size)
        factor = went + 1.0 + entered
        torch.testing.assert_close(program(X, n), factor * X.sum())
        torch.testing.assert_close(gradient(X, n), torch.full_like(X, factor))


PROGRAMS: dict[str, Callable[[int], Module]] = {
    "bindings": lambda n: with_gradient(chain(n)),
    "alternating bindings": lambda n: with_gradient(alternating(n), has_aux=True),
    "nested ifs": lambda n: with_gradient(nested(n // 6, in_tail=False)),
    "nested ifs in tail position": lambda n: with_gradient(nested(n // 4, in_tail=True)),
}


def at_each_stage(module: Module) -> list[tuple[Module, Stage]]:
    program = Program(module, "gradient")
    return [
        (program.translated, Stage.TRANSLATED),
        (program.typed, Stage.TYPED),
        (program.anf, Stage.ANF),
        (program.derived, Stage.DERIVED),
        (program.simplified, Stage.FLAVOURED),
    ]


@pytest.mark.parametrize("name", PROGRAMS)
def test_every_stage_is_well_formed_and_reads_back(name: str) -> None:
    for module, stage in at_each_stage(PROGRAMS[name](300)):
        verify(module, stage)
        for again in (parse_module(to_text(module)), from_json(to_json(module))):
            assert alpha_equal(again, module)
            assert structural_hash(again) == structural_hash(module)


@pytest.mark.parametrize("name", PROGRAMS)
def test_the_evaluator_gives_what_compiled_code_gives(name: str) -> None:
    program = Program(PROGRAMS[name](600), "gradient")
    args = (X, 70)[: len(program.function.params)]
    torch.testing.assert_close(program.compiled(CPU)(*args), program.interpret(args, CPU))


def work(action: Callable[[], object]) -> int:
    """Return the number of calls of Python and built-in functions that an action makes.

    Unlike time it is the same every time, so that growth shows at sizes that take a second.
    """
    calls = 0

    def count(frame: object, event: str, arg: object) -> None:
        nonlocal calls
        calls += event in ("call", "c_call")

    before = sys.getprofile()
    sys.setprofile(count)
    try:
        action()
    finally:
        sys.setprofile(before)
    return calls


def stage_of(program: Program, stage: str) -> Callable[[], object]:
    if stage == "compiled":
        return lambda: program.compiled(CPU)
    return lambda: getattr(program, stage)


@pytest.mark.parametrize("name", PROGRAMS)
def test_each_stage_does_linear_work(name: str) -> None:
    sizes = (150, 600)
    small, large = (Program(PROGRAMS[name](size), "gradient") for size in sizes)
    for stage in STAGES:
        least = work(stage_of(small, stage))
        assert work(stage_of(large, stage)) < 4.1 * least, stage


@pytest.mark.parametrize("name", PROGRAMS)
def test_verifying_printing_and_reading_do_linear_work(name: str) -> None:
    small, large = (at_each_stage(PROGRAMS[name](size)) for size in (60, 240))
    for (module, stage), (longer, _) in zip(small, large, strict=True):
        if stage is Stage.ANF:
            continue  # much like typed programs
        for action in (
            partial(verify, stage=stage),
            to_text,
            lambda m: parse_module(to_text(m)),
            lambda m: from_json(to_json(m)),
        ):
            least = work(partial(action, module))
            assert work(partial(action, longer)) < 4.5 * least, stage
