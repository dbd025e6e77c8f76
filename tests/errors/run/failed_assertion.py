"""An assertion of the program."""

from pyrelay import Float, relay


@relay
def root(x: Float) -> Float:
    assert x >= 0.0, "roots of negative numbers are imaginary"
    return relay.sqrt(x)


def main() -> None:
    """Take an imaginary root."""
    root(-1.0)
