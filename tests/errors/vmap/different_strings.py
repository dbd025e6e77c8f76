"""Elements that would have different strings, one inside of data."""

from dataclasses import dataclass

from pyrelay import Dim, Float, Tensor, relay

N = Dim("N")


@dataclass(frozen=True)
class Named:
    name: str
    value: Float


@relay
def called(x: Float) -> Float:
    name = "large" if x > 1.0 else "small"
    found = Named(name, x)
    if x > 2.0:
        found = Named("huge", x * 2.0)
    return found.value if found.name == "small" else x


@relay
def every(xs: Tensor[Float, (N,)]) -> Tensor[Float, (N,)]:
    return relay.vmap(called)(xs)
