from pyrelay import Float, relay


@relay
def total(x: Float) -> Float:
    xs = [x]
    ys = xs
    xs.append(2 * x)
    return sum(ys)
