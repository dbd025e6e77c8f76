"""A pattern for what is there of an optional has too many fields."""

from pyrelay import Float, relay
from pyrelay.prelude import Some


@relay
def program(x: Float | None) -> Float:
    match x:
        case Some(y, z):
            return y + z
        case None:
            return 0.0


def main() -> None:
    """Check it."""
    program.check()
