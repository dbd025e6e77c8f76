"""Relay's operators give the values that Relay gave, told by torch."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.nn import functional

from pyrelay import api
from pyrelay.relay05.table import SUPPORTED
from tests.relay.reading import HEADER


def draw(*shape: int, low: float = -2.0, high: float = 2.0) -> Tensor:
    generator = torch.Generator().manual_seed(sum(shape) + len(shape))
    return torch.rand(shape, generator=generator) * (high - low) + low


def annotation(value: Tensor) -> str:
    dtype = str(value.dtype).removeprefix("torch.")
    return f"Tensor[({', '.join(map(str, value.shape))}), {dtype}]"


def value(text: str, *args: Tensor) -> Any:
    params = ", ".join(f"%{'xyzuvw'[i]}: {annotation(a)}" for i, a in enumerate(args))
    function = api.parse(f"{HEADER}def @main({params}) {{ {text} }}")["main"]
    found = function(*args)
    torch.testing.assert_close(function.interpret(*args), found)
    return found


X, Y, POSITIVE = draw(2, 3, 4), draw(3, 1), draw(2, 3, 4, low=0.5, high=3.0)
UNIT = draw(2, 3, 4, low=-0.9, high=0.9)
IMAGE, NHWC, VOLUME = draw(2, 4, 7, 7), draw(2, 7, 7, 4), draw(2, 3, 4, 5, 6)
INTS = torch.tensor([[7, -7, 6], [-6, 5, 0]], dtype=torch.int32)
LARGE = torch.tensor([2**31 - 1, 2, 3], dtype=torch.int32)
NEAR = torch.tensor([-1, 1, 4, -7])
DIVISORS = torch.tensor([[2, 2, -4], [4, 3, 5]], dtype=torch.int32)
Case = tuple[str, tuple[Tensor, ...], Callable[..., Any]]

UNARY = {
    "exp": torch.exp,
    "sqrt": torch.sqrt,
    "rsqrt": torch.rsqrt,
    "log": torch.log,
    "log2": torch.log2,
    "log10": torch.log10,
    "sin": torch.sin,
    "cos": torch.cos,
    "tan": torch.tan,
    "sinh": torch.sinh,
    "cosh": torch.cosh,
    "tanh": torch.tanh,
    "asin": torch.asin,
    "acos": torch.acos,
    "atan": torch.atan,
    "acosh": torch.acosh,
    "asinh": torch.asinh,
    "atanh": torch.atanh,
    "erf": torch.erf,
    "floor": torch.floor,
    "ceil": torch.ceil,
    "trunc": torch.trunc,
    "round": torch.round,
    "abs": torch.abs,
    "sign": torch.sign,
    "negative": torch.neg,
    "sigmoid": torch.sigmoid,
    "copy": torch.clone,
    "zeros_like": torch.zeros_like,
    "ones_like": torch.ones_like,
    "isnan": torch.isnan,
    "isfinite": torch.isfinite,
    "isinf": torch.isinf,
    "nn.relu": torch.relu,
    "annotation.stop_fusion": torch.clone,
    "annotation.checkpoint": torch.clone,
}
BINARY = {
    "add": torch.add,
    "subtract": torch.sub,
    "multiply": torch.mul,
    "divide": torch.div,
    "power": torch.pow,
    "maximum": torch.maximum,
    "minimum": torch.minimum,
    "floor_divide": torch.floor_divide,
    "floor_mod": torch.remainder,
    "mod": torch.fmod,
    "equal": torch.eq,
    "not_equal": torch.ne,
    "less": torch.lt,
    "less_equal": torch.le,
    "greater": torch.gt,
    "greater_equal": torch.ge,
}


@pytest.mark.parametrize("name", UNARY)
def test_operators_of_one_operand(name: str) -> None:
    x = UNIT if name in {"asin", "acos", "atanh"} else POSITIVE
    x = POSITIVE + 1.0 if name == "acosh" else x
    torch.testing.assert_close(value(f"{name}(%x)", x), UNARY[name](x))


@pytest.mark.parametrize("name", BINARY)
def test_operators_of_two_operands_broadcast(name: str) -> None:
    y = draw(3, 1, low=0.5, high=2.0)
    torch.testing.assert_close(value(f"{name}(%x, %y)", POSITIVE, y), BINARY[name](POSITIVE, y))


INTEGERS: list[Case] = [
    ("%x / %y", (INTS, DIVISORS), lambda x, y: torch.div(x, y, rounding_mode="trunc")),
    ("trunc_divide(%x, %y)", (INTS, DIVISORS), lambda x, y: torch.div(x, y, rounding_mode="trunc")),
    ("floor_divide(%x, %y)", (INTS, DIVISORS), torch.floor_divide),
    ("mod(%x, %y)", (INTS, DIVISORS), torch.fmod),
    ("trunc_mod(%x, %y)", (INTS, DIVISORS), torch.fmod),
    ("floor_mod(%x, %y)", (INTS, DIVISORS), torch.remainder),
    ("logical_and(%x == %y, %x < %y)", (INTS, DIVISORS), lambda x, y: (x == y) & (x < y)),
    ("logical_or(%x == %y, %x < %y)", (INTS, DIVISORS), lambda x, y: (x == y) | (x < y)),
    ("logical_xor(%x == %y, %x < %y)", (INTS, DIVISORS), lambda x, y: (x == y) ^ (x < y)),
    ("bitwise_and(%x, %y)", (INTS, DIVISORS), lambda x, y: x & y),
    ("bitwise_or(%x, %y)", (INTS, DIVISORS), lambda x, y: x | y),
    ("bitwise_xor(%x, %y)", (INTS, DIVISORS), lambda x, y: x ^ y),
    ("bitwise_not(%x)", (INTS, DIVISORS), lambda x, y: ~x),
    ("logical_not(%x == %y)", (INTS, DIVISORS), lambda x, y: x != y),
    ("where(%x < %y, %x, %y)", (INTS, DIVISORS), torch.minimum),
    ('cast(%x, dtype="float32")', (INTS,), lambda x: x.float()),
    ("max(%x, axis=[1])", (INTS,), lambda x: x.amax(1)),
    ("sum(%x, axis=[1])", (INTS,), lambda x: x.sum(1, dtype=torch.int32)),
    ("sum(%x)", (LARGE,), lambda x: x.sum(dtype=torch.int32)),
    ("prod(%x)", (LARGE,), lambda x: x.prod(dtype=torch.int32)),
    ("mean(%x, axis=[0, 1])", (INTS,), lambda x: torch.tensor(0, dtype=torch.int32)),
    ("mean(%x, axis=[1])", (INTS,), lambda x: torch.tensor([2, 0], dtype=torch.int32)),
    ("cumsum(%x, axis=1)", (INTS,), lambda x: x.cumsum(1, dtype=torch.int32)),
    ('cumsum(%x, axis=1, dtype="int64")', (INTS,), lambda x: x.cumsum(1)),
    ("cumprod(%x, axis=0)", (INTS,), lambda x: x.cumprod(0, dtype=torch.int32)),
    ("clip(%x, a_min=-1.5f, a_max=5.5f)", (INTS,), lambda x: x.clip(-1, 5)),
]

SHAPES: list[Case] = [
    ("clip(%x, a_min=-1f, a_max=1f)", (X,), lambda x: x.clip(-1, 1)),
    ("full_like(%x, 3f)", (X,), lambda x: torch.full_like(x, 3)),
    ("reshape(%x, newshape=[4, -1])", (X,), lambda x: x.reshape(4, -1)),
    ("reshape(%x, newshape=[0, -1])", (X,), lambda x: x.reshape(2, 12)),
    ("reshape(%x, newshape=[-3, 0])", (X,), lambda x: x.reshape(6, 4)),
    ("reshape(%x, newshape=[0, 0, -4, 2, -1])", (X,), lambda x: x.reshape(2, 3, 2, 2)),
    ("reshape(%x, newshape=[0, -2])", (X,), lambda x: x),
    ("reshape_like(%x, %y)", (X, draw(6, 4)), lambda x, y: x.reshape(6, 4)),
    ("transpose(%x, axes=[2, 0, 1])", (X,), lambda x: x.permute(2, 0, 1)),
    ("transpose(%x)", (X,), lambda x: x.permute(2, 1, 0)),
    ("expand_dims(%x, axis=1, num_newaxis=2)", (X,), lambda x: x[:, None, None]),
    ("squeeze(%x, axis=[1])", (Y,), lambda x: x.squeeze(1)),
    ("squeeze(%x)", (Y,), lambda x: x.squeeze()),
    ("nn.batch_flatten(%x)", (X,), lambda x: x.flatten(1)),
    ("broadcast_to(%x, shape=[2, 3, 4])", (Y,), lambda x: x.expand(2, 3, 4)),
    ("broadcast_to_like(%x, %y)", (Y, X), lambda x, y: x.expand(2, 3, 4)),
    ("collapse_sum_like(%x, %y)", (X, Y), lambda x, y: x.sum((0, 2))[:, None]),
    ("reverse(%x, axis=1)", (X,), lambda x: x.flip(1)),
    ("concatenate((%x, %y), axis=-1)", (X, X), lambda x, y: torch.cat((x, y), -1)),
    ("stack((%x, %y), axis=1)", (X, X), lambda x, y: torch.stack((x, y), 1)),
    ("split(%x, indices_or_sections=2, axis=2)", (X,), lambda x: tuple(x.split(2, 2))),
    ("split(%x, indices_or_sections=[1, 3], axis=2).1", (X,), lambda x: x[:, :, 1:3]),
    ("split(%x, indices_or_sections=[1, 3], axis=2).2", (X,), lambda x: x[:, :, 3:]),
    ("tile(%x, reps=[2, 1, 2])", (X,), lambda x: x.tile(2, 1, 2)),
    ("repeat(%x, repeats=2, axis=1)", (X,), lambda x: x.repeat_interleave(2, 1)),
    ("strided_slice(%x, begin=[0, 1], end=[2, 3], strides=[1])", (X,), lambda x: x[0:2, 1:3]),
    (
        "strided_slice(%x, begin=[1], end=[4], strides=[2], axes=[2])",
        (X,),
        lambda x: x[:, :, 1:4:2],
    ),
    (
        'strided_slice(%x, begin=[0, 1], end=[1, -1], slice_mode="size")',
        (X,),
        lambda x: x[0:1, 1:],
    ),
    (
        'strided_slice(%x, begin=[-2], end=[2], strides=[3], axes=[-1], slice_mode="size")',
        (X,),
        lambda x: x[:, :, -2:],
    ),
    ("strided_slice(%x, begin=[1], end=[-5], strides=[-1])", (X,), lambda x: x.flip(0)),
    ("take(%x, %y, axis=0)", (torch.tensor([10, 20, 30]), NEAR), lambda x, y: x[[0, 1, 2, 0]]),
    (
        'take(%x, %y, axis=0, mode="wrap")',
        (torch.tensor([10, 20, 30]), NEAR),
        lambda x, y: x[[2, 1, 1, 2]],
    ),
    ('take(%x, %y, axis=0, mode="fast")', (X, torch.tensor([1])), lambda x, y: x[y]),
    ("take(%x, %y)", (X, torch.tensor([-5, 99])), lambda x, y: x.flatten()[[0, 23]]),
    ("take(%x, %y, axis=-2)", (X, torch.tensor([2, 9])), lambda x, y: x[:, [2, 2]]),
    ("take(%x, %y, axis=1)", (X, torch.tensor([2, 0])), lambda x, y: x[:, y]),
    ("take(%x, %y)", (X, torch.tensor([[2, 0]])), torch.take),
    (
        "searchsorted(%x, %y, right=True)",
        (torch.tensor([1.0, 2.0, 2.0, 4.0]), torch.tensor([[2.0, 0.0, 4.0]])),
        lambda x, y: torch.searchsorted(x, y, right=True, out_int32=True),
    ),
    (
        "gather(%x, %y, axis=1)",
        (X, torch.zeros(2, 1, 4, dtype=torch.int64)),
        lambda x, y: x.gather(1, y),
    ),
    (
        'one_hot(%x, 2f, 1f, depth=4, axis=-1, dtype="float32")',
        (torch.tensor([1, 3]),),
        lambda x: functional.one_hot(x, 4).float() + 1,
    ),
    (
        'one_hot(%x, 2f, 1f, depth=3, axis=0, dtype="float32")',
        (torch.tensor([1, 7, -1]),),
        lambda x: torch.tensor([[1.0, 1, 1], [2, 1, 1], [1, 1, 1]]),
    ),
    ('full(2f, shape=[2, 2], dtype="float32")', (), lambda: torch.full((2, 2), 2.0)),
    ('zeros(shape=[2, 2], dtype="int32")', (), lambda: torch.zeros(2, 2, dtype=torch.int32)),
    ('ones(shape=[2], dtype="float64")', (), lambda: torch.ones(2, dtype=torch.float64)),
    ('arange(0, 6, 2, dtype="int32")', (), lambda: torch.arange(0, 6, 2, dtype=torch.int32)),
    ("trilu(%x, 1, upper=True)", (draw(3, 3),), lambda x: x.triu(1)),
    ("trilu(%x, 0, upper=False)", (draw(3, 3),), torch.tril),
    ("cumprod(%x, axis=1)", (X,), lambda x: x.cumprod(1)),
    ('einsum((%x, %y), equation="ij,jk->ik")', (draw(2, 3), draw(3, 4)), torch.matmul),
    (
        "nn.pad(%x, 1f, pad_width=[[0, 0], [1, 0], [0, 2]])",
        (X,),
        lambda x: functional.pad(x, (0, 2, 1, 0), value=1.0),
    ),
    (
        'nn.pad(%x, pad_width=[[0, 0], [0, 0], [1, 1]], pad_mode="reflect")',
        (X,),
        lambda x: functional.pad(x, (1, 1), mode="reflect"),
    ),
]

REDUCTIONS: list[Case] = [
    ("sum(%x)", (X,), torch.sum),
    ("sum(%x, axis=[0, 2], keepdims=True)", (X,), lambda x: x.sum((0, 2), keepdim=True)),
    ("mean(%x, axis=1)", (X,), lambda x: x.mean(1)),
    ("max(%x, axis=[-1])", (X,), lambda x: x.amax(-1)),
    ("min(%x)", (X,), torch.min),
    ("all(%x < 1f, axis=[1])", (X,), lambda x: (x < 1).all(1)),
    ("any(%x < 1f, axis=[0, 1])", (X,), lambda x: (x < 1).any(0).any(0)),
    ("sum(%x, axis=[0], exclude=True)", (X,), lambda x: x.sum((1, 2))),
    ("max(%x, axis=[-1], exclude=True)", (X,), lambda x: x.amax((0, 1))),
    ("prod(%x, axis=[0, 2], keepdims=True)", (X,), lambda x: x.prod(2, True).prod(0, True)),
    ("cumsum(%x)", (X,), lambda x: x.flatten().cumsum(0)),
    (
        "cumsum(%x, axis=1, exclusive=True)",
        (X,),
        lambda x: functional.pad(x.cumsum(1), (0, 0, 1, -1)),
    ),
    (
        "cumprod(%x, exclusive=True)",
        (INTS,),
        lambda x: functional.pad(x.flatten().cumprod(0, dtype=torch.int32), (1, -1), value=1),
    ),
    ("variance(%x, %y, unbiased=True)", (X, X + 1), lambda x, y: torch.tensor(24 / 23)),
    ('topk(%x, k=0, ret_type="values")', (X,), lambda x: x.sort(-1, descending=True)[0]),
    ("logsumexp(%x, axis=[1])", (X,), lambda x: x.logsumexp(1)),
    ("prod(%x, axis=[1])", (X,), lambda x: x.prod(1)),
    ("argmax(%x, axis=[1])", (X,), lambda x: x.argmax(1).int()),
    ("argmin(%x, axis=[1], keepdims=True)", (X,), lambda x: x.argmin(1, keepdim=True).int()),
    (
        "variance(%x, mean(%x, axis=[1], keepdims=True), axis=[1])",
        (X,),
        lambda x: x.var(1, correction=0),
    ),
    ("cumsum(%x, axis=1)", (X,), lambda x: x.cumsum(1)),
    ("nn.softmax(%x)", (X,), lambda x: x.softmax(-1)),
    ("nn.log_softmax(%x, axis=1)", (X,), lambda x: x.log_softmax(1)),
    ("argsort(%x, axis=1, is_ascend=False)", (X,), lambda x: x.argsort(1, descending=True).int()),
    ("sort(%x, axis=-1)", (X,), lambda x: x.sort(-1)[0]),
    ('topk(%x, k=2, ret_type="values")', (X,), lambda x: x.topk(2)[0]),
    ("topk(%x, k=2).1", (X,), lambda x: x.topk(2)[1].int()),
]

KERNEL, SCALE = draw(5, 4, 3, 3), draw(4, low=0.5, high=2.0)
NETWORKS: list[Case] = [
    ("nn.dense(%x, %y, units=5)", (draw(2, 3), draw(5, 3)), functional.linear),
    ("nn.matmul(%x, %y, transpose_b=True)", (draw(2, 3), draw(5, 3)), functional.linear),
    (
        "nn.batch_matmul(%x, %y, transpose_b=True)",
        (draw(2, 3, 4), draw(2, 5, 4)),
        lambda x, y: x @ y.mT,
    ),
    ("nn.batch_matmul(%x, %y)", (draw(2, 3, 4), draw(1, 4, 5)), torch.matmul),
    ("nn.matmul(%x, %y)", (draw(2, 3, 4), draw(4, 5)), torch.matmul),
    (
        "nn.matmul(%x, %y, transpose_a=True, units=5)",
        (draw(4, 3), draw(4, 5)),
        lambda x, y: x.T @ y,
    ),
    (
        "nn.conv2d(%x, %y, channels=5)",
        (IMAGE, KERNEL),
        functional.conv2d,
    ),
    (
        'nn.conv2d(%x, %y, kernel_size=[3, 3], out_layout="NHWC")',
        (IMAGE, KERNEL),
        lambda x, w: functional.conv2d(x, w).permute(0, 2, 3, 1),
    ),
    (
        'nn.dense(%x, %y, out_dtype="float32")',
        (draw(2, 3).half(), draw(5, 3).half()),
        lambda x, w: functional.linear(x.float(), w.float()),
    ),
    ("nn.bias_add(%x, %y)", (IMAGE, SCALE), lambda x, b: x + b[:, None, None]),
    ("nn.bias_add(%x, %y, axis=-1)", (NHWC, SCALE), lambda x, b: x + b),
    ("nn.leaky_relu(%x, alpha=0.2f)", (X,), lambda x: functional.leaky_relu(x, 0.2)),
    ("nn.prelu(%x, %y)", (IMAGE, SCALE), functional.prelu),
    (
        "nn.conv2d(%x, %y, padding=[1, 1, 1, 1])",
        (IMAGE, KERNEL),
        lambda x, w: functional.conv2d(x, w, padding=1),
    ),
    (
        "nn.conv2d(%x, %y, strides=[2, 2], padding=[0, 1, 2, 1], dilation=[2, 1], "
        "channels=5, kernel_size=[3, 3])",
        (IMAGE, KERNEL),
        lambda x, w: functional.conv2d(
            functional.pad(x, (1, 1, 0, 2)), w, stride=2, dilation=(2, 1)
        ),
    ),
    (
        'nn.conv2d(%x, %y, data_layout="NHWC", kernel_layout="HWIO", channels=5, '
        "kernel_size=[3, 3])",
        (NHWC, KERNEL.permute(2, 3, 1, 0).contiguous()),
        lambda x, w: functional.conv2d(x.permute(0, 3, 1, 2), w.permute(3, 2, 0, 1)).permute(
            0, 2, 3, 1
        ),
    ),
    (
        "nn.conv2d(%x, %y, groups=4)",
        (IMAGE, draw(4, 1, 3, 3)),
        lambda x, w: functional.conv2d(x, w, groups=4),
    ),
    (
        "nn.conv1d(%x, %y, padding=[1, 2])",
        (draw(2, 3, 8), draw(4, 3, 3)),
        lambda x, w: functional.conv1d(functional.pad(x, (1, 2)), w),
    ),
    (
        "nn.conv2d_transpose(%x, %y, strides=[2, 2], padding=[1, 1, 1, 1], output_padding=[1, 1])",
        (IMAGE, draw(4, 5, 3, 3)),
        lambda x, w: functional.conv_transpose2d(x, w, stride=2, padding=1, output_padding=1),
    ),
    (
        "nn.max_pool2d(%x, pool_size=[2, 2], strides=[2, 2])",
        (IMAGE,),
        lambda x: functional.max_pool2d(x, 2),
    ),
    (
        "nn.max_pool2d(%x, pool_size=[2, 2], padding=[0, 0, 1, 1])",
        (IMAGE,),
        lambda x: functional.max_pool2d(functional.pad(x, (0, 1, 0, 1), value=float("-inf")), 2, 1),
    ),
    (
        'nn.max_pool2d(%x, pool_size=[3, 3], padding=[1, 1, 1, 1], layout="NHWC")',
        (NHWC,),
        lambda x: functional.max_pool2d(x.permute(0, 3, 1, 2), 3, 1, 1).permute(0, 2, 3, 1),
    ),
    (
        "nn.avg_pool2d(%x, pool_size=[3, 3], strides=[2, 2], padding=[1, 1, 1, 1])",
        (IMAGE,),
        lambda x: functional.avg_pool2d(x, 3, 2, 1, count_include_pad=False),
    ),
    (
        "nn.avg_pool2d(%x, pool_size=[3, 3], padding=[1, 1, 1, 1], count_include_pad=True)",
        (IMAGE,),
        lambda x: functional.avg_pool2d(x, 3, 1, 1),
    ),
    (
        "nn.max_pool1d(%x, pool_size=[2], strides=[2])",
        (draw(2, 3, 8),),
        lambda x: functional.max_pool1d(x, 2),
    ),
    (
        "nn.avg_pool1d(%x, pool_size=[2], strides=[2])",
        (draw(2, 3, 8),),
        lambda x: functional.avg_pool1d(x, 2),
    ),
    (
        "nn.conv3d(%x, %y, strides=[1, 2, 1], padding=[1, 0, 1])",
        (VOLUME, draw(4, 3, 2, 3, 2)),
        lambda x, w: functional.conv3d(x, w, stride=(1, 2, 1), padding=(1, 0, 1)),
    ),
    (
        'nn.conv3d(%x, %y, data_layout="NDHWC", kernel_layout="DHWIO")',
        (VOLUME.permute(0, 2, 3, 4, 1).contiguous(), draw(2, 3, 2, 3, 4)),
        lambda x, w: functional.conv3d(x.permute(0, 4, 1, 2, 3), w.permute(4, 3, 0, 1, 2)).permute(
            0, 2, 3, 4, 1
        ),
    ),
    (
        "nn.max_pool3d(%x, pool_size=[2, 2, 2], strides=[2, 2, 1])",
        (VOLUME,),
        lambda x: functional.max_pool3d(x, 2, (2, 2, 1)),
    ),
    (
        'nn.avg_pool3d(%x, pool_size=[2, 3, 2], padding=[1, 1, 1], layout="NDHWC")',
        (VOLUME.permute(0, 2, 3, 4, 1).contiguous(),),
        lambda x: functional.avg_pool3d(
            x.permute(0, 4, 1, 2, 3), (2, 3, 2), 1, 1, count_include_pad=False
        ).permute(0, 2, 3, 4, 1),
    ),
    (
        "image.resize2d(%x, size=[5, 9])",
        (IMAGE,),
        lambda x: functional.interpolate(x, (5, 9), mode="bilinear"),
    ),
    (
        'image.resize2d(%x, size=[14, 14], layout="NHWC", '
        'coordinate_transformation_mode="align_corners")',
        (NHWC,),
        lambda x: functional.interpolate(
            x.permute(0, 3, 1, 2), (14, 14), mode="bilinear", align_corners=True
        ).permute(0, 2, 3, 1),
    ),
    (
        'image.resize2d(%x, size=[5, 9], method="nearest_neighbor", '
        'coordinate_transformation_mode="asymmetric", rounding_method="floor")',
        (IMAGE,),
        lambda x: functional.interpolate(x, (5, 9), mode="nearest"),
    ),
    ("nn.global_avg_pool2d(%x)", (IMAGE,), lambda x: x.mean((2, 3), keepdim=True)),
    ('nn.global_max_pool2d(%x, layout="NHWC")', (NHWC,), lambda x: x.amax((1, 2), keepdim=True)),
    (
        "nn.adaptive_avg_pool2d(%x, output_size=[2, 3])",
        (IMAGE,),
        lambda x: functional.adaptive_avg_pool2d(x, (2, 3)),
    ),
    (
        "nn.batch_norm(%x, %y, %z, %u, %v, epsilon=0.001f).0",
        (IMAGE, SCALE, draw(4), draw(4), SCALE),
        lambda x, g, b, m, v: functional.batch_norm(x, m, v, g, b, eps=1e-3),
    ),
    (
        "nn.batch_norm(%x, %y, %z, %u, %v, axis=3, scale=False).0",
        (NHWC, SCALE, draw(4), draw(4), SCALE),
        lambda x, g, b, m, v: (x - m) / (v + 1e-5).sqrt() + b,
    ),
    (
        "nn.batch_norm(%x, %y, %z, %u, %v).1",
        (IMAGE, SCALE, draw(4), draw(4), SCALE),
        lambda x, g, b, m, v: m,
    ),
    (
        "nn.layer_norm(%x, %y, %z)",
        (X, draw(4), SCALE),
        lambda x, g, b: functional.layer_norm(x, (4,), g, b),
    ),
    (
        "nn.layer_norm(%x, %y, %z, axis=1)",
        (X, draw(3), draw(3)),
        lambda x, g, b: functional.layer_norm(x.mT, (3,), g, b).mT,
    ),
    (
        "nn.instance_norm(%x, %y, %z)",
        (X, draw(3), draw(3)),
        lambda x, g, b: functional.instance_norm(x, weight=g, bias=b),
    ),
    (
        "nn.instance_norm(%x, %y, %z, axis=2)",
        (X, draw(4), draw(4)),
        lambda x, g, b: functional.instance_norm(x.mT, weight=g, bias=b).mT,
    ),
    ("nn.dropout(%x, rate=0.5f).0", (X,), torch.clone),
    (
        "nn.cross_entropy(%x, %y)",
        (draw(3, 4, low=0.1, high=0.9), draw(3, 4)),
        lambda p, t: -(t * p.log()).sum() / 3,
    ),
    (
        "nn.cross_entropy_with_logits(%x, %y)",
        (draw(3, 4), draw(3, 4)),
        lambda p, t: -(t * p).sum() / 3,
    ),
]


@pytest.mark.parametrize(
    ("text", "args", "expected"),
    [*INTEGERS, *SHAPES, *REDUCTIONS, *NETWORKS],
    ids=lambda v: str(v)[:60] if isinstance(v, str) else "",
)
def test_an_operator_gives_relays_value(
    text: str, args: tuple[Tensor, ...], expected: Callable[..., Any]
) -> None:
    torch.testing.assert_close(value(text, *args), expected(*args))


def test_every_operator_is_tried() -> None:
    cases = [text for text, _, _ in (*INTEGERS, *SHAPES, *REDUCTIONS, *NETWORKS)]
    tried = {*UNARY, *BINARY, "divide"} | {n for n in SUPPORTED for t in cases if f"{n}(" in t}
    assert sorted(set(SUPPORTED) - tried) == []
