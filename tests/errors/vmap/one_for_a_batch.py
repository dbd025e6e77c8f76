"""A record where a function that is mapped takes a batch of them."""

from dataclasses import dataclass

from pyrelay import Dim, Float, Tensor, relay

N = Dim("N")


@dataclass(frozen=True)
class Point:
    x: Float
    y: Float


@relay
def norm(p: Point) -> Float:
    return relay.sqrt(p.x * p.x + p.y * p.y)


@relay
def norms(p: Point) -> Tensor[Float, (N,)]:
    return relay.vmap(norm)(p)
