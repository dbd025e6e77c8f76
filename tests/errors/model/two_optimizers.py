"""One model, updated by two optimisers."""

from pyrelay import Dim, Float, Model, Tensor, relay, relay_model

N = Dim("N")


@relay_model
def net(x: Tensor[Float, (N, 3)]) -> Tensor[Float, (N, 1)]:
    return relay.linear(x, out_features=1)


@relay
def loss(x: Tensor[Float, (N, 3)]) -> Float:
    return relay.mean(net(x) ** 2)



first = relay.optim.adam(lr=1e-3)
second = relay.optim.sgd(lr=0.1, momentum=0.9)


@relay
def finish(model: Model[net], x: Tensor[Float, (N, 3)]) -> Float:
    value, grads = relay.value_and_grad(model, loss, (x,))
    relay.update_model_params(model, grads, optimizer=second)
    return value


@relay
def train(model: Model[net], x: Tensor[Float, (N, 3)]) -> Float:
    grads = relay.grad(model, loss, (x,))
    relay.update_model_params(model, grads, optimizer=first)
    return finish(model, x)
