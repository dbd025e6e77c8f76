"""Kernel functions as callables: forms, sizes, results, and what is kept between calls."""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from typing import Any, Final

import pytest
import torch

from pyrelay.infer import infer
from pyrelay.ir.dims import Dim, product
from pyrelay.ir.expr import Function
from pyrelay.ir.types import float32, int64
from pyrelay.kernels.calling import (
    Form,
    Layout,
    NoKernel,
    Number,
    Read,
    Scratch,
    Size,
    Stride,
    Written,
)
from pyrelay.kernels.operands import unit_of
from pyrelay.lower_triton.kernel import Config, Kernel, Lowered, Target, Tiles
from pyrelay.lower_triton.launching.launch import KernelCall
from pyrelay.lower_triton.launching.prepare import Question
from pyrelay.text.parser import parse_module
from tests.kernels.running import DEVICE, IS_INTERPRETED, check
from tests.unit.kernels.kernels import kernel as kernel_of
from tests.unit.kernels.kernels import lower

N: Final = Dim.of("N")


@pytest.fixture(autouse=True)
def on_the_device() -> Generator[None]:
    with DEVICE:
        yield


SCALE: Final = """
#[pyrelay = "1"]
def @scale[N: Dim](%x: Tensor[(N, 3), float32], %k: int64) -> Tensor[(N, 3), float32] {
  %x
}
"""

SCALE_TEXT: Final = """\
import triton
import triton.language as tl


@triton.jit(do_not_specialize=["k"])
def scale(x_ptr, s0, s1, k: tl.int64, out_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i // 3 * s0 + i % 3 * s1, mask=i < n)
    tl.store(out_ptr + i, x * k, mask=i < n)
"""


def function_of(text: str) -> Function:
    (function,) = infer(parse_module(text)).functions.values()
    return function


def scaled(layout: Layout, _: Target | None = None) -> Lowered:
    assert layout.operands[1] is Form.NUMBER
    shape = (N, Dim.of(3))
    arguments = (
        Read(0, float32),
        Stride(0, 0),
        Stride(0, 1),
        Number(1, int64),
        Written(0, float32, shape),
        Size(product(shape)),
    )
    names = ("x_ptr", "s0", "s1", "k", "out_ptr", "n")
    grid = ((Tiles(product(shape), "BLOCK"),),)
    kernel = Kernel("scale", SCALE_TEXT, names, arguments, grid, (Config((("BLOCK", 8),), 1, 1),))
    return Lowered((kernel,))


def test_a_call_reads_any_strides_and_makes_a_fresh_result() -> None:
    call = KernelCall(function_of(SCALE), scaled, DEVICE)
    x = torch.arange(12.0).reshape(3, 4).T
    out = call(x, 5)
    assert torch.equal(out, x * 5)
    assert out.is_contiguous()
    assert torch.equal(call(x[1:], 7), x[1:] * 7)


def test_nothing_is_started_for_no_elements() -> None:
    out = KernelCall(function_of(SCALE), scaled, DEVICE)(torch.zeros(0, 3), 5)
    assert out.shape == (0, 3)


def test_what_follows_from_sizes_is_found_once() -> None:
    seen: list[Layout] = []
    targets: set[Target] = set()

    def noted(layout: Layout, target: Target) -> Lowered:
        seen.append(layout)
        targets.add(target)
        return scaled(layout)

    call = KernelCall(function_of(SCALE), noted, DEVICE)
    for rows in (2, 3, 2, 4):
        for number in (1, 2):
            assert torch.equal(call(torch.ones(rows, 3), number), torch.full((rows, 3), number))
    call(torch.ones(3, 4).T, 2)
    assert [layout.operands for layout in seen] == [
        (Form.CONTIGUOUS, Form.NUMBER),
        (Form.STRIDED, Form.NUMBER),
    ]
    assert {target.is_interpreted for target in targets} == {IS_INTERPRETED}
    assert len(call._prepared) == 4


WHOLE: Final = torch.arange(240.0).reshape(10, 24)


@pytest.mark.parametrize(
    ("view", "unit"),
    [
        (WHOLE[:, :9], 1),
        (WHOLE.T, 0),
        (WHOLE.reshape(5, 2, 24).permute(0, 2, 1), 1),
        (WHOLE[0].expand(5, 24), 1),
        (WHOLE[0, :, None].expand(24, 5), 0),
        (WHOLE[:, ::2], None),
        (WHOLE[:, :3], None),
        (WHOLE, None),
        (5, None),
    ],
)
def test_it_is_known_along_which_dim_a_view_lies(view: Any, unit: int | None) -> None:
    assert unit_of(view) == unit


SUM: Final = """
#[pyrelay = "1"]
def @total[N: Dim](%x: Tensor[(N,), float32], %y: Tensor[(N,), float32])
    -> (float32, Tensor[(N,), float32]) {
  let %s = sum(%x);
  (%s, %x)
}
"""

SUM_TEXT: Final = """\
import triton
import triton.language as tl

@triton.jit
def parts(x_ptr, y_ptr, part_ptr, out_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < n, other=0.0)
    tl.store(part_ptr + tl.program_id(0), tl.sum(x, 0))
    tl.store(out_ptr + i, x, mask=i < n)
    tl.store(y_ptr + i, -x, mask=i < n)
"""

TOTAL_TEXT: Final = """\
import triton
import triton.language as tl

@triton.jit
def whole(part_ptr, sum_ptr, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    part = tl.load(part_ptr + i, mask=i < n, other=0.0)
    tl.store(sum_ptr, tl.sum(part, 0))
"""


def summed(layout: Layout, _: Target | None = None) -> Lowered:
    assert layout.operands == (Form.CONTIGUOUS,) * 2
    count = (N + 3) // 4
    part = Scratch(0, float32, (count,))
    parts = Kernel(
        "parts",
        SUM_TEXT,
        ("x_ptr", "y_ptr", "part_ptr", "out_ptr", "n"),
        (
            Read(0, float32),
            Written(2, float32, (N,), overwrites=1),
            part,
            Written(1, float32, (N,)),
            Size(N),
        ),
        ((Tiles(N, "BLOCK"),),),
        (Config((("BLOCK", 4),), 1, 1),),
    )
    whole = Kernel(
        "whole",
        TOTAL_TEXT,
        ("part_ptr", "sum_ptr", "n"),
        (part, Written(0, float32, ()), Size(count)),
        ((Tiles(Dim.of(1), None),),),
        (Config((("BLOCK", 16),), 1, 1),),
    )
    return Lowered((parts, whole))


def test_kernels_share_scratch_and_overwrite_operands() -> None:
    x, y = torch.arange(10.0), torch.full((10,), torch.nan)
    total, copy = KernelCall(function_of(SUM), summed, DEVICE)(x, y)
    assert total.shape == ()
    assert total == 45.0
    assert torch.equal(copy, x)
    assert torch.equal(y, -x)


@pytest.mark.parametrize("chosen", [0, 1])
def test_a_choice_among_configurations_is_tried_on_copies(chosen: int) -> None:
    def two_ways(layout: Layout, _: Target) -> Lowered:
        parts, whole = summed(layout).kernels
        more = (*whole.configs, Config((("BLOCK", 4),), 2, 1))
        assert len(more) == 2
        return Lowered(
            (parts, Kernel(whole.name, whole.text, whole.names, whole.arguments, whole.grid, more))
        )

    def choose(question: Question, attempts: Sequence[Callable[[], object]]) -> int:
        for attempt in attempts:
            attempt()
        return chosen

    y = torch.zeros(9)
    total, _ = KernelCall(function_of(SUM), two_ways, DEVICE, choose)(torch.ones(9), y)
    assert total == 9.0
    assert torch.equal(y, -torch.ones(9))


PRODUCT: Final = (
    "def @main[N: Dim](%x: Tensor[(N, 8), float32], %w: Tensor[(8, 16), float32]) {"
    " tanh(matmul(%x, %w)) }"
)


@pytest.mark.parametrize("chosen", [0, 1])
def test_calls_of_torch_are_one_of_the_ways_to_multiply(chosen: int) -> None:
    function = kernel_of(PRODUCT)
    calls: list[str] = []

    def in_torch(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
        calls.append("torch")
        return torch.tanh(x @ w)

    def choose(question: Question, attempts: Sequence[Callable[[], object]]) -> int:
        if len(attempts) > 2:  # the configurations of the kernel
            return 0
        for attempt in attempts:
            attempt()
        return chosen

    call = KernelCall(function, lower(function), DEVICE, choose, in_torch, may_prefer_torch=True)
    x, w = torch.randn(5, 8), torch.randn(8, 16)
    for _ in range(2):
        torch.testing.assert_close(call(x, w), torch.tanh(x @ w))
    assert calls == ["torch"] * (3 if chosen else 1)


def test_without_text_a_function_runs_as_calls_of_torch() -> None:
    def refused(layout: Layout, _: Target) -> Lowered:
        raise NoKernel("of a reason")

    with pytest.raises(NoKernel):
        KernelCall(function_of(SCALE), refused, DEVICE)(torch.ones(2, 3), 5)
    call = KernelCall(function_of(SCALE), refused, DEVICE, in_torch=lambda x, k: x * k)
    assert call.refused is None
    assert torch.equal(call(torch.ones(2, 3), 5), torch.full((2, 3), 5.0))
    assert call.refused == "of a reason"


OUTER: Final = (
    "def @main[N: Dim, M: Dim](%x: Tensor[(N,), float32], %y: Tensor[(M,), float32]) {"
    " sum(reshape(%x, shape=(N, 1)) * %y, dim=(1,)) }"
)


@pytest.mark.parametrize(("n", "is_wide"), [(1 << 15, False), (1 << 16, True)])
def test_places_need_64_bits_where_any_value_has_so_many_elements(n: int, is_wide: bool) -> None:
    seen: list[bool] = []

    def refused(layout: Layout, _: Target) -> Lowered:
        seen.append(layout.is_wide)
        raise NoKernel("it is only asked for")

    call = KernelCall(kernel_of(OUTER), refused, DEVICE, in_torch=lambda x, y: None)
    call(torch.zeros(n), torch.zeros(1 << 15))
    assert seen == [is_wide]


@pytest.mark.parametrize(
    "rows", ["4*H", "2*H + 1", "N + M", "H*W", "(N + M)*H"], ids=lambda rows: rows.replace("*", "")
)
def test_sizes_that_no_operand_shows_alone_are_found(rows: str) -> None:
    text = f"""
    def @program[H: Dim, W: Dim, N: Dim, M: Dim, D: Dim](%x: Tensor[({rows}, D), float32]) {{
      let %y = tanh(%x);
      (%y, sum(%y, dim=(1,)))
    }}
    """
    check(text, torch.randn(5, 7))
