"""A script asks for a function over functions that is not there yet."""

from pyrelay import Float, relay


@relay
def cube(x: Float) -> Float:
    return x * x * x


def main() -> None:
    """Ask for a linear map."""
    relay.linearize(cube)
