"""A method is called of a value that may be None."""

from __future__ import annotations

from dataclasses import dataclass

from pyrelay import Float, relay


@dataclass(frozen=True)
class Chain:
    value: Float
    rest: Chain | None

    def total(self) -> Float:
        return self.value + self.rest.total()


@relay
def total(chain: Chain) -> Float:
    return chain.total()
