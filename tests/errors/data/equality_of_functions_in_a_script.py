"""A script compares no functions either."""

from __future__ import annotations

from dataclasses import dataclass

from pyrelay import Float, Fn, relay


@dataclass(frozen=True)
class Rule:
    weight: Float
    apply: Fn[[Float], Float]


def main() -> None:
    relay.equal(Rule(1.0, relay.tanh), Rule(1.0, relay.tanh))
