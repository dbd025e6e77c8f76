from pyrelay import Dim, Float, Int, Tensor, relay

N = Dim("N")


@relay
def total(x: Tensor[Float, (N, ...)]) -> Float:
    return relay.sum(x)


@relay
def counted(x: Tensor[Int, (N, 3)]) -> Float:
    return total(x)
