"""Torch's own names: aliases of operators, and methods of tensors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

from pyrelay import Dim, Float, Tensor, relay
from pyrelay.decorators import ALIASES
from pyrelay.ir.op import Promotion
from pyrelay.operators.table import BY_NAME
from tests.ops.checks import assert_equal, operands_of, samples
from tests.ops.materials import tensors

N = Dim("N")


@pytest.mark.parametrize("alias", sorted(set(ALIASES) - {"cross_entropy"}))
def test_an_alias_is_torchs_function_of_that_name(alias: str) -> None:
    op = BY_NAME[ALIASES[alias]]
    function = getattr(torch, alias)
    tried = 0
    for sample in samples(op):
        operands = operands_of(sample, tensors(sample))
        dtypes = {t.dtype for t in operands if isinstance(t, torch.Tensor)}
        numbers = any(isinstance(v, int | float) for v in operands)
        if op.promotion is not Promotion.NONE and (numbers or len(dtypes) > 1):
            continue
        attrs = [sample.attrs.get(p.name, p.default) for p in op.attributes]
        if None in operands or None in attrs:
            continue
        try:
            expected = function(*operands, *attrs)
        except (RuntimeError, TypeError):
            continue  # torch takes less
        tried += 1
        found = getattr(relay, alias)(*operands, *attrs)
        assert_equal(found, expected, rtol=1e-5, atol=1e-6)
    assert tried


X = torch.randn(3, 4, generator=torch.Generator().manual_seed(0))


def casts(x: Tensor[Float, (3, 4)]):
    return x.double().float() * x.long().float() + (x > 0.0).int().float() + x.half().float()


def products(x: Tensor[Float, (3, 4)]):
    square = x.mm(x.T)
    return square.mv(x.select(1, 0)).dot(x.sum(1)) * square.unsqueeze(0).bmm(square.unsqueeze(0))


def parts(x: Tensor[Float, (3, 4)]):
    first, second = x.chunk(2, 1)
    a, b, c = x.unbind()
    return first * second + x.narrow(1, 1, 2) + (a * b - c).reshape(2, 2).sum(0)


def shapes(x: Tensor[Float, (3, 4)]):
    y = x.movedim(0, -1).contiguous().reshape_as(x).view_as(x).clone()
    return y * x.sum(1, keepdim=True).expand_as(x) * x.numel() + x.amax(1, keepdim=True)


def arithmetic(x: Tensor[Float, (3, 4)]):
    y = x.mul(2.0).sub(x.square()).true_divide(x.abs().add(1.0)).clamp(-1.0, 1.0)
    return y.reciprocal().neg() + x.std(0) + x.mean(1, keepdim=True) + x.broadcast_to((2, 3, 4))


@pytest.mark.parametrize("program", [casts, products, parts, shapes, arithmetic])
def test_methods_are_torchs(program: Callable[..., Any]) -> None:
    compiled = relay(program)
    torch.testing.assert_close(compiled(X), program(X))
    leaf = X.clone().requires_grad_()
    program(leaf).sum().backward()

    @relay
    def total(x: Tensor[Float, (3, 4)]) -> Float:
        return compiled(x).sum()

    torch.testing.assert_close(relay.grad(total)(X), leaf.grad)


def test_a_named_size_is_cut_evenly_or_refused() -> None:
    @relay
    def halves(x: Tensor[Float, (N,)]):
        a, b = relay.chunk(x, 2)
        return a * b

    assert halves.type == "(x: Tensor[Float, (N,)]) -> Tensor[Float, (N // 2,)] where N % 2 == 0"
    assert halves(torch.tensor([1.0, 2.0, 3.0, 4.0])).tolist() == [3.0, 8.0]
    with pytest.raises(Exception, match="sizes do not fit"):
        halves(torch.ones(3))
