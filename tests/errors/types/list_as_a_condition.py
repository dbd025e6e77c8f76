"""Whether a list has elements is a comparison of its length."""

from pyrelay import Float, relay
from pyrelay.prelude import List


@relay
def first(xs: List[Float]) -> Float:
    if xs:
        return xs[0]
    return 0.0
