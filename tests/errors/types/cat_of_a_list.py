"""A list of any length is given for a tuple of tensors."""

from pyrelay import Float, Tensor, relay
from pyrelay.prelude import List


@relay
def joined(xs: List[Tensor[Float, (3,)]]):
    return relay.cat(xs)
