"""One letter stands for two sizes."""

from pyrelay import Float, Tensor, relay


@relay
def product(x: Tensor[Float, (2, 3)], y: Tensor[Float, (4, 5)]):
    return relay.einsum("ij,jk->ik", x, y)
