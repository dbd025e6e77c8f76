from pyrelay import Float, Int, relay


@relay
def largest(xs: list[Float]) -> Int:
    best = 0
    for x in xs:
        if x > best:
            best = x
    return best
