"""Values of a region share storage where none of them is alive with another."""

from __future__ import annotations

from pyrelay.ir.dims import Dim
from pyrelay.ir.expr import Call, Function, GlobalVar, Var, type_of
from pyrelay.kernels.arena import Allocation, placed
from pyrelay.kernels.cost import size_of
from pyrelay.kernels.fusion.nodes import mentioned
from pyrelay.kernels.memory import MemoryPlan, plan_memory
from pyrelay.kernels.outlined import outlined_of
from pyrelay.kernels.reading import results_of, straight_line
from tests.unit.kernels.kernels import in_regions, module

X = "%x: Tensor[(N, 8), float32]"
W = "%w: Tensor[(8, 8), float32]"
N = Dim.of("N")


def planned(text: str) -> tuple[Function, MemoryPlan]:
    """Return the only region of a program and its plan."""
    found = in_regions(module(text), "main")
    (name,) = outlined_of(found).regions
    region = found.functions[name]
    return region, plan_memory(region, outlined_of(found).groups)


def check(region: Function, plan: MemoryPlan) -> None:
    """Check that no two values with one slot are alive together, views included."""
    bindings, _ = straight_line(region.body)
    made = {b.var: time for time, b in enumerate(bindings)}
    shows: dict[Var, frozenset[Var]] = {}
    last: dict[Var, int] = {}
    for time, binding in enumerate(bindings):
        used = frozenset[Var]().union(
            *(shows.get(v, frozenset()) for v in mentioned(binding.value))
        )
        for var in used:
            last[var] = time
        makes = isinstance(binding.value, Call) and isinstance(binding.value.callee, GlobalVar)
        shows[binding.var] = frozenset({binding.var}) if makes else used
    alive = {v: (made[v], last.get(v, made[v])) for v in plan.slots}
    for one in plan.slots:
        for other in plan.slots:
            if one is not other and plan.slots[one] == plan.slots[other]:
                assert alive[one][1] < alive[other][0] or alive[other][1] < alive[one][0]
    for result in results_of(region.body):
        assert result not in plan.slots


def test_a_chain_of_kernels_needs_two_slots() -> None:
    steps = "".join(f"let %v{i + 1} = tanh(matmul(%v{i}, %w)); " for i in range(10))
    region, plan = planned(
        f"def @main[N: Dim]({X}, {W}) {{ let %v0 = %x; {steps} matmul(%v10, %w) }}"
    )
    check(region, plan)
    assert len(plan.slots) == 10
    assert plan.bytes == 64 * N
    assert plan.unshared == 320 * N


def test_what_is_used_late_keeps_its_storage() -> None:
    region, plan = planned(
        f"def @main[N: Dim]({X}, {W}) {{ let %a = tanh(matmul(%x, %w));"
        " let %b = tanh(matmul(%a, %w)); let %c = tanh(matmul(%b, %w));"
        " matmul(%c, %w) + %a }"
    )
    check(region, plan)
    assert len(plan.slots) == 3
    assert len(plan.sizes) == 3


def test_a_view_keeps_the_storage_that_it_shows() -> None:
    region, plan = planned(
        f"def @main[N: Dim]({X}, {W}) {{ let %a = tanh(matmul(%x, %w));"
        " let %t = reshape(%a, shape=(4 * N, 2)); let %b = tanh(matmul(%a, %w));"
        " let %c = tanh(matmul(%b, %w)); (matmul(%c, %w), sort(%t).0) }"
    )
    check(region, plan)
    assert len(plan.slots) == 2
    assert len(plan.sizes) == 2


def test_results_are_no_part_of_the_plan() -> None:
    region, plan = planned(
        f"def @main[N: Dim]({X}, {W}) {{ let %a = tanh(matmul(%x, %w));"
        " (transpose(%a, dim0=0, dim1=1), matmul(%a, %w)) }"
    )
    check(region, plan)
    assert plan.slots == {}


def test_a_slot_is_used_again_if_it_is_large_enough_whatever_the_size() -> None:
    region, plan = planned(
        "def @main[N: Dim, M: Dim](%x: Tensor[(N, 8), float32], %y: Tensor[(M, 8), float32],"
        " %w: Tensor[(8, 8), float32], %v: Tensor[(8, 4), float32]) {"
        " let %a = tanh(matmul(%x, %w)); let %b = tanh(matmul(%a, %w));"
        " let %c = tanh(matmul(%b, %v)); let %d = matmul(%c, transpose(%v, dim0=0, dim1=1));"
        " let %p = tanh(matmul(%y, %v)); let %q = matmul(%p, transpose(%v, dim0=0, dim1=1));"
        " (%d, %q) }"
    )
    check(region, plan)
    assert [str(s) for s in plan.sizes] == ["32*N", "32*N", "16*M"]
    assert plan.bytes == 64 * N + 16 * Dim.of("M")
    assert plan.unshared == 80 * N + 16 * Dim.of("M")


def test_small_values_lie_where_a_large_one_was_as_soon_as_sizes_are_known() -> None:
    region, plan = planned(
        f"def @main[N: Dim]({X}, {W}, %u: Tensor[(8, 4), float32], %v: Tensor[(4, 4), float32]) {{"
        " let %a = tanh(matmul(%x, %w)); let %b = tanh(matmul(%a, %u));"
        " let %c = tanh(matmul(%b, %v)); let %d = tanh(matmul(%c, %v)); (%b + %c) * matmul(%d, %v)"
        " }"
    )
    check(region, plan)
    assert plan.bytes == 64 * N
    blocks = [
        Allocation(size_of(type_of(v)).evaluate({"N": 64}), *plan.lives[v]) for v in plan.slots
    ]
    assert placed(blocks)[1] == 48 * 64
