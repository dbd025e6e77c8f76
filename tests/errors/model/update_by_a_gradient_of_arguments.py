"""A program updates a model by the gradient in the parameters and in the data."""

from pyrelay import Dim, Float, Model, Params, Tensor, relay, relay_model

N = Dim("N")


@relay_model
def net(x: Tensor[Float, (N, 3)]) -> Tensor[Float, (N, 1)]:
    return relay.linear(x, out_features=1)


@relay
def loss(x: Tensor[Float, (N, 3)]) -> Float:
    return relay.mean(net(x) ** 2)


@relay
def outer(params: Params[net], x: Tensor[Float, (N, 3)]) -> Float:
    return relay.with_params(loss)(params, x)


@relay
def step(model: Model[net], x: Tensor[Float, (N, 3)]) -> Float:
    value, grads = relay.value_and_grad(outer)(model.params, x)
    relay.update_model_params(model, grads, lr=0.1)
    return value
