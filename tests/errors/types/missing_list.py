from pyrelay import relay
from pyrelay.prelude import List


@relay
def first_two(xs: List[float]) -> float:
    match xs:
        case []:
            return 0.0
        case [x, y, *_]:
            return x + y
