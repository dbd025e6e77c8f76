"""The prelude as IR: `prelude.relay`, read once a process and only when a program needs it.

In a program its names begin with `prelude.`, which no name of a user's does, so they clash with
nothing: `prelude.map`, `prelude.List`. What a program mentions is linked into its module, together
with what that reaches.
"""

from __future__ import annotations

from functools import cache
from importlib import resources
from typing import Final

from ..ir.linking import Library
from ..ir.module import Module
from ..ir.parser import parse_module
from ..ir.rename import rename
from ..ir.types import PRELUDE

FILE: Final = "prelude.relay"


def qualified(name: str) -> str:
    """Give the name that something of the prelude has in programs."""
    return PRELUDE + name


LIST: Final = qualified("List")
OPTION: Final = qualified("Option")
TREE: Final = qualified("Tree")
NAT: Final = qualified("Nat")


@cache
def linker() -> Library:
    """Give the whole prelude, to be linked into programs."""
    place = resources.files(__spec__.parent).joinpath(FILE)
    return Library(rename(parse_module(place.read_text("utf-8"), FILE), qualified))


def library() -> Module:
    """Give the whole prelude, not yet typed, under the names it has in programs."""
    return linker().module


def link(module: Module) -> Module:
    """Give the module with what it mentions of the prelude, and what that reaches; itself if it
    mentions nothing, or has everything already."""
    return linker().link(module)
