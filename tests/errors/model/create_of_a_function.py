"""A function without parameters of its own is no model."""

from pyrelay import Float, relay


@relay
def double(x: Float) -> Float:
    return x * 2.0


def main() -> None:
    """Create an instance of it."""
    relay.create_model(double)
