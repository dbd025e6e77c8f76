"""Functions of Python and of torch that go by another name."""

import random

from pyrelay import Float, Tensor, relay


@relay
def mixed(x: Tensor[Float, (3,)]) -> Float:
    print("{}".format(random.random()))
    hidden = relay.gru_cell(x, x)
    return relay.linalg.norm(hidden) + x.median()


def main() -> None:
    """Check it."""
    mixed.check()
