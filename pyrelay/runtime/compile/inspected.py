"""Functions whose programs can be looked at."""

from __future__ import annotations

import difflib
from abc import ABC, abstractmethod
from functools import cached_property
from typing import TYPE_CHECKING

from ...ir.expr import type_of
from ...ir.module import Module
from ...ir.types import dim_names
from ...ir.types import show as text_of
from ...lazy import LazyModule
from ...text.open_sizes import with_any
from .program import Program

if TYPE_CHECKING:
    from . import show
else:
    show = LazyModule("pyrelay.runtime.compile.show")


def type_text(program: Program, skip: int = 0) -> str:
    """Return the type of the entry in the user's notation, with the equations it assumes; without
    the first `skip` parameters."""
    function, result = program.function, program.type.result
    params = ", ".join(f"{p.name}: {text_of(type_of(p))}" for p in function.params[skip:])
    text = f"({params}) -> {text_of(result)}"
    assumed = " and ".join(str(a) for a in function.assumptions if not a.is_inside)
    taken = frozenset[str]().union(*(dim_names(type_of(p)) for p in function.params))
    whole = f"{text} where {assumed}" if assumed else text
    return with_any([whole], dim_names(result) - taken)[0]


class Inspected(ABC):
    """A function whose program can be looked at: its type, its IR and its stages as text."""

    @cached_property
    @abstractmethod
    def program(self) -> Program:
        """The program of the function. Raises CheckError."""

    @property
    @abstractmethod
    def source_text(self) -> str:
        """The text that the function was read from."""

    @property
    def type(self) -> str:
        """The inferred type, its sizes and the equations between them included."""
        return type_text(self.program)

    @property
    def module(self) -> Module:
        """The typed IR of the function and everything it reaches."""
        return self.program.typed

    def show(self, stage: str = "typed") -> str:
        """Return the program at a stage: source, translated, typed, anf, grad, simplified, regions,
        host, python or the name of a backend."""
        return self.source_text if stage == "source" else show.stage_text(self.program, stage)

    def explain(self) -> str:
        """Return what kernels and regions the function becomes, what each moves and computes, and
        why what is stored between them is."""
        return show.explanation(self.program)

    def diff(self, before: str, after: str) -> str:
        """Return the difference between two stages as a unified diff."""
        first, second = self.show(before).splitlines(), self.show(after).splitlines()
        return "\n".join(difflib.unified_diff(first, second, before, after, lineterm=""))
