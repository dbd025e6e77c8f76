from typing import Any

from pyrelay import Float, relay


@relay
def half(x: Float) -> Float:
    return x / 2


def main() -> None:
    """Run it."""
    given: Any = "3"
    relay.grad(half)(given)
