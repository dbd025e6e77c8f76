"""Regions as lists of steps: values that only kernels read lie in one allocation of each run."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final
from unittest.mock import patch

import pytest
import torch

from pyrelay.kernels.fusion.segments import CALLS, in_segments
from pyrelay.kernels.tape import TupleStep
from pyrelay.lower_triton.backend import INTERPRETED
from pyrelay.lower_triton.launching import tape
from pyrelay.lower_triton.launching.region import RegionCall
from pyrelay.lower_triton.launching.tape import KernelLaunches, SizedTape, TorchCall
from pyrelay.runtime.compile.evaluator import evaluate
from pyrelay.runtime.compile.kernels import Kernels
from pyrelay.runtime.host import compile_module
from tests.kernels.running import CPU
from tests.kernels.test_starting import Gpu, gpu
from tests.tolerances import assert_program as assert_same
from tests.unit.kernels.kernels import in_regions, module

__all__ = ["gpu"]  # a fixture

X: Final = "%x: Tensor[(N, 8), float32]"
W: Final = "%w: Tensor[(8, 8), float32]"
CHAIN: Final = (
    f"def @main[N: Dim]({X}, {W}) {{ let %a = tanh(matmul(%x, %w));"
    " let %b = tanh(matmul(%a, %w)); let %c = tanh(matmul(%b, %w)); matmul(%c, %w) }"
)


@dataclass
class Compiled:
    """A program whose regions are kept in sight."""

    run: Callable[..., Any]
    regions: list[RegionCall]
    functions: tuple[str, ...]

    @property
    def tapes(self) -> list[SizedTape]:
        return [t for r in self.regions for t in r._tapes.values()]


def compiled(text: str) -> Compiled:
    """Return a program of a text with its regions on tapes."""
    launched = in_segments(in_regions(module(text), "main"))
    kernels = Kernels(INTERPRETED, launched, CPU)
    run = compile_module(launched, "main", CPU, instead=kernels)
    regions = [c for c in kernels.called.values() if isinstance(c, RegionCall)]
    return Compiled(run, regions, tuple(launched.functions))


def check(text: str, *operands: Any, runs: int = 3) -> Compiled:
    """Run a program several times on new operands of these forms, and compare with the evaluator;
    what a run gives is not changed by later ones."""
    program, source = compiled(text), module(text)
    given: list[tuple[Any, Any]] = []
    for _ in range(runs):
        fresh = [o if isinstance(o, int) else torch.randn_like(o) for o in operands]
        copies = [o if isinstance(o, int) else o.clone() for o in fresh]
        given.append((program.run(*fresh), evaluate(source, "main", copies)))
        assert_same(tuple(fresh), tuple(copies))  # what is overwritten, and what is not
    for found, expected in given:
        assert_same(found, expected)
    assert program.tapes
    return program


def steps(program: Compiled, kind: type) -> list[Any]:
    (found,) = program.tapes
    return [s for s in found.steps if isinstance(s, kind)]


def test_a_chain_of_kernels_runs_in_two_slots() -> None:
    program = check(CHAIN, torch.zeros(5, 8), torch.zeros(8, 8))
    (found,) = program.tapes
    assert found.bytes == 2 * tape.ALIGNMENT
    slots = [s for k in steps(program, KernelLaunches) for s in k.slots]
    assert len(slots) == 3
    assert not any(s.is_tensor for s in slots)


def test_each_combination_of_sizes_has_a_tape() -> None:
    program = compiled(CHAIN)
    w = torch.randn(8, 8)
    for rows in (3, 4, 3, 5, 4):
        x = torch.randn(rows, 8)
        assert_same(program.run(x, w), evaluate(module(CHAIN), "main", [x, w]))
    assert len(program.tapes) == 3


@pytest.mark.parametrize(
    "text",
    [
        # torch reads what a kernel has made, and a kernel what torch has made
        f"def @main[N: Dim]({X}, {W}) {{ let %a = tanh(matmul(%x, %w));"
        " let %s = sort(%a, dim=0); (tanh(matmul(%s.0, %w)), %s.1) }",
        # a view of a value in the arena outlives its last use by a kernel
        f"def @main[N: Dim]({X}, {W}) {{ let %a = tanh(matmul(%x, %w));"
        " let %t = reshape(%a, shape=(4 * N, 2)); let %b = tanh(matmul(%a, %w));"
        " let %c = tanh(matmul(%b, %w)); (matmul(%c, %w), sort(%t).0) }",
        # what a kernel has made is read under another shape, and returned under it
        f"def @main[N: Dim]({X}, {W}) {{ let %a = tanh(matmul(%x, %w));"
        " let %t = reshape(%a, shape=(8, N)); (tanh(matmul(%w, %t)), tanh(matmul(%x, %t)), %t) }",
        # a view of a result is a result
        f"def @main[N: Dim]({X}, {W}) {{ let %a = tanh(matmul(%x, %w));"
        " (transpose(%a, dim0=0, dim1=1), matmul(tanh(matmul(%a, %w)), %w)) }",
        # torch writes into what a kernel has made
        f"def @main[N: Dim]({X}, {W}) {{ let %a = tanh(matmul(%x, %w));"
        " let %m = matmul(%a, %w); let %i = argsort(%m, dim=0);"
        " let %b = scatter_add(%m, %i, %a, dim=0);"
        " let %c = tanh(matmul(%b, %w));"
        " (matmul(tanh(matmul(%c, %w)), %w), %b) }",
    ],
)
def test_values_are_those_of_the_evaluator(text: str) -> None:
    check(text, torch.zeros(5, 8), torch.zeros(8, 8))


def test_calls_of_torch_between_kernels_are_one_function() -> None:
    program = check(
        f"def @main[N: Dim]({X}, {W}) {{ let %a = tanh(matmul(%x, %w)); let %s = sort(%a, dim=0);"
        " let %t = sort(%s.0, dim=1); tanh(matmul(%t.0, %w)) }",
        torch.zeros(5, 8),
        torch.zeros(8, 8),
    )
    assert sum(name.startswith(CALLS) for name in program.functions) == 1
    (call,) = steps(program, TorchCall)
    assert call.strides == (8, 1)


UPDATE: Final = (
    f"def @main[N: Dim]({X}, {W}, %v: Tensor[(8, 8), float32]) {{ let %a = tanh(matmul(%x, %w));"
    " let %b = matmul(%a, %v); let %g = matmul(transpose(%x, dim0=0, dim1=1), %b);"
    " let %u = overwrite(%w, %w - %g * 0.1f32);"
    " let %z = overwrite(%v, %v + %g * 0.1f32); sum(%b) }"
)


def test_parameters_are_overwritten() -> None:
    check(UPDATE, torch.zeros(5, 8), torch.zeros(8, 8), torch.zeros(8, 8))


@contextmanager
def counted() -> Iterator[list[SizedTape]]:
    """Note the tapes that run."""
    ran: list[SizedTape] = []
    run = SizedTape.run

    def noted(self: SizedTape, args: Any) -> Any:
        ran.append(self)
        return run(self, args)

    with patch.object(SizedTape, "run", noted):
        yield ran


@pytest.mark.parametrize("shift", [0, 3, 63, 64])
def test_parameters_that_share_storage_are_overwritten_as_torch_does_it(shift: int) -> None:
    program, source = compiled(UPDATE), module(UPDATE)
    x = torch.randn(5, 8)

    def pair() -> tuple[torch.Tensor, torch.Tensor]:
        whole = torch.linspace(-1, 1, 128)
        return whole[:64].view(8, 8), whole[shift : shift + 64].view(8, 8)

    for _ in range(2):
        program.run(x, torch.randn(8, 8), torch.randn(8, 8))
    found, expected = pair(), pair()
    with counted() as ran:
        assert_same(program.run(x, *found), evaluate(source, "main", [x, *expected]))
    assert_same(found, expected)
    assert len(ran) == (shift == 64)


def test_an_operand_in_the_storage_of_a_parameter_is_read_before_it_is_written() -> None:
    program, source = compiled(UPDATE), module(UPDATE)
    for _ in range(3):
        w, v = torch.randn(8, 8), torch.randn(8, 8)
        copies = w.clone(), v.clone()
        found = program.run(w, w, v)  # the data is the parameter itself
        assert_same(found, evaluate(source, "main", [copies[0], *copies]))
        assert_same((w, v), copies)


def test_strides_that_torch_changes_its_mind_about_are_put_right() -> None:
    text = (
        f"def @main[N: Dim]({X}, {W}) {{ let %a = tanh(matmul(%x, %w)); let %s = sort(%a, dim=0);"
        " tanh(matmul(%s.0, %w)) }"
    )
    program = compiled(text)
    x, w = torch.randn(5, 8), torch.randn(8, 8)
    expected = program.run(x, w)
    (found,) = program.tapes
    moved = tuple(
        TorchCall(lambda x, f=s.function: f(x).T.contiguous().T, *astuple_of(s)[1:])
        if isinstance(s, TorchCall)
        else s
        for s in found.steps
    )
    other = SizedTape(moved, found.values, found.result, found.bytes, found.device)
    args = [x if p.name == "x" else w for p in program.regions[0].function.params]
    assert_same(other.run(args), expected)


def astuple_of(step: TorchCall) -> tuple[Any, ...]:
    return step.function, step.operands, step.result, step.strides, step.dead


def test_a_run_that_fails_leaves_nothing_behind() -> None:
    text = (
        f"def @main[N: Dim]({X}, {W}, %i: Tensor[(3,), int64]) {{ let %a = tanh(matmul(%x, %w));"
        " let %s = gather(%a, reshape(%i, shape=(1, 3)), dim=1); tanh(matmul(%a, %w)) + sum(%s) }"
    )
    program, source = compiled(text), module(text)
    x, w, index = torch.randn(5, 8), torch.randn(8, 8), torch.tensor([0, 3, 7])
    for _ in range(2):
        assert_same(program.run(x, w, index), evaluate(source, "main", [x, w, index]))
    fails = patch.object(tape._Run, "_launch", side_effect=RuntimeError("of a device"))
    with fails, pytest.raises(Exception, match="of a device"):
        program.run(x, w, index)
    assert_same(program.run(x, w, index), evaluate(source, "main", [x, w, index]))


def test_runs_inside_of_runs_have_arenas_of_their_own() -> None:
    program = compiled(CHAIN)
    x, y, w = torch.randn(5, 8), torch.randn(5, 8), torch.randn(8, 8)
    expected = program.run(x, w), program.run(y, w)
    launch = tape._Run._launch
    inner: list[Any] = []

    def twice(self: Any, step: KernelLaunches, stream: int) -> None:
        launch(self, step, stream)
        if len(inner) < 1:
            inner.append(None)
            inner[0] = program.run(y, w)

    with patch.object(tape._Run, "_launch", twice):
        assert_same((program.run(x, w), inner[0]), expected)


def test_kernels_are_given_addresses_in_the_arena(gpu: Gpu) -> None:
    program = compiled(CHAIN)
    x, w = torch.zeros(5, 8), torch.zeros(8, 8)
    program.run(x, w)
    gpu.starts.clear()
    made: list[torch.Tensor] = []

    def arena(count: int, device: torch.device) -> torch.Tensor:
        made.append(torch.empty(count, dtype=torch.uint8, device=device))
        return made[-1]

    empty = torch.empty
    allocated: list[Any] = []

    def noted(*args: Any, **named: Any) -> torch.Tensor:
        allocated.append(args)
        return empty(*args, **named)

    with patch.object(tape, "make_arena", arena), patch.object(torch, "empty", noted):
        out = program.run(x, w)
    (whole,) = made
    base = whole.data_ptr()
    ends = [_results(start) for start in gpu.starts]
    assert ends == [base, base + tape.ALIGNMENT, base, out.data_ptr()]
    assert len(gpu.starts) == 4
    assert len(allocated) <= 2  # the arena and the result


def _results(start: tuple[Any, ...]) -> int:
    """Return the last address that a kernel is given: that of what it makes."""
    return [v for v in start[10:] if isinstance(v, int) and v > 1 << 20][-1]


def test_what_the_plan_holds_back_is_not_lost_in_tuples() -> None:
    (region,) = check(
        f"def @main[N: Dim]({X}, {W}) {{ let %a = matmul(%x, %w); let %b = (tanh(%a), sigmoid(%a));"
        " let %s = sort(matmul(%b.0, %w), dim=0); (%b, matmul(%b.1, %w), %s.0) }",
        torch.zeros(5, 8),
        torch.zeros(8, 8),
    ).regions
    fields = {f for s in region.tape.steps if isinstance(s, TupleStep) for f in s.fields}
    assert fields
    assert fields.isdisjoint(region.tape.slots)
