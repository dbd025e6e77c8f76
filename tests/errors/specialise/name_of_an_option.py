"""A parameter has the name of an option of relay.specialise."""

from pyrelay import Float, relay


@relay
def scaled(x: Float, fast_math: bool) -> Float:
    return x + 0.0 if fast_math else x


def main() -> None:
    relay.specialise(scaled, fast_math=True)
