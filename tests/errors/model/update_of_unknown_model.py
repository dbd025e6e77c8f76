"""A function that updates a model is used as a value."""

from pyrelay import Dim, Float, Model, Tensor, relay, relay_model

N = Dim("N")


@relay_model
def net(x: Tensor[Float, (N, 3)]) -> Tensor[Float, (N, 1)]:
    return relay.linear(x, out_features=1)


@relay
def loss(x: Tensor[Float, (N, 3)]) -> Float:
    return relay.mean(net(x) ** 2)



optimizer = relay.optim.adam(lr=1e-3)


@relay
def step(model: Model[net], x: Tensor[Float, (N, 3)]) -> Float:
    value, grads = relay.value_and_grad(model, loss, (x,))
    relay.update_model_params(model, grads, optimizer=optimizer)
    return value


@relay
def look(model: Model[net], x: Tensor[Float, (N, 3)]) -> Float:
    return model.bind(loss)(x)


@relay
def train(model: Model[net], x: Tensor[Float, (N, 3)], learn: bool) -> Float:
    f = step if learn else look
    return f(model, x)
