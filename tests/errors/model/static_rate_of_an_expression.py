"""A learning rate that is computed of a parameter."""

from pyrelay import Float, Model, Tensor, relay, relay_model


@relay_model
def net(x: Tensor[Float, (4, 3)]) -> Tensor[Float, (4, 1)]:
    return relay.linear(x, out_features=1)


@relay
def loss(x: Tensor[Float, (4, 3)]) -> Float:
    return relay.mean(net(x) ** 2)


@relay
def train(model: Model[net], x: Tensor[Float, (4, 3)], rate: Float) -> Float:
    optimizer = relay.optim.sgd(lr=rate * 2.0)
    value, grads = relay.value_and_grad(model, loss, (x,))
    relay.update_model_params(model, grads, optimizer=optimizer)
    return value
