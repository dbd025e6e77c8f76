"""Sums of products in C: every sort of dim, operands that are computed, and uses of the sums."""

from __future__ import annotations

import re

import pytest
import torch

from pyrelay.kernels.calling import Form, Layout
from pyrelay.lower_c.math import TARGETS, Target
from pyrelay.lower_c.text import lower
from tests.kernels.contractions import LAYER, SCORES
from tests.unit.kernels.kernels import kernel as kernel_of
from tests.unit.kernels.recognised import group_of
from tests.unit.lower_c.running import check, text

PLAIN = """def @plain[M: Dim, K: Dim, N: Dim](
    %x: Tensor[(M, K), {dtype}], %y: Tensor[(K, N), {dtype}]) {{
    matmul(%x, %y)
}}"""
GRADIENTS = """def @gradients[N: Dim, K: Dim, M: Dim](
    %g: Tensor[(N, M), float32], %x: Tensor[(N, K), float32]) {
    let %d = %g * %g;
    let %t = transpose(%d, dim0=0, dim1=1);
    (matmul(%t, %x), sum(%d, dim=(0,)))
}"""


@pytest.mark.parametrize(
    "sizes", [(1, 1, 1), (5, 3, 7), (70, 40, 65), (7, 9, 128), (0, 3, 4), (3, 0, 4)]
)
def test_a_product_of_matrices(sizes: tuple[int, int, int]) -> None:
    m, k, n = sizes
    source = PLAIN.format(dtype="float32")
    check(source, torch.randn(m, k), torch.randn(k, n))
    check(source, torch.randn(k, m).T, torch.randn(n, k).T)


@pytest.mark.parametrize("dtype", ["float64", "bfloat16", "int64"])
def test_products_of_other_dtypes(dtype: str) -> None:
    x, y = torch.randint(-4, 5, (9, 6)), torch.randint(-4, 5, (6, 35))
    check(PLAIN.format(dtype=dtype), *(t.to(getattr(torch, dtype)) for t in (x, y)))


def test_operands_are_computed_and_sums_are_used_at_once() -> None:
    operands = torch.randn(13, 21), torch.randn(20, 21), torch.randn(20), torch.randn(13, 20)
    check(LAYER, *operands)


def test_batches_may_be_of_one_operand_alone() -> None:
    check(SCORES, torch.randn(2, 3, 7, 8), torch.randn(3, 19, 8))


def test_the_gradient_of_a_bias_is_summed_beside_that_of_the_weight() -> None:
    check(GRADIENTS, torch.randn(11, 18), torch.randn(11, 23))


UPDATES = """def @updates[N: Dim, K: Dim, M: Dim](%g: Tensor[(N, M), float32],
    %x: Tensor[(N, K), float32], %w: Tensor[(M, K), float32], %b: Tensor[(M,), float32]) {
    let %d = %g * %g;
    let %t = transpose(%d, dim0=0, dim1=1);
    let %w_out = overwrite(%w, %w - matmul(%t, %x) * 0.1f32);
    let %b_out = overwrite(%b, %b - sum(%d, dim=(0,)) * 0.1f32);
    ()
}"""


def test_parameters_are_updated_by_their_gradients() -> None:
    check(UPDATES, torch.randn(11, 18), torch.randn(11, 23), torch.randn(18, 23), torch.randn(18))


@pytest.mark.parametrize(("count", "rows"), [(256, 18), (257, 5), (300, 150)])
def test_rows_across_long_sums_are_packed(count: int, rows: int) -> None:
    source = """def @gradient[N: Dim, K: Dim, M: Dim](
        %g: Tensor[(N, M), float32], %x: Tensor[(N, K), float32]) {
        let %t = transpose(%g, dim0=0, dim1=1);
        matmul(%t, %x)
    }"""
    g, x = (torch.randint(-4, 5, (count, columns)).float() for columns in (rows, 23))
    check(source, g, x)  # sums are exact


WIDE = """def @wide[N: Dim, K: Dim](%x: Tensor[(N, K), float32], %w: Tensor[(100, K), float32]) {
    let %t = transpose(%w, dim0=0, dim1=1);
    relu(matmul(%x, %t))
}"""


@pytest.mark.parametrize("rows", [15, 16, 40, 84, 85])
def test_for_few_rows_tiles_of_the_transposed_result_are_computed(rows: int) -> None:
    check(WIDE, torch.randn(rows, 21), torch.randn(100, 21))


@pytest.mark.parametrize("target", TARGETS.values(), ids=lambda t: t.name)
def test_sums_of_transposed_tiles_have_room_for_columns_of_the_last_step(target: Target) -> None:
    layout = Layout((Form.CONTIGUOUS, Form.CONTIGUOUS))
    (made,) = lower(group_of(kernel_of(WIDE)), layout, target)
    pattern = r"sums_across\[(\d+)\];\s+for .* c \+= (\d+)\)\s.*, sums_across \+ c \* (\d+),"
    ((room, step, width),) = re.findall(pattern, made.text)
    last = 63 // int(step) * int(step)
    assert int(room) == (last + int(step)) * int(width)


NORMALISED = """def @normalised[N: Dim, K: Dim](
    %x: Tensor[(N, K), float32], %w: Tensor[(WIDTH, K), float32]) {
    let %t = transpose(%w, dim0=0, dim1=1);
    let %scores = matmul(%x, %t);
    let %peak = amax(%scores, dim=(1,), keepdim=True);
    let %weights = exp(%scores - %peak);
    let %total = sum(%weights, dim=(1,), keepdim=True);
    (%weights / %total, log(%total) + %peak)
}"""
LARGEST = """def @largest[B: Dim, N: Dim, K: Dim](
    %x: Tensor[(B, N, K), float32], %y: Tensor[(B, K, 33), float32]) {
    argmax(matmul(%x, %y), dim=2)
}"""
PRODUCTS = """def @products[N: Dim, K: Dim](
    %x: Tensor[(N, K), float64], %y: Tensor[(N, K), float64], %w: Tensor[(K, 9), float64]) {
    let %first = matmul(%x, %w);
    let %second = matmul(%y, %w);
    sum(%first * %second, dim=(1,))
}"""


COLUMNS = """def @columns[M: Dim](
    %x: Tensor[(M, 21), float32], %w: Tensor[(21, 33), float32], %h: Tensor[(M, 33), float32]) {
    let %y = matmul(%x, %w) * %h;
    (%y, sum(%y, dim=(0,)), amax(%y * %h, dim=(0,))) }"""
SCALED = """def @scaled[M: Dim](%x: Tensor[(M, 21), float32], %w: Tensor[(21, 33), float32]) {
    let %y = matmul(%x, %w);
    let %s = sum(%y, dim=(0,));
    (%y * %s, %y + 1.0f32) }"""
ADDED = """def @added[M: Dim, K: Dim](
    %a: Tensor[(M, K), float32], %b: Tensor[(K, 33), float32],
    %c: Tensor[(M, 9), float32], %d: Tensor[(9, 33), float32]) {
    (matmul(%a, %b) + matmul(%c, %d)) + matmul(%a, %b) }"""


@pytest.mark.parametrize("rows", [1, 5, 40])
def test_columns_of_sums_are_reduced_in_their_kernel(rows: int) -> None:
    x, w, h = torch.randn(rows, 21), torch.randn(21, 33), torch.randn(rows, 33)
    check(COLUMNS, x, w, h)
    check(COLUMNS, x, torch.randn(33, 21).T, h)
    check(SCALED, x, w)


@pytest.mark.parametrize("rows", [1, 30])
def test_sums_are_added(rows: int) -> None:
    check(ADDED, torch.randn(rows, 5), torch.randn(5, 33), torch.randn(rows, 9), torch.randn(9, 33))


@pytest.mark.parametrize("width", [1, 10, 64, 127])
@pytest.mark.parametrize("rows", [1, 4, 29])
def test_rows_of_sums_are_normalised(width: int, rows: int) -> None:
    source = NORMALISED.replace("WIDTH", str(width))
    check(source, torch.randn(rows, 19), torch.randn(width, 19))


def test_the_largest_of_each_row_of_sums_is_found() -> None:
    check(LARGEST, torch.randn(3, 5, 7), torch.randn(3, 7, 33))


def test_rows_of_two_sums_are_reduced_together() -> None:
    x, y = (torch.randn(23, 6, dtype=torch.float64) for _ in range(2))
    check(PRODUCTS, x, y, torch.randn(6, 9, dtype=torch.float64))


@pytest.mark.parametrize("columns", [3, 20, 33, 48, 100])
def test_tiles_are_as_wide_as_the_columns_ask_for(columns: int) -> None:
    source = PLAIN.replace("N: Dim", "").replace("K: Dim,", "K: Dim").replace("N)", f"{columns})")
    for rows in (1, 7, 23):
        check(source.format(dtype="float32"), torch.randn(rows, 13), torch.randn(13, columns))
        check(source.format(dtype="float32"), torch.randn(rows, 13), torch.randn(columns, 13).T)


TRANSPOSED = """def @layer[N: Dim, K: Dim, M: Dim](
    %x: Tensor[(N, K), {dtype}], %h: Tensor[(N, 7), {dtype}], %w: Tensor[(M, K), {dtype}],
    %u: Tensor[(M, 7), {dtype}], %b: Tensor[(M,), {dtype}]) {{
    let %w_t = transpose(%w, dim0=0, dim1=1);
    let %u_t = transpose(%u, dim0=0, dim1=1);
    tanh(matmul(%x, %w_t) + matmul(%h, %u_t) + %b)
}}"""


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("sizes", [(15, 80), (16, 80), (32, 64), (33, 65), (70, 200), (40, 60)])
def test_few_rows_are_packed_rather_than_columns(
    sizes: tuple[int, int], dtype: torch.dtype
) -> None:
    rows, columns = sizes
    shapes = [(rows, 37), (rows, 7), (columns, 37), (columns, 7), (columns,)]
    operands = [torch.randn(shape, dtype=dtype) for shape in shapes]
    source = TRANSPOSED.format(dtype=str(dtype).removeprefix("torch."))
    check(source, *operands)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("rows", [1, 4, 7, 8, 9])
def test_sums_of_few_rows_by_a_large_matrix_are_made_in_pieces(
    rows: int, dtype: torch.dtype
) -> None:
    source = """def @back[N: Dim, K: Dim, M: Dim](
        %g: Tensor[(N, K), DTYPE], %w: Tensor[(K, M), DTYPE], %h: Tensor[(N, M), DTYPE],
        %u: Tensor[(7, M), DTYPE], %d: Tensor[(N, 7), DTYPE]) {
        tanh(matmul(%g, %w) + matmul(%d, %u)) * %h
    }""".replace("DTYPE", str(dtype).removeprefix("torch."))
    shapes = [(rows, 70), (70, 1000), (rows, 1000), (7, 1000), (rows, 7)]
    check(source, *(torch.randint(-4, 5, shape).to(dtype) / 16 for shape in shapes))  # exact sums


@pytest.mark.parametrize(
    "sizes", [(20, 600, 90), (40, 4300, 80), (250, 1300, 200), (600, 90, 560), (40, 2100, 60)]
)
def test_each_thread_packs_panels_that_it_has_room_for(sizes: tuple[int, int, int]) -> None:
    rows, count, columns = sizes
    shapes = [(rows, columns), (rows, count), (columns, count), (columns,)]
    g, x, w, b = (torch.randint(-2, 3, shape).float() for shape in shapes)  # sums are exact
    before = torch.get_num_threads()
    try:
        for threads in (1, 2):
            torch.set_num_threads(threads)
            check(PLAIN.format(dtype="float32"), x, w.T)
            check(PLAIN.format(dtype="float32"), x, w.T.contiguous())
            check(UPDATES, g, x, w, b)
    finally:
        torch.set_num_threads(before)


def test_panels_hold_no_garbage() -> None:
    """What lies in memory by chance may be denormal, and products of it take 100 times longer."""
    source = PLAIN.format(dtype="float32")
    packing = text(source).split("_part_columns_at(")[1]
    rest = packing.index("memset(to, 0, ")
    assert packing.index("if (last - column < ") < rest < packing.index("OVER (")


def test_rows_that_each_thread_packs_for_itself_are_updated_in_place() -> None:
    shapes = [(300, 70), (300, 50), (70, 50), (70,)]
    g, x, w, b = (torch.randint(-2, 3, shape).float() for shape in shapes)  # sums are exact
    source = UPDATES.replace("let %d = %g * %g;", "").replace("%d", "%g")
    assert "relay_packed(&relay_own_rows" in text(source)
    before = torch.get_num_threads()
    try:
        for threads in (1, 2):
            torch.set_num_threads(threads)
            check(source, g, x, w, b)
    finally:
        torch.set_num_threads(before)


def test_few_rows_of_a_batch_are_packed() -> None:
    source = """def @scores[B: Dim, T: Dim, S: Dim](
        %q: Tensor[(B, T, 8), float32], %k: Tensor[(B, S, 8), float32]) {
        let %turned = transpose(%k, dim0=1, dim1=2);
        matmul(%q, %turned)
    }"""
    check(source, torch.randn(3, 20, 8), torch.randn(3, 75, 8))
