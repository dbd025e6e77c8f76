"""`//` by zero."""

from pyrelay import relay


@relay
def share(n: int, among: int) -> int:
    return n // among


def main() -> None:
    """Divide among nobody."""
    share(3, 0)
