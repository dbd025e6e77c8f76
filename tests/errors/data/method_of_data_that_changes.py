"""A class whose instances can change is no data type, and its methods are none of the language."""

from __future__ import annotations

from dataclasses import dataclass

from pyrelay import Float, relay


@dataclass
class Counter:
    count: Float

    def doubled(self) -> Float:
        return self.count * 2.0


@relay
def run(x: Float) -> Float:
    return Counter(x).doubled()
