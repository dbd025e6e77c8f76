"""An operator without its weight, where no model keeps one."""

from pyrelay import Dim, Float, Tensor, relay

N = Dim("N")


@relay
def scores(x: Tensor[Float, (N, 784)]):
    return relay.linear(x, out_features=10)
