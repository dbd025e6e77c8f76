"""Regions whose calls of torch are functions, too."""

from __future__ import annotations

import torch

from pyrelay.ir.expr import Call, GlobalVar, Tuple, TupleGet
from pyrelay.ir.verify import Stage, verify
from pyrelay.kernels.fusion.segments import CALLS, in_segments
from pyrelay.kernels.memory import plan_memory
from pyrelay.kernels.outlined import outlined_of
from pyrelay.kernels.reading import straight_line
from pyrelay.kernels.tape import CallStep, KernelStep, PartStep, TupleStep, tape_of
from pyrelay.runtime.compile.evaluator import evaluate
from tests.unit.kernels.kernels import in_regions, module

MIXED = (
    "def @main[N: Dim](%x: Tensor[(N, 8), float32], %w: Tensor[(8, 8), float32]) {"
    " let %a = tanh(matmul(%x, %w)); let %s = sort(%a, dim=0); let %t = sort(%s.0, dim=1);"
    " let %b = tanh(matmul(%t.0, %w)); let %u = sort(%b, dim=0); (tanh(%u.0), %t.1, %a) }"
)


def test_a_region_only_calls_and_takes_tuples_apart() -> None:
    cut = in_regions(module(MIXED), "main")
    made = in_segments(cut)
    verify(made, Stage.REGIONS)
    (name,) = outlined_of(made).regions
    bindings, _ = straight_line(made.functions[name].body)
    for binding in bindings:
        value = binding.value
        assert isinstance(value, Tuple | TupleGet) or (
            isinstance(value, Call) and isinstance(value.callee, GlobalVar)
        )
    callees = [b.value.callee for b in bindings if isinstance(b.value, Call)]
    called = [c.name for c in callees if isinstance(c, GlobalVar)]
    assert [n.startswith(CALLS) for n in called] == [False, True, False, True, False]


def test_values_stay_the_same() -> None:
    cut = in_regions(module(MIXED), "main")
    args = [torch.randn(5, 8), torch.randn(8, 8)]
    expected = evaluate(cut, "main", args)
    torch.testing.assert_close(evaluate(in_segments(cut), "main", args), expected)


def test_a_plan_of_the_region_holds_for_it_in_segments() -> None:
    cut = in_regions(module(MIXED), "main")
    made = in_segments(cut)
    (name,) = outlined_of(cut).regions
    plan = plan_memory(cut.functions[name], outlined_of(cut).groups)
    bound = {b.var for b in straight_line(made.functions[name].body)[0]}
    assert plan.slots
    assert plan.slots.keys() <= bound


def test_a_region_without_calls_of_torch_stays_as_it_is() -> None:
    cut = in_regions(
        module(
            "def @main[N: Dim](%x: Tensor[(N, 8), float32], %w: Tensor[(8, 8), float32]) {"
            " matmul(tanh(matmul(%x, %w)), %w) }"
        ),
        "main",
    )
    assert in_segments(cut).functions.keys() == cut.functions.keys()


def test_a_region_in_segments_has_a_tape() -> None:
    cut = in_regions(module(MIXED), "main")
    made = in_segments(cut)
    (name,) = outlined_of(cut).regions
    kernels = outlined_of(cut).kernels
    plan = plan_memory(cut.functions[name], outlined_of(cut).groups)
    assert tape_of(cut.functions[name], plan, kernels) is None
    tape = tape_of(made.functions[name], plan, kernels)
    assert tape is not None
    calls = [type(s) for s in tape.steps if not isinstance(s, PartStep)]
    assert calls == [KernelStep, CallStep, KernelStep, CallStep, KernelStep, TupleStep]
    dead = [n for s in tape.steps for n in s.dead]
    assert sorted([*dead, tape.result or 0]) == list(range(len(tape.types)))  # each dies once
    assert {n for s in tape.steps if isinstance(s, KernelStep) for n in s.results} >= {*tape.slots}
