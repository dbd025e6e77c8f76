"""The decorator is called."""

from pyrelay import Float, relay


def main() -> None:
    """Decorate."""

    @relay()
    def double(x: Float) -> Float:
        return x * 2.0
