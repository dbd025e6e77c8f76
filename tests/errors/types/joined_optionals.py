"""Values are joined to a list of what may be None."""

from pyrelay import Float, relay
from pyrelay.prelude import List


@relay
def padded(xs: List[Float | None], x: Float) -> List[Float | None]:
    return xs + [x]
