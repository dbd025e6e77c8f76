"""Calls of Relay's `dyn` operators, whose sizes are elements of tensors, and what they mean in
torch."""

from __future__ import annotations

from typing import Final

import torch
from torch import Tensor
from torch.nn import functional

from .operator_cases import Case, draw


def numbers(*values: int, dtype: torch.dtype = torch.int64) -> Tensor:
    return torch.tensor(values, dtype=dtype)


def _reshaped(shape: tuple[int, ...], codes: tuple[int, ...], to: tuple[int, ...]) -> Case:
    text = "dyn.reshape(%x, %y)"
    return text, (draw(*shape), numbers(*codes)), lambda x, _: x.reshape(to)


def _sliced(
    shape: tuple[int, ...],
    begin: tuple[int, ...],
    end: tuple[int, ...],
    strides: tuple[int, ...],
    attrs: str = "",
) -> Case:
    places = tuple(map(slice, begin, end, strides))

    def expected(x: Tensor, *_: Tensor) -> Tensor:
        return torch.from_numpy(x.numpy()[places].copy())

    bounds = (numbers(*n) for n in (begin, end, strides))
    return f"dyn.strided_slice(%x, %y, %z, %u{attrs})", (draw(*shape), *bounds), expected


X: Final = draw(2, 3, 4)
IMAGE: Final = draw(1, 2, 4, 5)
DYNAMIC: list[Case] = [
    _reshaped((2, 3, 4), (8, 3), (8, 3)),
    _reshaped((4, 7), (2, 7, 2), (2, 7, 2)),
    _reshaped((2, 3, 4), (4, 0, 2), (4, 3, 2)),
    _reshaped((2, 3, 4), (2, 0, 0), (2, 3, 4)),
    _reshaped((2, 3, 4), (0, -1), (2, 12)),
    _reshaped((2, 3, 4), (-1, 0), (8, 3)),
    _reshaped((2, 3, 4), (-3, 4), (6, 4)),
    _reshaped((2, 3, 4, 5), (-3, -3), (6, 20)),
    _reshaped((2, 3, 4), (0, -3), (2, 12)),
    ("dyn.broadcast_to(%x, %y)", (draw(3, 1), numbers(2, 3, 4)), lambda x, _: x.expand(2, 3, 4)),
    ("dyn.tile(%x, %y)", (X, numbers(3, 2, 1)), lambda x, _: x.tile(3, 2, 1)),
    ("dyn.tile(%x, %y)", (draw(2, 3), numbers(3, 2, 1)), lambda x, _: x.tile(3, 2, 1)),
    ("dyn.full(%x, %y)", (torch.tensor(4.0), numbers(1, 4, 3)), lambda x, _: x.expand(1, 4, 3)),
    (
        'dyn.full(%x, %y, dtype="int32")',
        (torch.tensor(4), numbers(2, 50, dtype=torch.int32)),
        lambda *_: torch.full((2, 50), 4, dtype=torch.int32),
    ),
    ('dyn.zeros(%x, dtype="float32")', (numbers(1, 3),), lambda _: torch.zeros(1, 3)),
    ('dyn.ones(%x, dtype="int64")', (numbers(8, 9),), lambda _: torch.ones(8, 9).long()),
    _sliced((3, 4, 3), (0, 0, 0), (4, -5, 4), (1, -1, 2)),
    _sliced((3, 4, 3), (1, 1, 0), (4, 4, 3), (2, 1, 1)),
    _sliced((3, 4, 3), (1, -1, 0), (4, -5, 3), (2, -1, 1)),
    _sliced((3, 4, 3), (1, 0, 0), (2, 2, 3), (1, 1, 2)),
    _sliced((3, 4, 3), (1, -1, 0), (2, -3, 3), (1, -1, 1)),
    _sliced((3, 4, 3), (1, 1), (4, 1000), (1, 1)),
    _sliced((3, 4, 3), (1, 1), (4, -3), (1, 1)),
    (
        "dyn.strided_slice(%x, %y, %z, %u, axes=[1])",
        (X, numbers(1), numbers(3), numbers(1)),
        lambda x, *_: x[:, 1:3],
    ),
    (
        'dyn.strided_slice(%x, %y, %z, %u, slice_mode="size")',
        (X, numbers(1, 0, 2), numbers(-1, 2, 2), numbers(1, 1, 1)),
        lambda x, *_: x[1:, :2, 2:],
    ),
    ("dyn.squeeze(%x, %y)", (draw(1, 3, 1), numbers(0)), lambda x, _: x.squeeze(0)),
    ("dyn.squeeze(%x, %y)", (draw(1, 2, 1, 3, 1), numbers(4, -3)), lambda x, _: x[:, :, 0, :, 0]),
    ("dyn.expand_dims(%x, %y)", (draw(3, 10), torch.tensor(1)), lambda x, _: x.unsqueeze(1)),
    (
        "dyn.expand_dims(%x, %y, num_newaxis=2)",
        (draw(3, 10), torch.tensor(-1)),
        lambda x, _: x.reshape(3, 10, 1, 1),
    ),
    (
        "dyn.nn.pad(%x, %y, 2f)",
        (draw(4, 7, 7), torch.tensor([[1, 1], [2, 3], [0, 4]])),
        lambda x, _: functional.pad(x, (0, 4, 2, 3, 1, 1), value=2.0),
    ),
    ("dyn.topk(%x, %y)", (X, numbers(2)), lambda x, _: tuple(_topk(x, 2))),
    (
        'dyn.topk(%x, %y, axis=0, ret_type="values", is_ascend=True)',
        (X, torch.tensor(1)),
        lambda x, _: x.topk(1, 0, largest=False).values,
    ),
    (
        'dyn.one_hot(%x, 1f, 0f, %y, axis=-1, dtype="float32")',
        (numbers(0, 2, 3), numbers(3)),
        lambda x, _: torch.eye(4)[x][:, :3],
    ),
    (
        'dyn.image.resize2d(%x, %y, layout="NCHW", method="linear")',
        (IMAGE, numbers(8, 7)),
        lambda x, _: functional.interpolate(x, (8, 7), mode="bilinear"),
    ),
    (
        "dyn.sparse_to_dense(%x, %y, %z, %u)",
        (torch.tensor([[0, 0], [1, 2]]), draw(2), torch.tensor(9.0), numbers(3, 4)),
        lambda places, values, default, _: _dense((3, 4), places, values, default),
    ),
    (
        "dyn.sparse_to_dense(%x, %y, %z, %u)",
        (numbers(1, 4, 5), draw(3), torch.tensor(0.0), numbers(7)),
        lambda places, values, default, _: _dense((7,), places[:, None], values, default),
    ),
    (
        "dyn.nn.upsampling(%x, %y, %z)",
        (IMAGE, torch.tensor(2.0), torch.tensor(3.0)),
        lambda x, *_: functional.interpolate(x, (8, 15)),
    ),
    (
        'dyn.nn.upsampling(%x, %y, %z, method="bilinear", align_corners=True)',
        (IMAGE, torch.tensor([1.5]), torch.tensor([2.0])),
        lambda x, *_: functional.interpolate(x, (6, 10), mode="bilinear", align_corners=True),
    ),
    (
        'dyn.nn.upsampling(%x, %y, %z, layout="NHWC", method="bilinear")',
        (IMAGE.permute(0, 2, 3, 1), torch.tensor(2.0), torch.tensor(1.6)),
        lambda x, *_: _between(x.permute(0, 3, 1, 2), (8, 8)).permute(0, 2, 3, 1),
    ),
    ("dyn.nn.pad(%x, %y)", (X[0], torch.tensor([[1, 0], [2, 3]])), lambda x, _: _padded(x)),
    ("collapse_sum_to(%x, %y)", (X, numbers(3, 1)), lambda x, _: x.sum((0, 2)).unsqueeze(1)),
    ("collapse_sum_to(%x, %y)", (X, numbers(2, 1, 4)), lambda x, _: x.sum(1, keepdim=True)),
]


def _dense(shape: tuple[int, ...], places: Tensor, values: Tensor, default: Tensor) -> Tensor:
    whole = default.expand(shape).clone()
    whole[tuple(places.T)] = values
    return whole


def _between(x: Tensor, size: tuple[int, int]) -> Tensor:
    """Return images whose elements lie between others, each at its place times the ratio of the
    sizes, by the weights of all of them."""
    weights = [
        torch.clamp(1 - (torch.arange(n)[:, None] * (m / n) - torch.arange(m)).abs(), min=0)
        for n, m in zip(size, x.shape[2:], strict=True)
    ]
    height, width = (w / w.sum(1, keepdim=True) for w in weights)
    return torch.einsum("bchw,ih,jw->bcij", x, height, width)


def _padded(x: Tensor) -> Tensor:
    return functional.pad(x, (2, 3, 1, 0))


def _topk(x: Tensor, k: int) -> tuple[Tensor, Tensor]:
    values, places = x.topk(k)
    return values, places.int()
