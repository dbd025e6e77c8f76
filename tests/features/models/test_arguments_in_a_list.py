"""`relay.value_and_grad(model, loss, args)` takes its arguments in a tuple, or in a list, as the
batches of a DataLoader are."""

from __future__ import annotations

import torch
from torch.utils.data import DataLoader, TensorDataset

from pyrelay import Dim, Float, Model, Tensor, relay, relay_model
from pyrelay.prelude import List

N = Dim("N")


@relay_model
def net(x: Tensor[Float, (N, 3)]):
    return relay.linear(x, out_features=2)


@relay
def loss(x: Tensor[Float, (N, 3)], y: Tensor[Float, (N, 2)]) -> Float:
    return relay.mse_loss(net(x), y)


@relay
def norm(x: Tensor[Float, (N, 3)]) -> Float:
    return relay.mean(net(x) ** 2)


@relay
def norms(xs: List[Tensor[Float, (4, 3)]]) -> Float:
    return sum([norm(x) for x in xs])


def test_a_list_of_arguments_is_what_a_tuple_is() -> None:
    model: Model = relay.create_model(net)
    x, y = torch.randn(4, 3), torch.randn(4, 2)
    value, grads = relay.value_and_grad(model, loss, (x, y))
    again, same = relay.value_and_grad(model, loss, [x, y])
    assert torch.equal(value, again)
    assert (grads - same).norm() == 0
    assert torch.equal(relay.grad([model], loss, [x, y])[0].norm(), grads.norm())


def test_batches_of_a_loader_are_arguments_as_they_are() -> None:
    model: Model = relay.create_model(net)
    x = torch.randn(4, 3)
    (batch,) = DataLoader(TensorDataset(x), batch_size=4)
    assert isinstance(batch, list | tuple)
    value, _ = relay.value_and_grad(model, norm, batch)
    assert torch.equal(value, relay.value_and_grad(model, norm, [x])[0])
    assert torch.equal(value, relay.value_and_grad(model, norm, x)[0])


def test_a_list_for_the_one_parameter_that_is_a_list_is_its_argument() -> None:
    model: Model = relay.create_model(net)
    xs = [torch.randn(4, 3), torch.randn(4, 3)]
    value, _ = relay.value_and_grad(model, norms, xs)
    assert torch.equal(value, relay.value_and_grad(model, norms, (xs,))[0])
