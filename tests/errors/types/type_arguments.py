"""A call says type arguments that the function does not have."""

from pyrelay import Dim, Float, Tensor, relay

M, N = Dim("M"), Dim("N")


@relay
def flat(x: Tensor[Float, (M * N,)]) -> Tensor[Float, (M * N,)]:
    return x * 2.0


@relay
def program(x: Tensor[Float, (6,)]) -> Tensor[Float, (6,)]:
    return flat[2](x) + flat[2, Float](x) + flat[2, unknown](x)


def main() -> None:
    """Check it."""
    program.check()
