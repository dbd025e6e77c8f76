"""The two places that clash are far from the call."""

from pyrelay import Dim, Float, Tensor, relay

N = Dim("N")


@relay
def mix(x: Tensor[Float, (N, 8)], y: Tensor[Float, (N, 6)]):
    left = relay.tanh(x)
    right = relay.sigmoid(y)
    both = left * right
    return both.sum()
