from __future__ import annotations

from pyrelay import Dim, Float, Model, Tensor, relay, relay_model

N = Dim("N")


@relay_model
def net(x: Tensor[Float, (N, 4)]):
    return relay.linear(x, out_features=2)


@relay
def loss(x: Tensor[Float, (N, 4)]):
    return relay.mean(net(x) ** 2)


@relay
def descend(model: Model[net], x: Tensor[Float, (N, 4)]):
    model -= 0.1 * relay.grad(model, loss, (x,))


@relay
def train(model: Model[net], x: Tensor[Float, (N, 4)]):
    for _ in range(10):
        value, grads = relay.value_and_grad(model, loss, (x,))
        model = model - 0.1 * grads
        print(value)
