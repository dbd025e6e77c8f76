"""A model is made whose input size nothing in the function tells."""

from pyrelay import Dim, Float, Tensor, relay, relay_model

N, K = Dim("N"), Dim("K")


@relay_model
def net(x: Tensor[Float, (N, K)]) -> Tensor[Float, (N, 10)]:
    return relay.linear(x, out_features=10, bias=False)


@relay
def unused():
    model = relay.create_model(net)
    return relay.export_model(model)
