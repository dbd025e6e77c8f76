"""Sums of products that kernels of several backends are made of."""

from __future__ import annotations

LAYER = """def @layer[N: Dim, K: Dim](
    %x: Tensor[(N, K), float32], %w: Tensor[(20, K), float32], %b: Tensor[(20,), float32],
    %r: Tensor[(N, 20), float32]) {
    let %t = transpose(%w, dim0=0, dim1=1);
    let %scores = matmul(relu(%x), %t);
    let %h = tanh(%scores + %b);
    (%h, %h * %r)
}"""
SCORES = """def @scores[B: Dim, H: Dim, T: Dim, S: Dim](
    %q: Tensor[(B, H, T, 8), float32], %k: Tensor[(H, S, 8), float32]) {
    let %turned = transpose(%k, dim0=1, dim1=2);
    matmul(%q, %turned) * 0.5f32
}"""
