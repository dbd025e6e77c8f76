"""Lists of floats and of integers are joined, made by comprehensions."""

from pyrelay import Float, Int, relay
from pyrelay.prelude import List


@relay
def halves_and_counts(xs: List[Float], ns: List[Int]) -> List[Float]:
    return [x / 2 for x in xs] + [n for n in ns]
