"""A dataclass is decorated."""

from dataclasses import dataclass

from pyrelay import Float, relay


def main() -> None:
    """Decorate."""

    @relay
    @dataclass(frozen=True)
    class Point:
        x: Float
