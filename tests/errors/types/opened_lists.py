"""Lists of floats and of integers are opened in one display."""

from pyrelay import Float, Int, relay
from pyrelay.prelude import List


@relay
def opened(xs: List[Float], ns: List[Int]) -> List[Float]:
    return [*xs, *ns]
