"""A model is fixed."""

from pyrelay import Float, Model, Tensor, relay, relay_model


@relay_model
def net(x: Tensor[Float, (2, 3)]) -> Tensor[Float, (2, 4)]:
    return relay.linear(x, out_features=4)


@relay
def loss(model: Model[net], x: Tensor[Float, (2, 3)], scale: Float) -> Float:
    return scale * model(x).sum()


def main() -> None:
    relay.specialise(loss, model=relay.create_model(net), scale=2.0)
