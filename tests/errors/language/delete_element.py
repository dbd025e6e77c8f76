"""A list without one of its elements is another list."""

from pyrelay import Float, relay
from pyrelay.prelude import List


@relay
def rest(xs: List[Float]) -> List[Float]:
    ys = [x for x in xs]
    del ys[0]
    return ys
