"""A function in a field is nothing to compare."""

from __future__ import annotations

from dataclasses import dataclass

from pyrelay import Float, Fn, relay


@dataclass(frozen=True)
class Rule:
    weight: Float
    apply: Fn[[Float], Float]


@relay
def same(p: Rule, q: Rule) -> bool:
    return relay.equal(p, q)
