from pyrelay import Dim, Float, Tensor, relay

N = Dim("N")


@relay
def layer(x: Tensor[Float, (N, 4)], w: Tensor[Float, (3, 5)]) -> Tensor[Float, (N, 3)]:
    return relay.linear(x, w)
