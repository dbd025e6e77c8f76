"""An argument that is a size of types is below 0."""

from typing import Annotated

from pyrelay import Dim, Float, Tensor, relay

N = Dim("N")


@relay
def ramp(n: Annotated[int, N]) -> Tensor[Float, (N,)]:
    return relay.arange(n) * 0.5


def main() -> None:
    """No elements are a tensor too."""
    ramp(0)
    ramp(-1)
