"""Pointwise passes, updates and scatters in C: every dtype, any strides, every size."""

from __future__ import annotations

import pytest
import torch

from pyrelay.lower_c.math import host_target, preamble
from tests.unit.lower_c.running import check, text

GELU = """def @gelu[N: Dim, M: Dim](%x: Tensor[(N, M), float32], %w: Tensor[(M,), float32]) {
    let %y = %x * %w;
    %y * (0.5f32 * (1.0f32 + erf(%y * 0.70710677f32)))
}"""
AROUND = """def @around[N: Dim, C: Dim, H: Dim](%x: Tensor[(N, C, H, H), float32],
    %scale: Tensor[(C, 1, 1), float32], %row: Tensor[(N, 1, 1, H), float32]) {
    %x * %scale + %row
}"""
EVERY = """def @every[N: Dim](%x: Tensor[(N,), {dtype}], %y: Tensor[(N,), {dtype}]) {{
    (%x + %y, %x * %y, maximum(%x, %y), where(%x < %y, %x, %y), %x == %y)
}}"""
WIDENED = """def @widened[N: Dim](%x: Tensor[(N,), {dtype}], %y: Tensor[(N,), float32]) {{
    (cast(%x, dtype=float32) * %y, cast(%y, dtype={dtype}))
}}"""
POOLED = """def @pooled[N: Dim](%x: Tensor[(N, 3, {h}, {w}), {dtype}]) {{
    let %best = max_pool2d_with_indices(%x, kernel_size={kernel}, stride=2, padding={padding});
    (tanh(%best.0), %best.1)
}}"""
SPREAD = """def @spread[N: Dim](%x: Tensor[(N, 3, {h}, {w}), {dtype}],
    %g: Tensor[(N, 3, {h} // 2, {w} // 2), {dtype}],
    %at: Tensor[(N, 3, {h} // 2, {w} // 2), int64]) {{
    max_pool2d_backward(%g * %g, %x, %at, kernel_size=2)
}}"""
TRANSPOSED = """def @transposed[B: Dim, N: Dim, M: Dim](%x: Tensor[(B, M, N), {dtype}],
    %y: Tensor[(N, M), {dtype}], %w: Tensor[(N, 1), {dtype}]) {{
    transpose(%x, dim0=1, dim1=2) * %w + %y
}}"""
DTYPES = ("float32", "float64", "float16", "bfloat16", "int8", "int16", "int32", "int64", "uint8")


@pytest.mark.parametrize("shape", [(1, 1), (3, 16), (5, 7), (2, 1000), (0, 4), (4, 0)])
def test_places_of_every_count(shape: tuple[int, int]) -> None:
    check(GELU, torch.randn(shape), torch.randn(shape[1]))


@pytest.mark.parametrize("shape", ["0,", "3, 0", "0, 3", "2, 0, 2"])
def test_tensors_that_are_known_to_be_empty(shape: str) -> None:
    empty = f"def @empty(%x: Tensor[({shape}), float32]) {{ tanh(%x) * 2.0f32 }}"
    check(empty, torch.zeros([int(n) for n in shape.split(",") if n]))


@pytest.mark.parametrize("count", [1, 15, 16, 17, 127, 128, 129, 700])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_functions_of_several_vectors_at_once(count: int, dtype: str) -> None:
    functions = f"""def @functions[N: Dim](%x: Tensor[(N,), {dtype}]) {{
        (tanh(tanh(tanh(%x) + %x) + %x), exp(%x), where(sigmoid(%x) < 0.5, log1p(exp(%x)), %x))
    }}"""
    check(functions, torch.randn(count, dtype=getattr(torch, dtype)))


def test_a_sum_is_computed_for_one_vector_at_a_time() -> None:
    assert "OVER (" in text("def @more[N: Dim](%x: Tensor[(N,), float32]) { %x * 2.0f32 + 1.0f32 }")


def test_operands_may_have_any_strides() -> None:
    check(GELU, torch.randn(33, 20).T, torch.randn(66)[::2])
    check(GELU, torch.randn(1, 33).expand(20, 33), torch.randn(1).expand(33))
    check(GELU, torch.randn(40, 33, 2)[::2, :, 1], torch.randn(33))


@pytest.mark.parametrize("shape", [(1, 16, 16), (1, 40, 33), (3, 17, 5), (2, 1, 50), (2, 50, 1)])
@pytest.mark.parametrize("dtype", ["float32", "float64", "bfloat16", "int32", "uint8"])
def test_transposed_operands_are_read_in_blocks_of_rows(
    shape: tuple[int, int, int], dtype: str
) -> None:
    batch, n, m = shape
    source = TRANSPOSED.format(dtype=dtype)
    operands = [torch.rand(s) * 9 for s in ((batch, m, n), (n, m), (n, 1))]
    check(source, *(o.to(getattr(torch, dtype)) for o in operands))
    assert "block" in text(source)
    assert ("relay_transpose_" in text(source)) == (dtype != "bfloat16")


def test_dims_that_are_broadcast_are_loops_of_their_own() -> None:
    operands = torch.randn(2, 3, 5, 5), torch.randn(3, 1, 1), torch.randn(2, 1, 1, 5)
    check(AROUND, *operands)
    check(AROUND, operands[0].contiguous(memory_format=torch.channels_last), *operands[1:])


SHORT_ROWS = [(8, 8), (12, 12), (6, 10), (16, 4), (4, 24), (24, 24), (14, 14), (4, 80)]


@pytest.mark.parametrize(("h", "w"), SHORT_ROWS)
@pytest.mark.parametrize("dtype", ["float32", "float64", "bfloat16"])
def test_windows_over_images_with_short_rows(h: int, w: int, dtype: str) -> None:
    kind = getattr(torch, dtype)
    x, g = torch.randn(2, 3, h, w, dtype=kind), torch.randn(2, 3, h // 2, w // 2, dtype=kind)
    size = {"h": h, "w": w, "dtype": dtype}
    check(POOLED.format(**size, kernel=2, padding=0), x)
    check(POOLED.format(**size, kernel=3, padding=1), x)
    _, at = torch.nn.functional.max_pool2d_with_indices(x, [2, 2])
    check(SPREAD.format(**size), x, g, at)
    check(SPREAD.format(**size), x, g.to(memory_format=torch.channels_last), at)


def test_short_rows_are_vectors_together() -> None:
    source = """def @small[N: Dim](%x: Tensor[(N, 3, {size}, {size}), float32]) {{
        max_pool2d(%x, kernel_size=2)
    }}"""
    lanes = host_target().register_bytes // 4
    assert "MIXED (" in text(source.format(size=min(8, lanes)))
    assert "MIXED (" not in text(source.format(size=64))


@pytest.mark.parametrize("dtype", DTYPES)
def test_elements_of_every_dtype(dtype: str) -> None:
    torch_dtype = getattr(torch, dtype)
    x, y = (torch.randint(0, 11, (37,)).to(torch_dtype) for _ in range(2))
    check(EVERY.format(dtype=dtype), x, y)
    check(WIDENED.format(dtype=dtype), x, torch.randn(37).abs() * 9)


def test_bools_are_masks_in_c() -> None:
    source = """def @bools[N: Dim](%x: Tensor[(N,), bool], %y: Tensor[(N,), bool]) {
        (logical_and(%x, %y), logical_or(%x, %y), logical_not(%x), %x == %y,
         where(%x, cast(%y, dtype=int64), 7i64))
    }"""
    check(source, torch.rand(45) < 0.5, torch.rand(45) < 0.5)


def test_nan_wins_and_infinities_stay() -> None:
    special = torch.tensor([0.0, -0.0, 1.0, torch.inf, -torch.inf, torch.nan, 1e-40])
    x, y = special.repeat(7), special.repeat_interleave(7)
    source = """def @special[N: Dim](%x: Tensor[(N,), float32], %y: Tensor[(N,), float32]) {
        (maximum(%x, %y), minimum(%x, %y), %x < %y, isnan(%x), isfinite(%x), sqrt(%x), abs(%x),
         sign(%x), %x / %y)
    }"""
    check(source, x, y)


def test_integers_divide_as_in_python() -> None:
    source = """def @divided[N: Dim](%x: Tensor[(N,), int64], %y: Tensor[(N,), int64]) {
        (floor_divide(%x, %y), mod(%x, %y))
    }"""
    x, y = torch.arange(-20, 21), torch.tensor([3, -3, 1, -1, 7]).repeat(9)[:41]
    check(source, x, y)


def test_indices_and_pads_read_only_what_there_is() -> None:
    rows = """def @rows[N: Dim, M: Dim, K: Dim](
        %x: Tensor[(N, M), float32], %at: Tensor[(K,), int64]) {
        index_select(%x, %at, dim=0) * 2.0f32
    }"""
    check(rows, torch.randn(5, 37), torch.tensor([4, 0, 0, 3]))
    padded = """def @padded[N: Dim](%x: Tensor[(N,), float32]) { pad(%x, pad=(2, 3)) + 1.0f32 }"""
    check(padded, torch.randn(20))


def test_the_text_is_the_users_words() -> None:
    found = text(GELU)
    assert "static void gelu_part(" in found
    assert ", y, x[u] * w[u]);" in found
    assert found.count("OVER_SEVERAL (") == 1


def test_a_function_that_a_kernel_calls_at_many_places_is_compiled_once() -> None:
    steps = " ".join(f"let %x = tanh(%x + {n}.0f32);" for n in range(-20, 20))
    many = f"def @many[N: Dim](%x: Tensor[(N,), float32]) {{ {steps} %x }}"
    check(many, torch.randn(37))
    found = preamble(text(many), host_target())
    assert "RELAY_ONCE f32x" in found
    assert "RELAY_ONCE f32x" not in preamble(text(GELU), host_target())
