"""A count that becomes a float in a loop."""

from pyrelay import Dim, Float, Int, Tensor, relay

N = Dim("N")


@relay
def steps(x: Tensor[Float, (N,)]) -> Int:
    total = 0
    for v in x:
        total += v
    count = 0
    for _ in range(total):
        count += 1
    return count
