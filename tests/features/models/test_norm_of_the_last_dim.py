"""`layer_norm` and `rms_norm` without `normalized_shape` normalise the last dim."""

from __future__ import annotations

import pytest
import torch
from torch.nn import functional

from pyrelay import CheckError, Dim, Float, Tensor, relay, relay_model

B, T, C = Dim("B"), Dim("T"), Dim("C")


@relay_model
def norms(x: Tensor[Float, (B, T, C)]):
    return relay.rms_norm(relay.layer_norm(relay.linear(x, out_features=7)))


@relay_model
def without_parameters(x: Tensor[Float, (B, C)]):
    return relay.layer_norm(x, elementwise_affine=False)


@relay
def plain(x: Tensor[Float, (B, C)]):
    return relay.layer_norm(x, eps=0.1), relay.rms_norm(x)


@relay
def squared(x: Tensor[Float, (B, C)]) -> Float:
    y = relay.layer_norm(x) * relay.rms_norm(x)
    return (y * y).sum()


@relay
def of_a_number(x: Float):
    return relay.layer_norm(x)


def test_a_model_has_parameters_of_the_last_size() -> None:
    model = relay.create_model(norms, dims={C: 3}, seed=0)
    weight, bias, *of_norms = model.parameters()
    assert [p.shape for p in of_norms] == [(7,)] * 3
    x = torch.randn(2, 4, 3)
    wanted = functional.layer_norm(
        functional.linear(x, weight, bias), (7,), of_norms[0], of_norms[1]
    )
    torch.testing.assert_close(model(x), functional.rms_norm(wanted, (7,), of_norms[2]))
    assert not list(relay.create_model(without_parameters, dims={C: 3}, seed=0).parameters())


def test_a_function_and_its_gradient_are_those_of_torch() -> None:
    x = torch.randn(4, 3, requires_grad=True)
    first, second = plain(x.detach())
    torch.testing.assert_close(first, functional.layer_norm(x, (3,), eps=0.1).detach())
    torch.testing.assert_close(second, functional.rms_norm(x, (3,)).detach())
    ((functional.layer_norm(x, (3,)) * functional.rms_norm(x, (3,))) ** 2).sum().backward()
    torch.testing.assert_close(relay.grad(squared)(x.detach()), x.grad)


def test_a_number_has_no_last_dim() -> None:
    with pytest.raises(CheckError, match="does not fit a number"):
        of_a_number.check()
