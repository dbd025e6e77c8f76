from pyrelay import Dim, Float, Tensor, relay

N = Dim("N")


@relay
def rows(x: Tensor[Float, (N, 3)]) -> Float:
    xs = [x[0], 1.5]
    return sum(xs)[0]
