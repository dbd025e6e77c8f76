"""An equation of sizes that only a call can tell, where all are to be told by types."""

from pyrelay import Dim, Float, Tensor, relay

N, M = Dim("N"), Dim("M")


@relay
def total(x: Tensor[Float, (N,)], y: Tensor[Float, (M,)]) -> Tensor[Float, (M,)]:
    return x + y


def main() -> None:
    """Check strictly."""
    total.check()
    total.check(strict=True)
