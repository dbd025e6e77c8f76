"""Kernels of sums of products: values for every sort of dim, and what their text looks like."""

from __future__ import annotations

import pytest
import torch

from pyrelay.kernels.calling import Form, Layout
from pyrelay.lower_triton.kernel import Kernel, Lowered, Target, Tiles
from pyrelay.lower_triton.launching.launch import KernelCall
from tests.golden import Golden
from tests.kernels.contractions import LAYER, SCORES
from tests.kernels.running import DEVICE, check, run
from tests.unit.kernels.kernels import kernel as kernel_of
from tests.unit.kernels.kernels import lower

PLAIN = """def @plain[M: Dim, K: Dim, N: Dim](
    %x: Tensor[(M, K), float32], %y: Tensor[(K, N), float32]) {
    matmul(%x, %y)
}"""


@pytest.mark.parametrize("sizes", [(1, 1, 1), (5, 3, 7), (70, 40, 65), (0, 3, 4), (3, 0, 4)])
def test_a_product_of_matrices(sizes: tuple[int, int, int]) -> None:
    m, k, n = sizes
    check(PLAIN, torch.randn(m, k), torch.randn(k, n))
    check(PLAIN, torch.randn(k, m).T, torch.randn(n, k).T)


def test_where_blocks_of_float64_are_not_multiplied_products_are_made_one_by_one() -> None:
    function = kernel_of(PLAIN.replace("float32", "float64"))

    def lowered(layout: Layout, _: Target | None = None) -> Lowered:
        return lower(function)(layout, Target(has_double_blocks=False))

    x, y = torch.randn(70, 40).double(), torch.randn(40, 65).double()
    prepared = KernelCall(function, lowered, DEVICE)
    torch.testing.assert_close(run(function, [x, y], prepared), x @ y)
    made: Lowered | None = lowered(Layout((Form.CONTIGUOUS,) * 2))
    while made is not None:
        assert all("tl.dot(" not in k.text for k in made.kernels)
        made = made.otherwise
    whole = lower(function)(Layout((Form.CONTIGUOUS,) * 2))
    while whole.otherwise is not None:
        whole = whole.otherwise
    assert "tl.dot(" in whole.kernels[0].text


MERGED = """def @merged[B: Dim, T: Dim](
    %x: Tensor[(B, T, 3, 4), float32], %w: Tensor[(3, 4, 5), float32]) {
    let %flat = reshape(%x, shape=(B, T, 12));
    let %rows = reshape(%w, shape=(12, 5));
    let %y = matmul(%flat, %rows);
    reshape(%y, shape=(B * T, 5))
}"""
OUTER = """def @outer_sum[M: Dim, N: Dim](
    %x: Tensor[(M,), float32], %y: Tensor[(N,), float32], %w: Tensor[(M, N), float32]) {
    let %column = reshape(%x, shape=(M, 1));
    let %row = reshape(%y, shape=(1, N));
    let %o = matmul(%column, %row);
    let %_ = overwrite(%w, %w - %o * 0.1f32);
    ()
}"""


def test_what_comes_before_and_after_is_in_the_kernel() -> None:
    for rows in (0, 1, 37):
        x, w = torch.randn(rows, 33), torch.randn(20, 33)
        check(LAYER, x, w, torch.randn(20), torch.randn(rows, 20))


def test_a_number_that_is_not_read_adds_nothing() -> None:
    # Beside the operands lie infinities, and exp(0) is not 0.
    source = """def @exponentials[M: Dim](
        %x: Tensor[(M, 5), float32], %y: Tensor[(5, 4), float32]) {
        matmul(exp(%x), %y)
    }"""
    x, y = torch.full((9, 9), torch.inf), torch.full((9, 9), torch.inf)
    x[:, :5], y[:5, :4] = torch.randn(9, 5), torch.randn(5, 4)
    check(source, x[:3, :5], y[:5, :4])


def test_stacks_of_matrices_are_broadcast() -> None:
    check(SCORES, torch.randn(2, 3, 5, 8), torch.randn(3, 7, 8))
    check(SCORES, torch.randn(2, 1, 5, 8), torch.randn(1, 7, 8))
    check(SCORES, torch.randn(3, 1, 70, 8), torch.randn(1, 65, 8))


def test_a_stack_may_have_more_matrices_than_the_second_axis_of_a_grid_has_programs() -> None:
    for made in alternatives(SCORES):
        (axis,) = made.grid
        assert sum(isinstance(t, Tiles) and t.block is None for t in axis) == 1


def test_dims_of_one_sort_are_one() -> None:
    check(MERGED, torch.randn(2, 9, 3, 4), torch.randn(3, 4, 5))


def test_a_sum_of_one_product_updates_a_parameter() -> None:
    check(OUTER, torch.randn(19), torch.randn(33), torch.randn(19, 33))
    check(OUTER, torch.randn(19), torch.randn(33), torch.randn(33, 19).T)


@pytest.mark.parametrize("dtype", ["bfloat16", "float16", "float64"])
def test_floats_of_every_width(dtype: str) -> None:
    kind = getattr(torch, dtype)
    source = LAYER.replace("float32", dtype)
    sizes = ((17, 33), (20, 33), (20,), (17, 20))
    check(source, *(torch.randn(s).to(kind) for s in sizes))
    check(PLAIN.replace("float32", dtype), *(torch.randn(s).to(kind) for s in ((17, 9), (9, 8))))


def alternatives(source: str) -> list[Kernel]:
    """Return the kernels of a function for few rows, few columns, and any."""
    function = kernel_of(source)
    lowered: Lowered | None = lower(function)(Layout((Form.CONTIGUOUS,) * len(function.params)))
    found: list[Kernel] = []
    while lowered is not None:
        found += lowered.kernels
        lowered = lowered.otherwise
    return found


def test_the_text_of_a_layer(golden: Golden) -> None:
    few, *_, any_ = alternatives(LAYER)
    golden("layer.txt", any_.text)
    golden("layer_of_few_rows.txt", few.text)


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float64", "int64"])
def test_few_rows_and_few_columns_are_multiplied_one_by_one(dtype: str) -> None:
    kind = getattr(torch, dtype)

    def some(*sizes: int) -> torch.Tensor:
        return torch.randint(-9, 9, sizes) if dtype == "int64" else torch.randn(sizes).to(kind)

    source = PLAIN.replace("float32", dtype)
    for m, n in ((1, 70), (70, 1), (8, 40), (40, 8), (9, 17)):
        check(source, some(m, 33), some(33, n))
        check(source, some(33, m).T, some(n, 33).T)


def test_no_more_tiles_than_fit_are_asked_for() -> None:
    last = alternatives(LAYER)[-1]
    assert [dict(c.constants)["BLOCK_N"] for c in last.configs] == [32] * len(last.configs)
    sizes = [dict(k.configs[0].constants)["BLOCK_M"] for k in alternatives(PLAIN)]
    assert sizes[0] == 1
    assert sizes[-1] == 64


GATES = """def @gates[N: Dim](%x: Tensor[(N, 33), float32], %h: Tensor[(N, 20), float32],
    %a: Tensor[(20, 33), float32], %b: Tensor[(20, 33), float32],
    %u: Tensor[(20, 20), float32], %v: Tensor[(20, 20), float32]) {
    let %at = transpose(%a, dim0=0, dim1=1); let %bt = transpose(%b, dim0=0, dim1=1);
    let %p = matmul(%x, %at); let %q = matmul(%h, %u);
    let %r = matmul(%x, %bt); let %s = matmul(tanh(%h), %v);
    let %i = sigmoid(%p + %q); let %j = tanh(%r + %s);
    (%i * %j, %r) }"""


def test_several_sums_over_the_same_places_are_one_kernel(golden: Golden) -> None:
    for rows in (3, 17):
        weights = (torch.randn(20, n) for n in (33, 33, 20, 20))
        check(GATES, torch.randn(rows, 33), torch.randn(rows, 20), *weights)
    *_, last = alternatives(GATES)
    golden("gates.txt", last.text)
    assert last.text.count("for start in") == 2
    sizes = [dict(c.constants) for c in last.configs]
    assert all(4 * s["BLOCK_M"] * s["BLOCK_N"] <= 128 * 128 for s in sizes)


ACROSS = """def @across[N: Dim](%x: Tensor[(N, 33), float32], %w: Tensor[(10, 33), float32],
    %b: Tensor[(10,), float32]) {
    let %t = transpose(%w, dim0=0, dim1=1);
    let %y = matmul(%x, %t) + %b;
    let %peak = amax(%y, dim=(1,), keepdim=True);
    let %e = exp(%y - %peak);
    let %total = sum(%e, dim=(1,), keepdim=True);
    (%e / %total, argmax(%y, dim=1), log(%total) + %peak) }"""
DOWN = """def @down[M: Dim](%x: Tensor[(7, 33), float32], %w: Tensor[(33, M), float32]) {
    let %y = tanh(matmul(%x, %w));
    let %s = sum(%y, dim=(0,));
    (%y * %s, %s) }"""
BESIDE = """def @beside[N: Dim](%g: Tensor[(N, 20), float32], %x: Tensor[(N, 35), float32],
    %w: Tensor[(20, 35), float32], %b: Tensor[(20,), float32]) {
    let %t = transpose(%g, dim0=0, dim1=1);
    let %d = matmul(%t, %x);
    let %s = sum(%g, dim=(0,));
    let %_ = overwrite(%w, %w - %d * 0.1f32);
    let %_ = overwrite(%b, %b - %s * 0.1f32);
    amax(%g, dim=(0,)) }"""
TURNED = """def @turned[N: Dim](%g: Tensor[(N, 20), float32], %x: Tensor[(N, 35), float32]) {
    let %t = transpose(%x, dim0=0, dim1=1);
    (matmul(%t, %g), sum(%g, dim=(0,)), mean(%g * %g, dim=(0,))) }"""


@pytest.mark.parametrize("rows", [3, 40])
def test_rows_of_sums_are_reduced_in_their_kernel(rows: int) -> None:
    check(ACROSS, torch.randn(rows, 33), torch.randn(10, 33), torch.randn(10))
    check(DOWN, torch.randn(7, 33), torch.randn(33, rows))


@pytest.mark.parametrize("rows", [0, 3, 40])
def test_operands_are_reduced_beside_the_sums(rows: int) -> None:
    g, x = torch.randn(rows, 20), torch.randn(rows, 35)
    check(TURNED.replace("mean", "sum"), g, x)
    if rows:
        check(BESIDE, g, x, torch.randn(20, 35), torch.randn(20))
        check(BESIDE, torch.randn(20, rows).T, x, torch.randn(35, 20).T, torch.randn(20))


def test_the_text_of_a_gradient_of_a_layer(golden: Golden) -> None:
    golden("beside.txt", alternatives(BESIDE)[-1].text)
    golden("across.txt", alternatives(ACROSS)[-1].text)
