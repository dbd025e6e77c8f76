"""`in` searches what holds values, not the elements of a tensor."""

from pyrelay import Bool, Float, Tensor, relay


@relay
def has_zero(x: Tensor[Float, (3,)]) -> Bool:
    return 0.0 in x
