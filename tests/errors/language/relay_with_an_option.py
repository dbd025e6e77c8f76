"""The decorator gets an option."""

from pyrelay import Float, relay


def main() -> None:
    """Decorate."""

    @relay(strict=True)
    def double(x: Float) -> Float:
        return x * 2.0
