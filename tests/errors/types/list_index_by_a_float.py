"""A list is indexed by a float."""

from pyrelay import Float, relay
from pyrelay.prelude import List


@relay
def at(xs: List[Float], i: float) -> Float:
    return xs[i]
