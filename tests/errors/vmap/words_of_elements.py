"""All that cannot be batched is reported at once, strings made of elements too."""

from pyrelay import Dim, Float, Tensor, relay

N = Dim("N")


@relay
def spoken(x: Tensor[Float, (N,)]) -> Tensor[Float, (N,)]:
    text = f"{x.sum()}"
    print(text)
    positive = x[x > 0.0]
    return x * positive.sum()


def main() -> None:
    relay.vmap(spoken).check()
