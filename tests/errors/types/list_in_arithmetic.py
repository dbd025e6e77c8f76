"""A list is not repeated by `*`."""

from pyrelay import Float, Int, relay
from pyrelay.prelude import List


@relay
def zeros(n: Int) -> List[Float]:
    return [0.0] * n
