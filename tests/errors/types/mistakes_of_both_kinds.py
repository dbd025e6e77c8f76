"""A misspelt name hides no mistake about shapes, in this function or in those it calls."""

from pyrelay import Dim, Float, Tensor, relay

N = Dim("N")


@relay
def scores(x: Tensor[Float, (N, 3)]) -> Tensor[Float, (N,)]:
    return relay.sigmiod(x).sum(1)


@relay
def total(x: Tensor[Float, (4, 3)], y: Tensor[Float, (5,)]) -> Float:
    weights = x @ y
    return (scores(x) + y).sum() + weights.sum()


def main() -> None:
    total.check()
