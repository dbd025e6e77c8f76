"""A number that becomes a list in a loop inside a loop."""

from pyrelay import Float, relay
from pyrelay.prelude import List


@relay
def counted(xs: List[Float]):
    count = 0
    for _ in xs:
        for _ in xs:
            count = xs
    return count
