"""A list is changed by a statement, and only where it is the function's own."""

from pyrelay import Float, relay
from pyrelay.prelude import List


@relay
def last(xs: List[Float]) -> Float:
    ys = [x for x in xs]
    ys.append(1.0)
    xs.insert(0, 1.0)
    return ys.pop() if xs[0] > 1.0 else xs.pop()
