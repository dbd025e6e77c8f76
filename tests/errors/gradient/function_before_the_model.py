"""The loss before the model."""

from pyrelay import Dim, Float, Tensor, relay, relay_model

N = Dim("N")


@relay_model
def net(x: Tensor[Float, (N, 4)]) -> Tensor[Float, (N, 1)]:
    return relay.linear(x, out_features=1)


@relay
def loss(x: Tensor[Float, (N, 4)]) -> Float:
    return net(x).sum()


def main():
    model = relay.create_model(net, seed=0)
    return relay.value_and_grad(loss, model, (model.params,))
