"""A number that becomes a size is below 0."""

from pyrelay import Int, relay


@relay
def filled(n: Int):
    return relay.full((n - 5, 2), 1.0)


def main() -> None:
    """Five leave nothing, which is a size."""
    filled(5)
    filled(3)
