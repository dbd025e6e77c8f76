import math
from pyrelay import Dim, Float, Int, Tensor, float64, relay
N = Dim('N')


@relay
def scaled(x: Tensor[float64, (N,)], k: Int) -> Tensor[float64, (N,)]:
    half = 0.5
    if k > 3:
        return x * 0.5 + relay.cast(k, dtype=relay.float64)
    return x * math.inf
