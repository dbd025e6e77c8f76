"""Whether a list is empty is a comparison of its length."""

from pyrelay import Bool, Float, relay
from pyrelay.prelude import List


@relay
def is_empty(xs: List[Float]) -> Bool:
    return not xs
