"""The gradient is that of the parameters at the start; an update inside moves the model instead."""

from pyrelay import Dim, Float, Model, Tensor, relay, relay_model

N = Dim("N")


@relay_model
def net(x: Tensor[Float, (N, 2)]) -> Tensor[Float, (N, 1)]:
    return relay.linear(x, out_features=1)


@relay
def loss(x: Tensor[Float, (N, 2)]) -> Float:
    return net(x).sum()


@relay
def step(model: Model[net], x: Tensor[Float, (N, 2)]):
    def adapted(x):
        relay.update_model_params(model, relay.grad(model, loss, (x,)), lr=0.1)
        return loss(x)

    return relay.grad(model, adapted, (x,))


def main() -> None:
    """Check it."""
    step.check()
