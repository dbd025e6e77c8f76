"""A number that has met float32 turns out to be float64."""

from pyrelay import Bool, Float, float64, relay


@relay
def chosen(x: Float, y: float64, use_half: Bool):
    half = 1 / 2
    shifted = x + half
    pick = (lambda: half) if use_half else (lambda: y)
    return pick(), shifted


chosen.check()
