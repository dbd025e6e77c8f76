"""Optionals of optionals."""

from __future__ import annotations

from dataclasses import dataclass

from pyrelay import Float, relay
from pyrelay.prelude import Option, Some


@dataclass(frozen=True)
class Reading:
    """What an instrument says, if it is there, and says something."""

    said: Option[Option[Float]]


@relay
def level(x: Option[Option[Float]]):
    match x:
        case None | Some(None):
            return 0.0
        case Some(Some(y)):
            return y


level(None)
level(Some(None))
level(3.0)
Reading(Some(None))
