"""Programs whose entry takes tensors of any rank, before it is known of which."""

from __future__ import annotations

from collections.abc import Generator, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import final

from ...diagnostics.diagnostic import CheckError, Label
from ...diagnostics.source import Span
from ...ir.expr import Var
from ...ir.module import Module
from ...ir.types import open_shapes
from ...passes.ranks import Ranks, at_ranks, open_count, ranks_to_try
from ..border.places import Parameter
from ..compile.program import Program
from ..values.representation import UserData
from .call_signature import Interface
from .rank_reader import Declared


@final
@dataclass(frozen=True)
class OpenProgram:
    """A module, an entry of it and the classes of its data types; a program for each ranks."""

    module: Module
    entry: str
    data: UserData

    @property
    def parameters(self) -> Sequence[Var]:
        """The parameters of the entry, as they are declared."""
        return self.module.functions[self.entry].params

    @property
    def is_open(self) -> bool:
        """Whether the entry takes tensors of any rank."""
        return self._places > 0

    @property
    def _places(self) -> int:
        return open_count([p.ty for p in self.parameters])

    def at(self, ranks: Ranks) -> Program:
        """Return the program at ranks. Raises CheckError."""
        if not ranks:
            return Program(self.module, self.entry, self.data)
        with ranks_shown(self.parameters, ranks):
            program = Program(*at_ranks(self.module, self.entry, ranks), self.data)
            _ = program.typed
            return program

    def first(self) -> Program:
        """Return the program at the first ranks at which it is right. Raises CheckError where it is
        right at none, with the mistakes at the ranks where they are fewest."""
        found: list[CheckError] = []
        for ranks in ranks_to_try(self._places):
            try:
                return self.at(ranks)
            except CheckError as error:
                found.append(error)
        raise min(found, key=lambda e: len(e.diagnostics))


@final
@dataclass(frozen=True)
class EvalProgram:
    """A model definition in eval mode: its program, how it is called, and where it is declared.

    The first two of `parameters` are the model's parameters and state. One that takes tensors of
    any rank has the program at the first ranks at which it is right, and `opened` those at others.
    """

    interface: Interface
    program: Program
    parameters: tuple[Parameter, ...]
    head: Span
    opened: OpenProgram

    def at(self, ranks: Ranks) -> EvalProgram:
        """Return the model at ranks."""
        program = self.opened.at(ranks)
        types = zip(self.parameters, program.function.params, strict=True)
        parameters = tuple(replace(p, type=v.ty) for p, v in types if v.ty is not None)
        return replace(self, program=program, parameters=parameters)


@contextmanager
def ranks_shown(parameters: Iterable[Declared], ranks: Ranks) -> Generator[None]:
    """Return a context in which mistakes show what `...` stands for."""
    try:
        yield
    except CheckError as error:
        if not ranks:
            raise
        labels = tuple(_labels(parameters, ranks))
        found = (replace(d, secondary=(*d.secondary, *labels)) for d in error.diagnostics)
        raise CheckError(*found) from None


def _labels(parameters: Iterable[Declared], ranks: Ranks) -> Iterator[Label]:
    left = iter(ranks)
    for parameter in parameters:
        for _ in () if parameter.ty is None else open_shapes(parameter.ty):
            number = next(left)
            sizes = "size" if number == 1 else "sizes"
            yield Label(parameter.span, f"`...` stands for {number} {sizes} here")
