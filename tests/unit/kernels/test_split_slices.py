"""What is used in slices alone is computed in slices, where that makes one kernel of it."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from pyrelay.ir.verify import Stage, verify
from pyrelay.kernels.fusion.decompose import decompose
from pyrelay.kernels.fusion.fuse import fuse
from pyrelay.kernels.fusion.split_slices import take_apart
from pyrelay.kernels.groups import Kind
from pyrelay.runtime.compile.evaluator import evaluate
from tests.unit.kernels.kernels import module
from tests.unit.kernels.test_fuse import kinds, tensors

PRODUCT = "%x: Tensor[(N, 6), float32], %w: Tensor[(6, 8), float32], %b: Tensor[(8,), float32]"
SUM = "let %p = matmul(%x, %w); let %y = %p + %b;"


def part(name: str, start: int, stop: int, of: str = "%y") -> str:
    whole = '("slice", None, None, None)'
    spec = f'({whole}, ("slice", {start}, {stop}, None))'
    return f"let %{name} = index({of}, (), spec={spec});"


def check(text: str, **sizes: int) -> list[Kind]:
    """Compare results before and after; return the kinds of the kernels."""
    written = decompose(module(text), "main")
    apart = take_apart(written, "main")
    verify(apart, Stage.FLAVOURED)
    found = fuse(apart)
    verify(found, Stage.REGIONS)
    args: list[Any] = tensors(written, **sizes)
    expected = evaluate(written, "main", args)
    torch.testing.assert_close(evaluate(found, "main", args), expected)
    return kinds(found)


def test_the_halves_of_a_product_meet_in_its_kernel() -> None:
    text = f"def @main[N: Dim]({PRODUCT}) {{ {SUM} {part('u', 0, 4)} {part('v', 4, 8)}"
    assert check(f"{text} tanh(%u) * sigmoid(%v) }}", N=3) == [Kind.CONTRACTION]
    assert check(f"{text} let %h = tanh(%u) * sigmoid(%v); (%h, %v) }}", N=3) == [Kind.CONTRACTION]


def test_the_halves_of_a_product_with_a_vector_meet_in_its_kernel() -> None:
    text = (
        "def @main[K: Dim](%x: Tensor[(K,), float32], %w: Tensor[(8, K), float32],"
        " %b: Tensor[(8,), float32]) { let %y = linear(%x, %w, %b);"
        " let %u = narrow(%y, dim=0, start=0, length=4);"
        " let %v = narrow(%y, dim=0, start=-4, length=4); tanh(%u) * sigmoid(%v) }"
    )
    assert check(text, K=5) == [Kind.ROWS]


def test_sizes_that_the_call_brings_are_taken_apart_too() -> None:
    text = (
        "def @main[N: Dim, H: Dim](%x: Tensor[(N, 6), float32],"
        " %w: Tensor[(6, 2 * H), float32], %s: Tensor[(H,), float32]) {"
        " let %y = matmul(%x, %w); let %u = narrow(%y, dim=1, start=0, length=H);"
        " let %v = narrow(%y, dim=1, start=H, length=H); tanh(%u) * %v + %s }"
    )
    assert check(text, N=3, H=4) == [Kind.CONTRACTION]


@pytest.mark.parametrize(
    "uses",
    [
        "tanh(%u)",  # one slice
        "let %t = transpose(%v, dim0=0, dim1=1); (tanh(%u), %t)",  # a view uses one
        "(tanh(%u) * %v, sum(%y))",  # all of it is used
        "let %q = matmul(%u, %c); (tanh(%u) * %v, %q)",  # a product reads one
    ],
)
def test_other_products_stay_whole(uses: str) -> None:
    head = f"def @main[N: Dim]({PRODUCT}, %c: Tensor[(4, 2), float32])"
    text = f"{head} {{ {SUM} {part('u', 0, 4)} {part('v', 4, 8)} {uses} }}"
    written = decompose(module(text), "main")
    assert take_apart(written, "main") is written


def test_slices_that_overlap_would_be_computed_twice() -> None:
    text = (
        f"def @main[N: Dim]({PRODUCT}) {{ {SUM}"
        f" {part('u', 0, 5)} {part('v', 3, 8)} tanh(%u) * %v }}"
    )
    written = decompose(module(text), "main")
    assert take_apart(written, "main") is written


def test_deep_code_is_taken_apart() -> None:
    steps = "".join(f"let %v{i + 1} = tanh(%v{i}); " for i in range(3000))
    text = (
        f"def @main[N: Dim]({PRODUCT}) {{ {SUM} let %v0 = %y; {steps}"
        f" {part('a', 0, 4, '%v3000')} {part('b', 4, 8, '%v3000')} tanh(%a) * %b }}"
    )
    assert set(check(text, N=2)) == {Kind.CONTRACTION, Kind.POINTWISE}
