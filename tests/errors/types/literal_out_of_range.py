"""A byte ends at 255."""

from pyrelay import Dim, Tensor, relay, uint8

N = Dim("N")


@relay
def brighter(x: Tensor[uint8, (N,)]):
    return x + 300


brighter.check()
