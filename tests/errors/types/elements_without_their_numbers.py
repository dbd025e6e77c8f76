from pyrelay import Float, relay


@relay
def weighted(xs: list[Float]) -> Float:
    total = 0.0
    for i, x in xs:
        total += i * x
    return total
