from pyrelay import Dim, Float, Tensor, relay

N = Dim("N")


@relay
def rows(x: Tensor[Float, (N, 3)]) -> Tensor[Float, (N,)]:
    return x.sum(1).squeeze(-1)
