"""The prelude as IR: `prelude.relay`, read once a process and only when a program needs it.

In a program its names begin with `prelude.`, which no name of a user's does, so they clash with
nothing: `prelude.map`, `prelude.List`. The parts that a program mentions are linked into its
module, together with all that they reach.
"""

from __future__ import annotations

from functools import cache
from typing import Final

from ..ir.dims import Dim
from ..ir.expr import Call, Function
from ..ir.linking import Library
from ..ir.module import Module
from ..ir.op import Effect, Op
from ..ir.traverse import post_order
from ..ir.types import PRELUDE, AdtType, Type

FILE: Final = "prelude.relay"


def qualified(name: str) -> str:
    """Return the name that something of the prelude has in programs."""
    return PRELUDE + name


LIST: Final = qualified("List")
OPTION: Final = qualified("Option")
TREE: Final = qualified("Tree")
NAT: Final = qualified("Nat")


def element_of(ty: Type | None) -> Type | None:
    """Return the element type of a list; None for any other type."""
    return _argument(ty, LIST)


def inner_of(ty: Type | None) -> Type | None:
    """Return the content type of an optional; None for any other type."""
    return _argument(ty, OPTION)


def _argument(ty: Type | None, name: str) -> Type | None:
    if not isinstance(ty, AdtType) or ty.name != name:
        return None
    (argument,) = ty.args
    assert not isinstance(argument, Dim)
    return argument


@cache
def library() -> Module:
    """Return the whole prelude, not yet typed, under the names it has in programs."""
    from importlib import resources  # this and the parser are slow to import

    from ..ir.rename import rename
    from ..text.parser import parse_module

    place = resources.files(__spec__.parent).joinpath(FILE)
    return rename(parse_module(place.read_text("utf-8"), FILE), qualified)


LINKED: Final = Library(library, PRELUDE)
"""The prelude, to be linked into programs."""


def part(name: str) -> Module:
    """Return a function of the prelude, by its name in programs, with all that it reaches."""
    return link(Module({name: library().functions[name]}, {}))


@cache
def fails(name: str) -> bool:
    """Return whether a function of the prelude, by its name in programs, may itself stop it."""
    return stops(library().functions[name])


def stops(function: Function) -> bool:
    """Return whether the body of a function may stop the program, what it calls aside."""
    callees = (n.callee for n in post_order(function) if isinstance(n, Call))
    return any(isinstance(c, Op) and c.effect is Effect.FAIL for c in callees)


def link(module: Module) -> Module:
    """Return the module with the parts of the prelude that it mentions, and all that they reach;
    itself if it mentions nothing, or has everything already."""
    return LINKED.link(module)
