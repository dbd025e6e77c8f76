"""The columns of a list of rows, as Python often has them."""

from pyrelay import Float, relay


@relay
def means(rows: list[list[Float]]) -> list[Float]:
    return [sum(column) / len(rows) for column in zip(*rows)]
