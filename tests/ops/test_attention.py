"""Attention where a query sees no key, for sizes with names, and the calls that are refused."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pytest
import torch
from torch.nn import functional

from pyrelay import Dim, Float, Tensor, bool_, relay
from pyrelay.ir.op import Clash
from pyrelay.ir.types import Type, float32, int64, tensor_type
from pyrelay.ir.types import bool_ as bools
from pyrelay.operators.composite.attention import scaled_dot_product_attention
from tests.ops.programs import Program

N, M, E = Dim("N"), Dim("M"), Dim("E")
QUERY, KEY, VALUE = (tensor_type(float32, *s) for s in ((2, 3, 4), (2, 5, 4), (2, 5, 6)))


@pytest.mark.parametrize(
    ("operands", "attrs", "message"),
    [
        (
            (QUERY, VALUE, VALUE),
            {},
            "queries and keys have one number of features: "
            "Tensor[Float, (2, 3, 4)] and Tensor[Float, (2, 5, 6)] differ",
        ),
        (
            (QUERY, KEY, tensor_type(float32, 2, 7, 6)),
            {},
            "there is one value for each key: "
            "Tensor[Float, (2, 5, 4)] and Tensor[Float, (2, 7, 6)] differ",
        ),
        (
            (QUERY, KEY, VALUE, tensor_type(bools, 3, 4)),
            {},
            "a mask of Tensor[Bool, (3, 4)] does not broadcast to scores of "
            "Tensor[Bool, (2, 3, 5)]",
        ),
        (
            (QUERY, KEY, VALUE, tensor_type(int64, 3, 5)),
            {},
            "a mask of attention is of bools or floats, not Tensor[Int, (3, 5)]",
        ),
        (
            (QUERY, KEY, VALUE, tensor_type(bools, 3, 5)),
            {"is_causal": True},
            "attention takes a mask or is causal, not both",
        ),
    ],
)
def test_operands_that_do_not_fit_are_refused_with_their_sizes(
    operands: Sequence[Type], attrs: Mapping[str, Any], message: str
) -> None:
    program = Program()
    values = [program.parameter(ty) for ty in operands]
    with pytest.raises(Clash) as caught:
        scaled_dot_product_attention(*values, *(None,) * (4 - len(values)), **attrs)
    assert caught.value.message == message


@relay
def attended(
    query: Tensor[Float, (N, E)],
    key: Tensor[Float, (M, E)],
    value: Tensor[Float, (M, E)],
    mask: Tensor[bool_, (N, M)],
) -> Tensor[Float, (N, E)]:
    return relay.scaled_dot_product_attention(query, key, value, mask)


@relay
def weighed(
    query: Tensor[Float, (N, E)],
    key: Tensor[Float, (M, E)],
    value: Tensor[Float, (M, E)],
    mask: Tensor[bool_, (N, M)],
) -> Float:
    return (attended(query, key, value, mask) * query).sum()


def test_a_query_that_sees_no_key_gives_zeros_and_finite_derivatives() -> None:
    generator = torch.Generator().manual_seed(0)
    query, key, value = (torch.rand(n, 4, generator=generator) for n in (3, 5, 5))
    mask = torch.rand(3, 5, generator=generator) > 0.3
    mask[1] = False
    found = attended(query, key, value, mask)
    expected = functional.scaled_dot_product_attention(query, key, value, mask)
    torch.testing.assert_close(found, expected)
    assert found[1].tolist() == [0.0] * 4
    slopes = relay.grad(weighed)(query, key, value, mask)
    assert all(bool(torch.isfinite(s).all()) for s in slopes[:3])
    rows = [0, 2]
    leaves = [t.clone().requires_grad_() for t in (query, key, value)]
    torch_value = functional.scaled_dot_product_attention(
        leaves[0][rows], *leaves[1:], attn_mask=mask[rows]
    )
    by_torch = torch.autograd.grad((torch_value * leaves[0][rows]).sum(), leaves)
    for actual, wanted in zip(slopes, by_torch, strict=False):
        torch.testing.assert_close(actual, wanted)
