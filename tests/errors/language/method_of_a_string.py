from __future__ import annotations

from pyrelay import relay


@relay
def words(text: str) -> int:
    return len(text.split(" "))
