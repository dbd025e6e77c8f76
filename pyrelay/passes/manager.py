"""Passes and pipelines: what a pass needs and promises, and the one place that runs it.

The manager times passes and, where asked, verifies what each promises; a pass itself is a plain
function from module to module that gives the same object back when it changed nothing.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Self, final

from ..ir.module import Module
from ..ir.verify import Stage, verify


@final
@dataclass(frozen=True, slots=True)
class Pass:
    """A step of the compiler: what it needs, what it promises, and the function that does it."""

    name: str
    run: Callable[[Module], Module]
    needs: Stage
    gives: Stage


@final
@dataclass(frozen=True, slots=True)
class Step:
    """A pass that has run: what came out of it, whether that is new, and how long it took."""

    name: str
    module: Module
    changed: bool
    seconds: float


@final
@dataclass(frozen=True, slots=True)
class Pipeline:
    """Passes in order."""

    passes: tuple[Pass, ...]

    def __iter__(self) -> Iterator[Pass]:
        """Give the passes in order."""
        return iter(self.passes)

    def after(self, name: str, new: Pass) -> Self:
        """Give the pipeline with a pass inserted after the one of that name. Raises KeyError."""
        for position, existing in enumerate(self.passes):
            if existing.name == name:
                head, tail = self.passes[: position + 1], self.passes[position + 1 :]
                return type(self)((*head, new, *tail))
        raise KeyError(name)

    def run(self, module: Module, *, check: bool = False) -> Module:
        """Give the module after all passes; with `check`, each is verified. Raises VerifyError."""
        for step in self.steps(module, check=check):
            module = step.module
        return module

    def steps(self, module: Module, *, check: bool = False) -> Iterator[Step]:
        """Run the passes one by one and give what came of each. Raises VerifyError."""
        for current in self.passes:
            if check:
                verify(module, current.needs)
            start = time.perf_counter()
            made = current.run(module)
            seconds = time.perf_counter() - start
            if check:
                verify(made, current.gives)
            yield Step(current.name, made, made is not module, seconds)
            module = made
