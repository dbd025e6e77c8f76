"""The loss does not use the model."""

from pyrelay import Dim, Float, Int, Model, Tensor, relay, relay_model

N = Dim("N")


@relay_model
def net(x: Tensor[Float, (N, 784)]) -> Tensor[Float, (N, 10)]:
    return relay.linear(x, out_features=10)


@relay
def loss(x: Tensor[Float, (N, 784)], y: Tensor[Int, (N,)]) -> Float:
    return relay.softmax_cross_entropy(net(x), y)


@relay
def norm(x: Tensor[Float, (N, 784)]) -> Float:
    return (x * x).sum()


@relay
def step(model: Model[net], x: Tensor[Float, (N, 784)]):
    return relay.grad(model, norm, (x,))
