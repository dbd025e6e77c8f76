"""Places of largest elements: 32 bits where gradients of pools alone read them."""

from __future__ import annotations

import pytest
import torch

from pyrelay import Dim, Float, Int, Tensor, options, relay
from pyrelay.infer import infer
from pyrelay.ir.normal_form import to_anf
from pyrelay.passes.rewrites.narrow_places import narrow_places
from pyrelay.text.parser import parse_module
from pyrelay.text.printer import to_text

N = Dim("N")

POOL = "let %p = max_pool2d_with_indices(%x, kernel_size=2); let %y = %p.0; let %at = %p.1;"
BACK = "max_pool2d_backward(%y, %x, %at, kernel_size=2)"


def narrowed(body: str, size: str = "6") -> str:
    source = f"def @f[N: Dim](%x: Tensor[(N, 3, {size}, 6), float32]) {{ {POOL} {body} }}"
    return to_text(narrow_places(to_anf(infer(parse_module(source)))))


def test_places_that_gradients_read_are_narrow() -> None:
    found = narrowed(BACK)
    assert "index_dtype=int32" in found
    assert "int64" not in found


@pytest.mark.parametrize(
    "body", [f"({BACK}, %at)", f"({BACK}, sum(%at))", f"({BACK}, %p)"], ids=str
)
def test_places_that_anything_else_reads_stay(body: str) -> None:
    assert "int32" not in narrowed(body)


def test_places_in_images_of_an_unknown_or_a_large_size_stay() -> None:
    assert "int32" not in narrowed(BACK, "N")
    assert "int32" not in narrowed(BACK, "500000000")


@relay
def pooled(x: Tensor[Float, (N, 3, 7, 20)]) -> Float:
    h = relay.max_pool2d(relay.tanh(x), 3, stride=2, padding=1)
    return (relay.max_pool2d(h, 2, ceil_mode=True) ** 2).sum()


@relay
def places(x: Tensor[Float, (N, 3, 7, 20)]) -> Tensor[Int, (N, 3, 3, 10)]:
    return relay.max_pool2d_with_indices(x, 2)[1]


@pytest.mark.parametrize("lowering", ["c", "torch-regions", "evaluator"])
def test_gradients_of_pools_are_those_of_torch(lowering: str) -> None:
    x = torch.randn(2, 3, 7, 20).round(decimals=1).requires_grad_()
    h = torch.max_pool2d(torch.tanh(x), 3, 2, 1)
    (torch.max_pool2d(h, 2, ceil_mode=True) ** 2).sum().backward()
    with options(lowering=lowering):
        torch.testing.assert_close(relay.grad(pooled)(x.detach()), x.grad)
        expected = torch.nn.functional.max_pool2d(x.detach(), 2, return_indices=True)[1]
        assert torch.equal(places(x.detach()), expected)
