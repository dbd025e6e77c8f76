"""Values are joined by `+=` to a list of what may be None."""

from pyrelay import Float, relay
from pyrelay.prelude import List


@relay
def grown(x: Float) -> List[Float | None]:
    xs = [x]
    xs.append(None)
    xs += [x]
    return xs
