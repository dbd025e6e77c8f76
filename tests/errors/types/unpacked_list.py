"""A list is unpacked, which may have any length."""

from pyrelay import Float, relay
from pyrelay.prelude import List


@relay
def first(xs: List[Float]) -> Float:
    head, _ = xs
    return head
