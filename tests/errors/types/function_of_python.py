"""Types of Python that the language writes otherwise."""

from collections.abc import Callable

from pyrelay import Float, relay


@relay
def applied(f: Callable, pair: tuple) -> Float:
    return f(pair[0])


def main() -> None:
    """Check it."""
    applied.check()
