"""The program stops itself."""

from pyrelay import Float, relay


@relay
def root(x: Float) -> Float:
    if x < 0.0:
        raise ValueError("roots of negative numbers are imaginary")
    return relay.sqrt(x)


def main() -> None:
    """Take an imaginary root."""
    root(-1.0)
