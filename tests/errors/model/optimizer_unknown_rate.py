"""A learning rate that only the running program knows."""

from pyrelay import Dim, Float, Model, Tensor, relay, relay_model

N = Dim("N")


@relay_model
def net(x: Tensor[Float, (N, 3)]) -> Tensor[Float, (N, 1)]:
    return relay.linear(x, out_features=1)


@relay
def loss(x: Tensor[Float, (N, 3)]) -> Float:
    return relay.mean(net(x) ** 2)



@relay
def train(model: Model[net], x: Tensor[Float, (N, 3)], rate: Float) -> Float:
    optimizer = relay.optim.adam(lr=rate)
    value, grads = relay.value_and_grad(model, loss, (x,))
    relay.update_model_params(model, grads, optimizer=optimizer)
    return value
