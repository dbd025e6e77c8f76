"""A static method is decorated."""

from pyrelay import Float, relay


def main() -> None:
    """Decorate."""

    class Doubler:
        @relay
        @staticmethod
        def double(x: Float) -> Float:
            return x * 2.0
