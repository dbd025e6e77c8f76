"""An axis that data do not have."""

from dataclasses import dataclass

from pyrelay import Batch, Dim, Float, Tensor, relay

N = Dim("N")


@dataclass(frozen=True)
class Point:
    x: Float
    y: Float


@relay
def norm(p: Point) -> Float:
    return relay.sqrt(p.x * p.x + p.y * p.y)


@relay
def columns(points: Batch[Point, N]) -> Tensor[Float, (N,)]:
    return relay.vmap(norm, in_axes=1)(points)
