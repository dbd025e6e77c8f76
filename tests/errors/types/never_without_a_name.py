"""A type without values is a data type, which has a name."""

from __future__ import annotations

from typing import Never, assert_never

from pyrelay import Float, relay


@relay
def impossible(x: Never) -> Float:
    """Give a number out of nothing."""
    assert_never(x)


def main() -> None:
    """Check it."""
    impossible.check()
