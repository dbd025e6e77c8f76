"""Functions made in a loop are kept, and have captured what each round changes."""

from pyrelay import Float, relay


@relay
def scaled(x: Float) -> Float:
    scales = []
    for i in range(3):
        factor = 2.0 * i
        scales.append(lambda v: v * factor)
    more = [lambda v: v * i for i in range(3)]
    return scales[0](x) + more[0](x)
