from pyrelay import Dim, Float, Tensor, relay

N = Dim("N")


@relay
def shown(x: Tensor[Float, (N, ...)]) -> Float:
    return relay.sum(relay.sum(x, dim=2) + "x")
