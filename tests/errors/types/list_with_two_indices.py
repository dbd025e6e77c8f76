from pyrelay import Float, relay


@relay
def first(x: Float) -> Float:
    xs = [[x], [2 * x]]
    return xs[0, 0]
