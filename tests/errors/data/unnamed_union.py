"""A union is named beside its classes."""

from __future__ import annotations

from dataclasses import dataclass

from pyrelay import Float, relay


@dataclass(frozen=True)
class Circle:
    radius: Float


@dataclass(frozen=True)
class Square:
    side: Float


@relay
def same(s: Circle | Square) -> Circle | Square:
    return s
