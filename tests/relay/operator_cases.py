"""Calls of Relay's operators on numbers, shapes and rows, and what they mean in torch."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional


def draw(*shape: int, low: float = -2.0, high: float = 2.0) -> Tensor:
    generator = torch.Generator().manual_seed(sum(shape) + len(shape))
    return torch.rand(shape, generator=generator) * (high - low) + low


def annotation(value: Tensor) -> str:
    dtype = str(value.dtype).removeprefix("torch.")
    return f"Tensor[({', '.join(map(str, value.shape))}), {dtype}]"


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
    ('strided_slice(%x, begin=[0, 1], end=[1, -1], slice_mode="size")', (X,), lambda x: x[0:1, 1:]),
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
    ("gather_nd(%x, %y)", (X, torch.tensor([[1, 0], [2, 1]])), lambda x, y: x[y[0], y[1]]),
    ("gather_nd(%x, %y)", (X, torch.tensor([1, 0, 3])), lambda x, y: x[1, 0, 3]),
    ("gather_nd(%x, %y, index_rank=1)", (X, torch.tensor([[-1, 0]])), lambda x, y: x[[-1, 0]]),
    ("cast_like(%x, %y)", (X, Y.double()), lambda x, y: x.double()),
    ("shape_of(%x)", (X,), lambda x: torch.tensor([2, 3, 4], dtype=torch.int32)),
    ('shape_of(%x, dtype="int64")', (X.sum(),), lambda x: torch.zeros(0, dtype=torch.int64)),
    ("ndarray_size(%x)", (X,), lambda x: torch.tensor(24, dtype=torch.int32)),
    ("contrib_reverse_reshape(%x, newshape=[-1, 0])", (X,), lambda x: x.reshape(6, 4)),
    ("contrib_reverse_reshape(%x, newshape=[0, -3])", (X,), lambda x: x.reshape(2, 12)),
    ("contrib_reverse_reshape(%x, newshape=[1, -2, 0])", (X,), lambda x: x.reshape(1, 2, 3, 4)),
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
