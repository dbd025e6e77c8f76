"""Lists of two types are joined."""

from pyrelay import Float, Int, relay
from pyrelay.prelude import List, map


@relay
def halves(ns: List[Int]) -> List[Float]:
    return map(lambda n: n / 2, ns) + ns
