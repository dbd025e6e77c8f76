"""What kernels move, counted load by load: each input read once, each output written once.

What is moved is counted while the interpreter runs the text: every element of every load and store
that is not masked, as `accesses.Traffic` says. The least is each element once that is loaded at
all, and once that is stored, or what the cost model says a kernel needs, whichever is less.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final, final

import pytest
import torch

from pyrelay import Float, bfloat16
from pyrelay.ir.expr import Function, type_of
from pyrelay.ir.types import DType, SizeType, TensorType, Type, is_float
from pyrelay.kernels.calling import Form, Layout
from pyrelay.kernels.cost import cost_of
from pyrelay.kernels.groups import Kind
from pyrelay.kernels.outlined import outlined_of
from pyrelay.kernels.plans.rows import row_plan
from pyrelay.lower_torch.constants import torch_dtype
from pyrelay.lower_triton.launching import launch
from pyrelay.lower_triton.launching.launch import KernelCall
from pyrelay.lower_triton.rows import rows
from tests.golden import Golden
from tests.kernels.row_functions import NAMES, functions_of
from tests.kernels.running import ACCESSES, CPU
from tests.unit.kernels import steps
from tests.unit.kernels.kernels import lower
from tests.unit.kernels.recognised import group_of

MEASURED: Final = (Kind.POINTWISE, Kind.ROWS, Kind.UPDATES)
MORE: Final = 1.1
"""So much more than the least may be moved."""


def operand(ty: Type, sizes: Mapping[str, int], generator: torch.Generator) -> Any:
    """Return an operand of a type."""
    if isinstance(ty, SizeType):
        return ty.dim.evaluate(sizes)
    assert isinstance(ty, TensorType)
    assert isinstance(ty.dtype, DType)
    shape = [d.evaluate(sizes) for d in ty.shape]
    if is_float(ty.dtype):
        return torch.rand(shape, generator=generator).to(torch_dtype(ty.dtype))
    return torch.randint(0, 2, shape, generator=generator).to(torch_dtype(ty.dtype))


def kernels_of(program: Any) -> dict[str, Function]:
    """Return the kernel functions of a program."""
    cut = program.runner.program.regions
    return {name: cut.functions[name] for name in outlined_of(cut).kernels}


@final
@dataclass(frozen=True, slots=True)
class Moved:
    """What one run of a kernel function's kernels moves, in bytes."""

    kernels: int
    needed: int
    moved: int
    issued: int

    @property
    def share(self) -> float:
        """How many times the least is moved."""
        return self.moved / self.needed


def measured(function: Function, sizes: Mapping[str, int]) -> Moved:
    """Run the kernels of a function; return what they move."""
    ACCESSES.clear()
    generator = torch.Generator().manual_seed(0)
    operands = [operand(type_of(p), sizes, generator) for p in function.params]
    call = KernelCall(function, lower(function), CPU)
    call(*operands)
    (prepared,) = call._prepared.values()
    last = ACCESSES.launches[-len(prepared.launches) :]  # others looked for the fastest way
    needed, moved, issued = (
        sum(sum(getattr(t, of).values()) for t in last) for of in ("needed", "moved", "issued")
    )
    least = cost_of(group_of(function)).bytes.evaluate(sizes)
    return Moved(len(last), min(needed, least), moved, issued)


def lines(kernels: Mapping[str, Function], sizes: Mapping[str, int]) -> str:
    """Return a line for each kernel that is elementwise or reduces rows."""
    found: list[str] = []
    for name, function in kernels.items():
        kind = group_of(function).kind
        if kind in MEASURED:
            made = measured(function, sizes)
            found.append(
                f"{name:12} {kind.name.lower():10} least {made.needed:>10,} "
                f"moved {made.moved:>10,} ({made.share:5.3f}) issued {made.issued:>10,}\n"
            )
    return "".join(found)


def assert_least(text: str) -> None:
    """Fail if a kernel moves more than it may."""
    shares = [float(line.split("(")[1].split(")")[0]) for line in text.splitlines()]
    assert all(share <= MORE for share in shares), text


FLOATS: Final = {"float32": functions_of(Float), "bfloat16": functions_of(bfloat16)}


@pytest.mark.parametrize("name", NAMES)
def test_a_row_that_fits_into_a_block_is_read_once(name: str, golden: Golden) -> None:
    text = lines(kernels_of(FLOATS["float32"][name]), {"N": 5, "M": 100})
    assert_least(text)
    golden(f"{name}.txt", text)


SIZES: Final = (
    *((1, 1024), (40, 1024), (5, 4096), (1, 8192), (3, 8192), (3, 20_000)),
    *((1, 32_768), (1, 65_536), (1, 131_072)),
)
"""So many rows of so many elements."""


def reductions_of_rows(program: Any) -> Iterator[tuple[str, Function]]:
    """Return the kernel functions of a program that reduce rows, not columns."""
    for name, function in kernels_of(program).items():
        group = group_of(function)
        if group.kind is Kind.ROWS and not row_plan(group, layout_of(function)).is_column:
            yield name, function


def layout_of(function: Function) -> Layout:
    """Return a layout of operands that lie row by row."""
    return Layout((Form.CONTIGUOUS,) * len(function.params))


def is_read_once(function: Function, length: int, processors: int) -> bool:
    """Return whether the plan is to read rows of a length once."""
    plan = row_plan(group_of(function), layout_of(function))
    return plan.passes == 1 or length <= rows.longest_row(plan, processors)


@pytest.mark.slow
@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("name", NAMES)
def test_rows_are_read_once_as_long_as_registers_hold_them(name: str, dtype: str) -> None:
    for _, function in reductions_of_rows(FLOATS[dtype][name]):
        for count, length in SIZES:
            if is_read_once(function, length, launch.MOST_PROCESSORS):
                found = measured(function, {"N": count, "M": length})
                assert found.share <= MORE, (count, length, found)
            else:
                assert length > 65_536


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_longer_rows_are_read_again_in_loops_and_in_pieces(
    name: str, golden: Golden, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By devices without clusters; with them rows may be eight times as long."""
    monkeypatch.setattr(launch, "MOST_PROCESSORS", 1)
    few = rows.few_rows
    found: list[str] = []
    for dtype, functions in FLOATS.items():
        for number, function in reductions_of_rows(functions[name]):
            plan = row_plan(group_of(function), layout_of(function))
            again = rows.longest_row(plan, 1) if plan.passes > 1 else None
            if again is None:
                continue
            found.append(f"{dtype:8} {number:8} rows of more than {again:,} elements\n")
            for how, most in (("loop", 0), ("pieces", few(False))):
                monkeypatch.setattr(rows, "few_rows", lambda is_column, most=most: most)
                made = measured(function, {"N": 1, "M": 40_000})
                assert (made.kernels > 1) is (how == "pieces")
                found.append(f"  {how:6} in {made.kernels} kernels: {made.share:5.3f}\n")
    golden(f"{name}_long.txt", "".join(found) or "every row is read once\n")


@pytest.mark.parametrize(
    ("name", "sizes"),
    [
        ("lenet_step", {"N": 2}),
        ("mlp_step", {"N": 3}),
        ("lstm_step", {"N": 3}),
        ("block_grad", {"B": 1, "T": 3}),
        ("tree_state", {}),
    ],
)
def test_a_network_moves_no_more_than_its_inputs_and_outputs(
    name: str, sizes: Mapping[str, int], golden: Golden
) -> None:
    text = lines(kernels_of(getattr(steps, name)), sizes)
    assert_least(text)
    golden(f"{name}.txt", text)
