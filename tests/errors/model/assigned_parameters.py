"""Parameters of models, assigned to."""

from pyrelay import Dim, Float, Model, Tensor, relay, relay_model

B = Dim("B")


@relay_model
def net(x: Tensor[Float, (B, 4)]) -> Tensor[Float, (B, 2)]:
    return relay.linear(x, out_features=2)


@relay
def moved(m: Model[net], w: Tensor[Float, (2, 4)], x: Tensor[Float, (B, 4)]) -> Float:
    m.weight = w
    m.linear.weight -= 0.1
    net.weight = w
    return m(x).sum()
