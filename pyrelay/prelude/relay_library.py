"""The prelude of Relay's own texts: its names, its int32, its orders."""

from __future__ import annotations

from functools import cache
from typing import Final

from ..ir.linking import Library
from ..ir.module import Module

FILE: Final = "relay_prelude.relay"


@cache
def relay_library() -> Module:
    """Return the whole prelude of Relay's texts, not yet typed."""
    from importlib import resources  # this and the parser are slow to import

    from ..text.parser import parse_module

    place = resources.files(__spec__.parent).joinpath(FILE)
    return parse_module(place.read_text("utf-8"), FILE)


RELAY_LINKED: Final = Library(relay_library)
"""Relay's prelude, to be linked into the texts that mention it."""
