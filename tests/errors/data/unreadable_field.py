"""A field has a type of the language."""

from __future__ import annotations

from dataclasses import dataclass

from pyrelay import Float, relay


@dataclass(frozen=True)
class Entry:
    name: str
    table: dict[str, float]


@relay
def same(e: Entry) -> Entry:
    return e
