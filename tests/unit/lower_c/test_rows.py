"""Passes with reductions in C: every kind, every dtype, rows of every length."""

from __future__ import annotations

import pytest
import torch

from tests.kernels.row_sources import BATCH_NORM, COLUMNS, CROSS_ENTROPY, LAYER_NORM, SOFTMAX
from tests.unit.kernels.kernels import kernel as kernel_of
from tests.unit.lower_c.running import check, run, text

KINDS = """def @kinds[N: Dim, M: Dim](%x: Tensor[(N, M), {dtype}]) {{
    (sum(%x, dim=(1,)), amax(%x, dim=(1,)), amin(%x, dim=(1,)), argmax(%x, dim=1),
     argmin(%x, dim=1), prod(%x, dim=1))
}}"""


VITERBI = """def @step[S: Dim](%moves: Tensor[(S, S), float32], %score: Tensor[(S,), float32]) {
    amax(unsqueeze(%score, dim=1) + %moves, dim=(0,))
}"""


@pytest.mark.parametrize("size", [1, 5, 16, 40])
def test_lanes_lie_along_what_has_a_row_for_each_lane(size: int) -> None:
    """What is the same in all lanes does not decide that."""
    check(VITERBI, torch.randn(size, size), torch.randn(size))
    assert "*(score_at + k)" in text(VITERBI)


PAIRS = """def @pairs[N: Dim, M: Dim, K: Dim](%x: Tensor[(N, K), {dtype}],
    %y: Tensor[(M, K), {dtype}], %w: Tensor[(M,), {dtype}]) {{
    let %moved = unsqueeze(%x, dim=1) - unsqueeze(%y, dim=0);
    (sum(%moved * %moved, dim=(2,)) + %w, amax(%moved, dim=(2,)))
}}"""


PAIRED = [(20, 70, 7), (9, 16, 1), (4, 33, 7), (20, 5, 7), (9, 17, 300)]


@pytest.mark.parametrize("dtype", ["float32", "float64", "int64"])
@pytest.mark.parametrize(("n", "m", "k"), PAIRED)
def test_rows_of_pairs_whatever_their_sizes(n: int, m: int, k: int, dtype: str) -> None:
    kind = getattr(torch, dtype)
    x, y, w = ((9 * torch.randn(*shape)).to(kind) for shape in ((n, k), (m, k), (m,)))
    check(PAIRS.format(dtype=dtype), x, y, w)
    check(PAIRS.format(dtype=dtype), x, y.repeat(1, 2)[:, ::2], w)


def test_an_operand_that_all_rows_meet_is_turned() -> None:
    assert "y_turned[at * M + j] = " in text(PAIRS.format(dtype="float32"))
    assert "turned" not in text(SOFTMAX)


@pytest.mark.parametrize("shape", [(1, 1), (5, 7), (3, 64), (2, 1000), (0, 4)])
def test_softmax_of_rows_of_every_length(shape: tuple[int, int]) -> None:
    check(SOFTMAX, torch.randn(shape))


def test_rows_may_have_any_strides() -> None:
    check(SOFTMAX, torch.randn(33, 5).T)
    check(LAYER_NORM, torch.randn(48, 6).T, torch.randn(96)[::2], torch.randn(1).expand(48))


def test_reduced_dims_need_not_be_neighbours() -> None:
    check(BATCH_NORM, torch.randn(3, 3, 4, 5))
    check(COLUMNS, torch.randn(50, 37))
    check(COLUMNS, torch.randn(1, 3))


def test_losses_read_at_computed_places() -> None:
    check(CROSS_ENTROPY, torch.randn(9, 21), torch.randint(0, 21, (9,)))


@pytest.mark.parametrize("dtype", ["float32", "float64", "bfloat16", "int32", "int64", "uint8"])
def test_every_kind_of_every_dtype(dtype: str) -> None:
    x = torch.randint(1, 4, (6, 19)).to(getattr(torch, dtype))
    check(KINDS.format(dtype=dtype), x)


@pytest.mark.parametrize("dtype", ["float32", "float64", "bfloat16", "int32", "int64"])
@pytest.mark.parametrize("length", [63, 64, 65, 300])
def test_several_vectors_of_a_row_or_of_columns_combine(dtype: str, length: int) -> None:
    x = torch.randint(1, 4, (length, length)).to(getattr(torch, dtype))
    for dim in (0, 1):
        sums = f"""def @sums[N: Dim, M: Dim](%x: Tensor[(N, M), {dtype}]) {{
            (sum(%x, dim=({dim},)), amax(%x, dim=({dim},)), amin(%x, dim=({dim},)))
        }}"""
        check(sums, x)


def test_the_exponentials_of_a_softmax_are_computed_once() -> None:
    found = text(SOFTMAX)
    assert found.count("relay_exp_") == 1
    for shape in ((3, 63), (3, 64), (2, 515)):
        check(SOFTMAX, torch.randn(shape))
        check(SOFTMAX, torch.randn(shape[::-1]).T)


def test_what_has_no_room_in_an_output_is_computed_again() -> None:
    check(SOFTMAX.replace("float32", "bfloat16"), torch.randn(3, 300).to(torch.bfloat16))


def test_bools_of_rows_combine() -> None:
    for dim in (0, 1):
        one = f"""def @bools[N: Dim, M: Dim](%x: Tensor[(N, M), bool]) {{
            (any(%x, dim=({dim},)), all(%x, dim=({dim},)))
        }}"""
        check(one, torch.rand(5, 20) < 0.2)
        check(one, torch.rand(5, 20) < 2)


def test_nan_is_the_largest_and_the_smallest() -> None:
    x = torch.randn(4, 40)
    x[0, 7] = x[0, 30] = x[1, 0] = torch.nan
    x[2] = -torch.inf
    x[3] = 1.0
    check(KINDS.format(dtype="float32"), x)
    check(KINDS.format(dtype="float32"), x.T.contiguous().T)


@pytest.mark.parametrize("dtype", ["float32", "float64", "bfloat16", "int32", "int64", "uint8"])
@pytest.mark.parametrize("length", [0, 1, 16383, 16384, 16385, 40000])
def test_a_tensor_is_reduced_in_pieces(dtype: str, length: int) -> None:
    x = torch.randint(0, 4, (length,)).to(getattr(torch, dtype))
    check(f"def @sum[N: Dim](%x: Tensor[(N,), {dtype}]) {{ sum(%x) }}", x)
    if not length:
        return
    program = f"""def @all[N: Dim](%first: Tensor[(N,), {dtype}]) {{
        (amax(%first), amin(%first), sum(%first * %first))
    }}"""
    check(program, x)
    assert "all_part_pieces" in text(program)


def test_a_piece_that_is_not_a_number_decides() -> None:
    x = torch.randn(50_000)
    x[20_000] = torch.nan
    program = "def @all[N: Dim](%x: Tensor[(N,), float32]) { (mean(%x), amax(%x)) }"
    check(program, x)


def test_pieces_are_the_same_for_any_number_of_threads() -> None:
    x, program = torch.randn(200_000), "def @s[N: Dim](%x: Tensor[(N,), float32]) { sum(%x * %x) }"
    before, found = torch.get_num_threads(), list[torch.Tensor]()
    try:
        for threads in (1, 2, 3):
            torch.set_num_threads(threads)
            found.append(run(kernel_of(program), [x]))
    finally:
        torch.set_num_threads(before)
    assert torch.equal(found[0], found[1])
    assert torch.equal(found[0], found[2])


def test_what_a_later_loop_needs_lies_in_no_output_that_is_stored_before() -> None:
    program = """def @both[N: Dim](
        %x: Tensor[(N, 5), float32], %y: Tensor[(N, 5), float32], %z: Tensor[(N, 5), float32]) {
        let %e = exp(%x);
        let %total = sum(%e, dim=(1,), keepdim=True);
        let %first = %e / %total;
        let %weight = sum(%first * %y, dim=(1,), keepdim=True);
        (%first * %z, (%y - %weight) * %e) }"""
    check(program, *torch.randn(3, 4, 5))
