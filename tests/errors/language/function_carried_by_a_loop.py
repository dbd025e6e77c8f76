"""A loop carries functions that have captured a name that each round assigns."""

from pyrelay import Float, relay


@relay
def composed(x: Float) -> Float:
    def whole(y: Float) -> Float:
        return y

    for k in range(1, 3):
        inner = whole

        def step(y: Float) -> Float:
            return inner(y) * k

        whole = step if k > 1 else whole
    return whole(x)
