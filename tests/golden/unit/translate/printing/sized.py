from pyrelay import Dim, Float, Tensor, relay
K = Dim('K')


@relay
def sized(n: K, x: Tensor[Float, (2 * K, 3)]) -> Tensor[Float, (K, 6)]:
    return relay.reshape(x, shape=(K, 6)) + relay.ones(size=(K, 6))
