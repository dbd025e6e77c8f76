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
def train(model: Model[net], x: Tensor[Float, (N, 4)]):
    for _ in range(10):
        grads = relay.grad(model, loss, (x,))
        model = relay.update_model_params(model, grads, lr=0.1)
    return model(x)
