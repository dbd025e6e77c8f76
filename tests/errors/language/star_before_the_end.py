from pyrelay import relay
from pyrelay.prelude import List


@relay
def last(xs: List[float]) -> float:
    match xs:
        case []:
            return 0.0
        case [*_, x]:
            return x
