"""Results whose sizes differ between elements, and what is printed: all mistakes at once."""

from pyrelay import Dim, Float, Tensor, relay

N, M = Dim("N"), Dim("M")


@relay
def positives(x: Tensor[Float, (M,)]) -> Float:
    print(x)
    places = relay.nonzero(x > 0.0)
    return x[x > 0.0].sum() + relay.sum(places)


@relay
def every(xs: Tensor[Float, (N, M)]) -> Tensor[Float, (N,)]:
    return relay.vmap(positives)(xs)
