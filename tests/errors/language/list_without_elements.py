from pyrelay import Float, relay
from pyrelay.prelude import List


@relay
def total(xs: List) -> Float:
    return sum(xs)
