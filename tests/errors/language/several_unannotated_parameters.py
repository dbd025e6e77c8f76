"""Independent mistakes are shown in one run."""

from pyrelay import Float, relay


@relay
def blend(a, b, weight: Float):
    return a * weight + b * (1 - weight)
