"""Gradients of code without branches: operators, fan-out, broadcasting, tuples, calls."""

from __future__ import annotations

import pytest
import torch

from tests.unit.passes.grad.programs import assert_close, check, run, scalar, vector

X, Y = scalar(0.3), scalar(-0.7)
TWO = "%x: float64, %y: float64"


@pytest.mark.parametrize(
    "body",
    [
        "%x + %y",
        "let %a = %x + %x; let %b = %a * %a; %b + %b * %y",
        "let %a = tanh(%x * %y); %a * %a * %x",
        "let %a = sin(%x); let %b = exp(%a) / (%y * %y + 1.0f64); %b - %a",
        "let %p = (%x, (%y, 3)); let %q = %p.1; %p.0 * %q.0 * %q.0",
        "let %p = (%x, %x); let %a = %p.0; %a * %p.1 * %y",
        "let %a = %x; let %b = %a; %b * %b * %y",
        "where(%x < %y, %x * %y, %y * %y * %x)",
        "%y * %y",
        "2.0f64",
        "floor(%x) * %x * %y",
        "cast(cast(%x, dtype=float32), dtype=float64) * 1.0f64 + %y * %y",
    ],
)
def test_scalar_code_is_differentiated(body: str) -> None:
    check(f"def @f({TWO}) -> float64 {{ {body} }}", TWO, X, Y)


def test_operands_that_were_broadcast_get_cotangents_of_their_own_shape() -> None:
    params = "%a: Tensor[(N, 1), float64], %b: Tensor[(M,), float64], %c: float64"
    torch.manual_seed(0)
    a, b = torch.randn(3, 1, dtype=torch.float64), torch.randn(4, dtype=torch.float64)
    generics = "[N: Dim, M: Dim]"
    text = f"def @f{generics}({params}) -> float64 {{ sum(tanh(%a * %b + %c) * %a) }}"
    check(text, params, a, b, X, generics=generics)


def test_sizes_that_no_saved_tensor_shows_are_saved_as_integers() -> None:
    params = "%a: Tensor[(N, M), float64], %b: Tensor[(M,), float64]"
    generics = "[N: Dim, M: Dim]"
    text = f"def @f{generics}({params}) -> float64 {{ sum(%a) + mean(%b) * mean(%b) }}"
    check(text, params, torch.ones(2, 3, dtype=torch.float64), vector(1, 2, 4), generics=generics)


def test_reshaped_and_transposed_values_keep_their_gradient() -> None:
    params = "%a: Tensor[(N, M), float64], %w: Tensor[(M, K), float64]"
    generics = "[N: Dim, M: Dim, K: Dim]"
    text = f"""def @f{generics}({params}) -> float64 {{
      let %t = transpose(%a, dim0=0, dim1=1);
      let %r = reshape(%t, shape=(M * N,));
      sum(matmul(%a, %w)) * sum(%r * %r * %r) }}"""
    torch.manual_seed(1)
    a, w = torch.randn(3, 2, dtype=torch.float64), torch.randn(2, 4, dtype=torch.float64)
    check(text, params, a, w, generics=generics)


def test_an_empty_tensor_has_an_empty_gradient() -> None:
    params, generics = "%a: Tensor[(N, M), float64]", "[N: Dim, M: Dim]"
    text = f"def @f{generics}({params}) -> float64 {{ sum(%a * %a * %a) }}"
    check(text, params, torch.ones(0, 3, dtype=torch.float64), generics=generics)


def test_calls_are_differentiated_for_the_parameters_that_vary() -> None:
    text = """
    def @h(%x: float64, %y: float64) -> float64 { tanh(%x * %y) * %x }
    def @k(%p: (float64, int64)) -> (float64, float64) { (sin(%p.0), %p.0 * %p.0) }
    def @f(%x: float64, %y: float64) -> float64 {
      let %a = @h(%x, %y);
      let %b = @h(%a, 2.0f64);
      let %c = @h(1.5f64, %b);
      let %d = @k((%c, 3));
      let %e = @k((%b, 4));
      @h(%b, %b) * %d.0 + %e.1 * %a }
    """
    check(text, TWO, X, Y)


def test_integers_in_a_tuple_get_zeros_and_an_unused_parameter_gets_zeros() -> None:
    text = """
    def @f(%p: (Tensor[(3,), float64], (int64, float64)), %q: Tensor[(2,), float64]) -> float64 {
      let %r = %p.1; sum(%p.0) * %r.1 }
    def @main(%p: (Tensor[(3,), float64], (int64, float64)), %q: Tensor[(2,), float64]) {
      let %g = grad(@f); %g(%p, %q) }
    """
    got = run(text, (vector(1, 2, 3), (5, scalar(2.0))), vector(1, 1))
    assert_close(got, ((vector(2, 2, 2), (0, scalar(6.0))), vector(0, 0)))


def test_what_is_held_constant_has_no_gradient() -> None:
    text = """
    def @f(%x: float64, %y: float64) -> float64 {
      let %a = stop_gradient(%x * %y); %a * %x * %y }
    def @main(%x: float64, %y: float64) { let %g = grad(@f); %g(%x, %y) }
    """
    assert_close(run(text, X, Y), (X * Y * Y, X * Y * X))


def test_the_gradient_is_nan_safe_where_a_branch_of_where_is_not_taken() -> None:
    text = """
    def @f(%x: float64) -> float64 { where(%x > 0.0f64, %x * %x, %x) }
    def @main(%x: float64) { let %g = grad(@f); %g(%x) }
    """
    assert_close(run(text, scalar(-2.0)), scalar(1.0))


NORMS = {
    "layer norm": "sum(layer_norm(%a, normalized_shape=(4,)) * %a * %a)",
    "max pool": "sum(max_pool2d(reshape(%a, shape=(1, N, 4)), kernel_size=2) * 3.0f64) * sum(%a)",
    "in a branch": """if (sum(%a) < 100.0f64) {
        sum(layer_norm(%a, normalized_shape=(4,)) * sin(%a)) } else { 0.0f64 }""",
}


@pytest.mark.parametrize("body", NORMS.values(), ids=NORMS.keys())
def test_operators_are_differentiated_through_code_that_keeps_more(body: str) -> None:
    params, generics = "%a: Tensor[(N, 4), float64]", "[N: Dim]"
    torch.manual_seed(2)
    a = torch.randn(4, 4, dtype=torch.float64)
    text = f"def @f{generics}({params}) -> float64 {{ {body} }}"
    check(text, params, a, generics=generics)
