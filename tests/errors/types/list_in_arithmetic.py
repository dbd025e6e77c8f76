"""Arithmetic on a list is that of each element."""

from pyrelay import Float, relay
from pyrelay.prelude import List


@relay
def halves(xs: List[Float]) -> List[Float]:
    return xs * 0.5
