"""Whether an optional is there is a comparison with None."""

from pyrelay import Float, relay


@relay
def value(x: Float | None) -> Float:
    return 1.0 if x else 0.0
