from __future__ import annotations

from pyrelay import Dim, Float, Model, Tensor, relay, relay_model

N = Dim("N")


@relay_model
def net(x: Tensor[Float, (N, 4)]):
    return relay.linear(x, out_features=2)


@relay
def loss(x: Tensor[Float, (N, 4)], y: Tensor[Float, (N, 2)]):
    return relay.mse_loss(net(x), y)


@relay
def step(model: Model[net], x: Tensor[Float, (N, 4)], y: Tensor[Float, (N, 2)]):
    optimizer = relay.optim.sgd(lr=0.1)
    value, grads = relay.value_and_grad(model, loss, x, y)
    model.zero_grad()
    optimizer.step(model, grads)
    return value
