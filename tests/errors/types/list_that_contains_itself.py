from pyrelay import Int, relay
from pyrelay.prelude import Cons, List


@relay
def nested(xs: List[Int]) -> List[Int]:
    def grow(ys, n):
        return ys if n == 0 else grow(Cons(ys, ys), n - 1)

    return grow(xs, 3)
