from pyrelay import Dim, Float, Tensor, relay

N, K = Dim("N"), Dim("K")


@relay
def turned(x: Tensor[Float, (N, 3)]) -> Tensor[Float, (4, ...)]:
    return relay.transpose(x, 0, 1)
