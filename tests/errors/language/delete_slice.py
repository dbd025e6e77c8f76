"""A list without some of its elements is another list."""

from pyrelay import Float, relay


@relay
def rest(xs: list[Float]) -> list[Float]:
    ys = list(xs)
    del ys[0:2]
    return ys
