"""A tensor with a name of its own is changed as an item of a list."""

from pyrelay import Float, Tensor, relay


@relay
def changed(x: Tensor[Float, (2,)]) -> Tensor[Float, (2,)]:
    row = relay.zeros_like(x)
    rows = [row, x]
    rows[0] += 1.0
    return row
