"""A tuple is joined to a list."""

from pyrelay import Float, relay
from pyrelay.prelude import List


@relay
def with_both(xs: List[Float], x: Float) -> List[Float]:
    return xs + (x, x)
