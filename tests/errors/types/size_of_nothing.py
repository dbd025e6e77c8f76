"""No value shows how large K is."""

from pyrelay import Dim, Float, Tensor, relay

K, N = Dim("K"), Dim("N")


@relay
def padded(x: Tensor[Float, (N,)]) -> Float:
    def total(y: Tensor[Float, (K,)]) -> Float:
        return relay.sum(y) / K

    return total(relay.cat((x, relay.zeros((K,)))))
