"""The rows of a table are one list."""

from pyrelay import Float, relay


@relay
def table(x: Float) -> list[list[Float]]:
    rows = [[x, x]] * 2
    rows[0][1] = 0.0
    return rows
