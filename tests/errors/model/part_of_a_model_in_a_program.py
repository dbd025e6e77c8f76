"""A program mentions a part of a model."""

from pyrelay import Float, Model, Tensor, relay, relay_model


@relay_model
def net(x: Tensor[Float, (3,)]) -> Tensor[Float, (2,)]:
    return relay.linear(x, out_features=2)


@relay
def partly(m: Model[net], x: Tensor[Float, (3,)]):
    return m.linear_1(x)
