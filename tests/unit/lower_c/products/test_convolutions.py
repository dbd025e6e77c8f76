"""Convolutions in C, and their gradients, are those of torch."""

from __future__ import annotations

import ctypes
from functools import cache
from typing import Any

import pytest
import torch

from pyrelay.ir.types import float32, float64
from pyrelay.lower_c.building import Library, build
from pyrelay.lower_c.math import AVX2, PORTABLE, Target, element_of, host_target, preamble
from pyrelay.lower_c.products.convolutions import Convolution
from pyrelay.lower_c.text.support import RUN

TARGETS = {t.name: t for t in (host_target(), PORTABLE)}
if host_target().register_bytes == 64:
    TARGETS["avx2"] = AVX2
DTYPES = {"f32": torch.float32, "f64": torch.float64}
TOLERANCES = {"f32": 2e-5, "f64": 1e-12}
F32, F64 = element_of(float32), element_of(float64)

LENET = Convolution(F32, 1, 20, 50, (12, 12), (5, 5), (1, 1), (0, 0), (1, 1))
CASES = {
    "one channel": Convolution(F32, 1, 1, 20, (28, 28), (5, 5), (1, 1), (0, 0), (1, 1)),
    "many channels": LENET,
    "padding": Convolution(F32, 1, 3, 7, (9, 11), (3, 3), (1, 1), (1, 1), (1, 1)),
    "much padding": Convolution(F32, 1, 2, 3, (4, 5), (1, 2), (1, 1), (2, 3), (1, 1)),
    "strides": Convolution(F32, 1, 3, 5, (13, 17), (3, 3), (2, 2), (1, 1), (1, 1)),
    "odd strides": Convolution(F64, 1, 2, 4, (14, 31), (4, 3), (3, 2), (0, 1), (1, 1)),
    "long strides": Convolution(F32, 1, 2, 4, (8, 40), (2, 2), (1, 3), (0, 0), (1, 1)),
    "dilation": Convolution(F64, 1, 2, 5, (12, 19), (3, 2), (1, 1), (2, 1), (2, 3)),
    "strides and dilation": Convolution(F32, 1, 2, 5, (12, 19), (3, 2), (2, 3), (2, 1), (2, 3)),
    "groups": Convolution(F32, 3, 2, 4, (7, 9), (3, 3), (1, 1), (1, 1), (1, 1)),
    "depthwise": Convolution(F64, 6, 1, 1, (10, 10), (3, 3), (1, 1), (1, 1), (1, 1)),
    "one by one": Convolution(F32, 1, 17, 11, (6, 7), (1, 1), (1, 1), (0, 0), (1, 1)),
    "wide rows": Convolution(F32, 1, 2, 3, (5, 150), (3, 9), (1, 1), (1, 4), (1, 1)),
    "rows": Convolution(F64, 1, 3, 13, (1, 70), (1, 5), (1, 2), (0, 2), (1, 1)),
    "two rows a vector": Convolution(F32, 2, 3, 7, (15, 17), (3, 3), (2, 2), (1, 0), (1, 1)),
    "four rows a vector": Convolution(F32, 1, 3, 5, (10, 6), (3, 3), (1, 1), (0, 0), (1, 1)),
    "short rows of float64": Convolution(F64, 1, 2, 3, (6, 4), (3, 1), (1, 1), (1, 0), (1, 1)),
    "sheets": Convolution(F32, 1, 3, 40, (9, 9), (3, 3), (1, 1), (0, 0), (1, 1)),
    "sheets with padding": Convolution(F64, 1, 3, 24, (5, 5), (3, 5), (1, 1), (1, 2), (1, 1)),
    "sheets with strides": Convolution(F32, 2, 3, 24, (15, 13), (3, 3), (2, 2), (1, 1), (1, 1)),
    "sheets with dilation": Convolution(F32, 1, 2, 32, (13, 11), (3, 2), (1, 1), (1, 0), (2, 3)),
    "one result": Convolution(F32, 1, 5, 1, (3, 4), (3, 4), (1, 1), (0, 0), (1, 1)),
}

TEXT = """
static relay_run run;
void forward_only({c} *x, {c} *w, {c} *o, int64_t n) {{ forward(&run, x, w, o, n); }}
void forward_bias({c} *x, {c} *w, {c} *b, {c} *o, int64_t n) {{ biased(&run, x, w, b, o, n); }}
void to_image({c} *g, {c} *w, {c} *o, int64_t n) {{ image(&run, g, w, o, n); }}
void to_weight({c} *g, {c} *x, {c} *o, int64_t n) {{ weight(&run, g, x, o, n); }}
void to_bias({c} *g, {c} *o, int64_t n) {{ bias(&run, g, o, n); }}
"""


@cache
def library(of: Convolution, target: Target) -> Library:
    """Return the functions of a convolution."""
    texts = (
        of.forward("forward", target, has_bias=False),
        of.forward("biased", target, has_bias=True),
        of.input_gradient("image", target),
        of.weight_gradient("weight", target),
        of.bias_gradient("bias", target),
    )
    text = "\n".join((RUN, *texts, TEXT.format(c=of.element.c)))
    return build(preamble(text, target) + text)


def call(of: Convolution, target: Target, name: str, *given: torch.Tensor, made: Any) -> Any:
    """Return what a function makes of some tensors, between guards."""
    count = given[0].shape[0]
    storage = torch.full((made.numel() + 128,), 7.0, dtype=made.dtype)
    result = storage[64 : 64 + made.numel()]
    kinds = [ctypes.c_void_p] * (len(given) + 1) + [ctypes.c_int64]
    function = library(of, target).function(name, kinds)
    function(*(t.data_ptr() for t in given), result.data_ptr(), count)
    assert (storage[:64] == 7).all()
    assert (storage[64 + made.numel() :] == 7).all()
    return result.view(made.shape)


def operands(of: Convolution, count: int) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Return so many images, a weight and a bias."""
    torch.manual_seed(1)
    dtype = DTYPES[of.element.name]
    x = torch.randn(count, of.groups * of.sources, *of.image, dtype=dtype)
    w = torch.randn(of.groups * of.results, of.sources, *of.kernel, dtype=dtype)
    return x, w, torch.randn(of.groups * of.results, dtype=dtype)


def close(of: Convolution, found: torch.Tensor, expected: torch.Tensor) -> None:
    """Compare sums of products."""
    scale = expected.abs().max().item() if expected.numel() else 0.0
    tolerance = TOLERANCES[of.element.name] * max(scale, 1.0)
    torch.testing.assert_close(found, expected, rtol=0, atol=tolerance)


@pytest.mark.parametrize("count", [0, 1, 3])
@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("case", CASES)
def test_a_convolution_and_its_gradients(case: str, target: str, count: int) -> None:
    of, on = CASES[case], TARGETS[target]
    x, w, b = operands(of, count)
    attrs = (of.stride, of.padding, of.dilation)
    plain = torch.nn.functional.conv2d(x, w, None, *attrs, of.groups)
    assert plain.shape[2:] == of.output
    close(of, call(of, on, "forward_only", x, w, made=plain), plain)
    biased = torch.nn.functional.conv2d(x, w, b, *attrs, of.groups)
    close(of, call(of, on, "forward_bias", x, w, b, made=plain), biased)
    g = torch.randn(plain.shape, dtype=plain.dtype)
    to_image, to_weight, to_bias = torch.ops.aten.convolution_backward(
        g, x, w, [b.numel()], *attrs, False, [0, 0], of.groups, [True, True, True]
    )
    close(of, call(of, on, "to_image", g, w, made=to_image), to_image)
    close(of, call(of, on, "to_weight", g, x, made=to_weight), to_weight)
    close(of, call(of, on, "to_bias", g, made=to_bias), to_bias)


@pytest.mark.parametrize(
    ("case", "count"), [("many channels", 90), ("one channel", 100), ("sheets with strides", 9)]
)
def test_gradients_of_more_images_than_a_cache_has_room_for(case: str, count: int) -> None:
    of, on = CASES[case], host_target()
    x, w, _ = operands(of, count)
    attrs = (of.stride, of.padding, of.dilation)
    g = torch.randn_like(torch.nn.functional.conv2d(x, w, None, *attrs, of.groups)) / count
    expected = torch.ops.aten.convolution_backward(
        g, x, w, None, *attrs, False, [0, 0], of.groups, [False, True, False]
    )[1]
    close(of, call(of, on, "to_weight", g, x, made=expected), expected)


def test_not_a_number_spreads_to_what_it_meets_and_no_further() -> None:
    of, on = LENET, host_target()
    x, w, _ = operands(of, 2)
    x[1, 3, 6, 6] = torch.nan
    plain = torch.nn.functional.conv2d(x, w)
    found = call(of, on, "forward_only", x, w, made=plain)
    assert torch.equal(found.isnan(), plain.isnan())
    g = torch.zeros_like(plain)
    g[0, 5, 2, 2] = torch.nan
    found = call(of, on, "to_image", g, w, made=x)
    expected = torch.ops.aten.convolution_backward(
        g, x, w, None, (1, 1), (0, 0), (1, 1), False, [0, 0], 1, [True, False, False]
    )[0]
    assert torch.equal(found.isnan(), expected.isnan())
