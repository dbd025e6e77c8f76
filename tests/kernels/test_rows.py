"""Kernels of passes with reductions: every kind, every dtype, rows of every length."""

from __future__ import annotations

import math

import pytest
import torch

from pyrelay.ir.dims import ONE, Dim
from pyrelay.kernels.calling import Form, Layout
from pyrelay.lower_triton.kernel import Config, Target, Tiles
from pyrelay.lower_triton.launching.launch import KernelCall
from pyrelay.lower_triton.rows import pieces as row_pieces
from pyrelay.lower_triton.rows import rows
from tests.golden import Golden
from tests.kernels.row_sources import BATCH_NORM, COLUMNS, CROSS_ENTROPY, LAYER_NORM, SOFTMAX
from tests.kernels.running import DEVICE, check, kernels, run
from tests.unit.kernels.kernels import kernel, lower


@pytest.mark.parametrize("shape", [(1, 1), (5, 7), (3, 64), (2, 1000), (0, 4)])
def test_softmax_of_rows_of_every_length(shape: tuple[int, int]) -> None:
    check(SOFTMAX, torch.randn(shape))


def test_rows_may_have_any_strides() -> None:
    check(SOFTMAX, torch.randn(33, 5).T)
    check(LAYER_NORM, torch.randn(48, 6).T, torch.randn(96)[::2], torch.randn(1).expand(48))


def test_a_norm_reads_a_row_once() -> None:
    check(LAYER_NORM, torch.randn(9, 48), torch.randn(48), torch.randn(48))
    (found,) = kernels(LAYER_NORM)
    assert found.text.count("tl.load") == 3
    assert "for " not in found.text


@pytest.mark.parametrize("length", [32_769, 70_000])
def test_processors_share_the_rows_that_one_cannot_hold(length: int) -> None:
    """In clusters, where the device has them; in the interpreter as if it had."""
    check(SOFTMAX, torch.randn(3, length))
    norm = LAYER_NORM.replace("48", str(length))
    check(norm, torch.randn(2, length), torch.randn(length), torch.randn(length))
    across = torch.randn(length, 2).T
    check(SOFTMAX, across)
    target = torch.randint(0, length, (2,))
    check(CROSS_ENTROPY, torch.randn(2, length), target)


def test_a_long_row_is_one_program_on_as_many_processors_as_hold_it() -> None:
    shared = Layout((Form.CONTIGUOUS,)), Target(processors=8)
    for length, processors in ((32_768, 1), (32_769, 2), (131_072, 4), (262_144, 8)):
        (found,) = lower(kernel(SOFTMAX.replace("M)", f"{length})")))(*shared).kernels
        assert {c.num_ctas for c in found.configs} == {processors}
    (looped,) = lower(kernel(SOFTMAX.replace("(N, M)", "(999, 262145)")))(*shared).kernels
    assert "for start in" in looped.text


@pytest.mark.usefixtures("short_blocks")
def test_a_long_row_of_unknown_length_is_gone_through_in_blocks() -> None:
    check(SOFTMAX, torch.randn(3, 90))
    check(SOFTMAX, torch.randn(90, 3).T)
    check(CROSS_ENTROPY, torch.randn(4, 70), torch.randint(0, 70, (4,)))


@pytest.mark.parametrize("count", [1, 4, 1000])
def test_kept_dims_may_lie_between_reduced_ones(count: int) -> None:
    check(BATCH_NORM, torch.randn(count, 3, 4, 5))


def test_a_row_may_be_read_at_places_that_are_values() -> None:
    check(CROSS_ENTROPY, torch.randn(6, 10), torch.randint(0, 10, (6,)))


@pytest.mark.parametrize("shape", [(1, 1), (70, 5), (5, 70), (128, 33), (1000, 9), (0, 3)])
def test_columns_are_reduced_side_by_side(shape: tuple[int, int]) -> None:
    if shape[0] == 0:
        check(COLUMNS.replace("amax(%x, dim=(0,)), ", ""), torch.randn(shape))
        return
    check(COLUMNS, torch.randn(shape))


def test_rows_without_elements_read_nothing() -> None:
    source = """def @empty[N: Dim, M: Dim](%x: Tensor[(N, M), float32]) {
        (sum(%x, dim=(1,)), all(greater(%x, 0.0f32), dim=(1,)))
    }"""
    for reduced in ("M", "0", "16 * M"):
        check(source.replace("(N, M)", f"(N, {reduced})"), torch.randn(3, 0))


@pytest.fixture
def short_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows of more than 32 elements are long: the interpreter combines them one by one."""
    shorten(monkeypatch)


def shorten(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make rows of more than 32 elements long ones."""
    row, column = Config((("ALONG", 16),), 1, 1), Config((("ROWS", 2), ("ALONG", 16)), 1, 1)

    def short(kept: Dim, reduced: Dim, *, is_column: bool, divides: int = 0) -> tuple[Config, ...]:
        return (column if is_column and kept != ONE else row,)

    for module in (rows, row_pieces):
        monkeypatch.setattr(module, "loop_configs", short)
    monkeypatch.setattr(rows, "longest_row", lambda plan, processors: 32)
    monkeypatch.setattr(rows, "longest_loop", lambda kernels, moved, *, is_column: 64)
    monkeypatch.setattr(row_pieces, "piece_unit", lambda is_column: 16)
    monkeypatch.setattr(row_pieces, "shortest_piece", lambda is_column: 64)


ALL = """def @all[N: Dim, M: Dim](%x: Tensor[(N, M), DTYPE]) {
    (sum(%x, dim=(1,)), prod(%x, dim=1), amax(%x, dim=(1,)), amin(%x, dim=(1,)),
     mean(cast(%x, dtype=WIDE), dim=(1,)), argmax(%x, dim=1), argmin(%x, dim=1),
     all(%x, dim=(1,)), any(%x, dim=(1,)))
}"""


@pytest.mark.usefixtures("short_blocks")
@pytest.mark.parametrize("length", [1, 13, 70])
@pytest.mark.parametrize(
    "dtype",
    ["float32", "float64", "float16", "bfloat16", "uint8", "int8", "int16", "int32", "int64"],
)
def test_every_reduction_of_every_dtype(dtype: str, length: int) -> None:
    wide = dtype if "float" in dtype else "float32"
    source = ALL.replace("DTYPE", dtype).replace("WIDE", wide)
    if "float" in dtype:
        # Numbers whose product is exact in every order.
        some = torch.rand(3, length) < 4 / length
        x = torch.where(some, 1.5, 1.0) * torch.where(torch.rand(3, length) < 0.5, 1.0, -1.0)
    else:
        x = torch.randint(0, 5, (3, length))
    check(source, x.to(getattr(torch, dtype)))


PAIRS = """def @pairs[N: Dim, M: Dim](%x: Tensor[(N, M), float32]) {
    let %big = max(%x, dim=1);
    let %small = min(%x, dim=1);
    (%big.0, %big.1, %small.0, %small.1)
}"""


@pytest.mark.usefixtures("short_blocks")
@pytest.mark.parametrize("length", [6, 70])
def test_extremes_and_their_positions_with_not_a_number(length: int) -> None:
    x = torch.zeros(5, length)
    x[0, 3] = math.nan
    x[0, 5] = math.nan
    x[1] = -math.inf
    x[2] = math.inf
    x[3, 2], x[3, 4] = 7.0, -7.0
    check(PAIRS, x)
    check(PAIRS.replace("float32", "int32"), x.nan_to_num(1, 2, 3).to(torch.int32))


@pytest.mark.usefixtures("short_blocks")
def test_bools_of_a_row() -> None:
    source = """def @truth[N: Dim, M: Dim](%x: Tensor[(N, M), float32]) {
        (all(greater(%x, -2.0f32), dim=(1,)), any(greater(%x, 2.0f32), dim=(1,)),
         sum(greater(%x, 0.0f32), dim=(1,)))
    }"""
    check(source, torch.randn(9, 30))
    check(source, torch.randn(2, 70))


@pytest.mark.parametrize("count", [0, 1, 5, 70, 40000])
def test_all_elements_of_a_tensor(count: int) -> None:
    source = """def @total[N: Dim](%x: Tensor[(N,), float32]) {
        (sum(%x), sum(%x * %x, keepdim=True), any(greater(%x, 3.0f32)))
    }"""
    check(source, torch.randn(count))


@pytest.mark.usefixtures("short_blocks")
def test_few_long_rows_are_gone_through_in_pieces() -> None:
    source = """def @total[N: Dim](%x: Tensor[(N,), float32], %y: Tensor[(N,), int32]) {
        let %large = max(%y, dim=0);
        (sum(%x), mean(%x * %x, keepdim=True), any(greater(%x, 3.0f32)), argmin(%x), %large.0,
         %large.1, all(greater(%x, -9.0f32)), prod(%y))
    }"""
    for count in (65, 200, 1900):
        check(source, torch.randn(count), torch.randint(-1, 2, (count,), dtype=torch.int32))


@pytest.mark.usefixtures("short_blocks")
def test_few_long_rows_with_stages_are_gone_through_in_pieces() -> None:
    check(BATCH_NORM, torch.randn(40, 3, 4, 5))
    check(SOFTMAX.replace("N,", "3,").replace("N: Dim, ", ""), torch.randn(3, 500))
    found = lower(kernel(BATCH_NORM))(Layout((Form.CONTIGUOUS,)))
    while found.otherwise is not None:
        found = found.otherwise
    assert len(found.kernels) == 2


@pytest.mark.usefixtures("short_blocks")
def test_few_long_columns_are_gone_through_in_pieces() -> None:
    check(COLUMNS.replace("M)", "5)").replace(", M: Dim", ""), torch.randn(300, 5))


@pytest.mark.usefixtures("short_blocks")
def test_what_does_not_depend_on_the_place_is_summed_as_often() -> None:
    source = """def @often[N: Dim](%x: Tensor[(N, 1), float32], %y: Tensor[(5,), float32]) {
        (sum(expand(%x, size=(N, 5)), dim=(1,)), sum(expand(%y, size=(N, 5)), dim=(1,)))
    }"""
    check(source, torch.randn(7, 1), torch.randn(5))
    long = source.replace("5", "70")
    check(long, torch.randn(2, 1), torch.randn(70))


def test_a_softmax_with_its_gradient() -> None:
    source = """def @backward[N: Dim, M: Dim](
        %y: Tensor[(N, M), bfloat16], %g: Tensor[(N, M), bfloat16]) {
        let %wide = cast(%y, dtype=float32);
        let %product = cast(%g, dtype=float32) * %wide;
        cast(%product - %wide * sum(%product, dim=(1,), keepdim=True), dtype=bfloat16)
    }"""
    y = torch.softmax(torch.randn(4, 30), 1).bfloat16()
    check(source, y, torch.randn(4, 30).bfloat16())


def test_wide_places_are_computed_in_64_bits() -> None:
    make = lower(kernel(SOFTMAX))
    x = torch.randn(3, 40)
    wide = KernelCall(
        kernel(SOFTMAX),
        lambda given, target: make(Layout(given.operands, is_wide=True), target),
        DEVICE,
    )
    torch.testing.assert_close(run(kernel(SOFTMAX), [x], wide), torch.softmax(x, 1))


@pytest.mark.parametrize(
    ("name", "source"),
    [
        ("softmax", SOFTMAX),
        ("layer_norm", LAYER_NORM),
        ("batch_norm", BATCH_NORM),
        ("cross_entropy", CROSS_ENTROPY),
        ("columns", COLUMNS),
        ("pairs", PAIRS),
    ],
)
def test_kernels_look_like_this(name: str, source: str, golden: Golden) -> None:
    made = lower(kernel(source))(Layout((Form.CONTIGUOUS,) * len(kernel(source).params)))
    short = made.kernels
    while made.otherwise is not None:
        made = made.otherwise
    found = dict.fromkeys(k.text for k in (*short, *made.kernels))
    golden(f"{name}.txt", "\n\n".join(found))


ACROSS = """def @across[N: Dim, M: Dim](
    %x: Tensor[(M, N), float32], %y: Tensor[(N, M), float32]) {
    let %z = transpose(%x, dim0=0, dim1=1) + %y;
    (sum(%z, dim=(1,)), amax(transpose(%x, dim0=0, dim1=1), dim=(1,)))
}"""


@pytest.mark.usefixtures("short_blocks")
@pytest.mark.parametrize("shape", [(1, 1), (3, 40), (40, 3), (70, 30), (20, 300)])
def test_operands_may_lie_across_each_other(shape: tuple[int, int]) -> None:
    check(ACROSS, torch.randn(shape[::-1]), torch.randn(shape))


def test_blocks_are_squares_where_an_operand_lies_across() -> None:
    (found,) = kernels(ACROSS.replace("M)", "64)").replace("(M,", "(64,").replace(", M: Dim", ""))
    blocks = dict(found.configs[0].constants)
    assert min(blocks["ROWS"], blocks["ALONG"]) >= 32


def test_many_programs_go_through_few_columns() -> None:
    """The sum over a batch has few results, and reads as much as a device can."""
    source = COLUMNS.replace("(N, M)", "(65536, 512)").replace("N: Dim, M: Dim", "")
    first, last = kernels(source.replace("[]", ""))
    assert first.grid[1] == (Tiles(Dim.of(128), None),)
    assert "atomic" not in first.text + last.text


def test_rows_of_no_elements_are_not_read() -> None:
    source = """def @none[N: Dim](%x: Tensor[(N, 1024), float32], %y: Tensor[(0, 4), float32]) {
        (sum(%x), sum(%y))
    }"""
    for function in (source.replace("(sum(%x), sum(%y))", f"sum({name})") for name in ("%x", "%y")):
        for count in (0, 1):
            check(function, torch.randn(count, 1024), torch.randn(0, 4))
