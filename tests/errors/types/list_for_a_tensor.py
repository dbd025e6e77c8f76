"""An operator takes a tensor, not the list of some."""

from pyrelay import Float, relay
from pyrelay.prelude import List


@relay
def squashed(xs: List[Float]) -> List[Float]:
    return relay.tanh(xs)
