"""Python's lists change in place, and have methods and functions that the language has not."""

from pyrelay import Float, relay
from pyrelay.prelude import List


@relay
def last(xs: List[Float]) -> Float:
    ys = [x for x in xs]
    ys.extend(xs)
    ys.insert(0, 1.0)
    best = sorted(ys)[0]
    return best + ys.pop()
