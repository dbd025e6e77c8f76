from pyrelay import Float, relay
from pyrelay.prelude import List


@relay
def total(xs: List[Float]) -> Float:
    xs.append(1.0)
    return sum(xs)
