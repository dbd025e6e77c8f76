"""Numbers and articles in messages."""

from __future__ import annotations


def counted(number: int, noun: str) -> str:
    """Return `1 call`, `2 calls`.

    >>> counted(1, "call"), counted(0, "call")
    ('1 call', '0 calls')
    """
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def with_article(noun: str) -> str:
    """Return `a tensor`, `an array`."""
    return f"an {noun}" if noun[0] in "aeiou" else f"a {noun}"
