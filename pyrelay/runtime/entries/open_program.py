"""Programs whose entry takes tensors of any rank, and the ranks of the arguments of a call."""

from __future__ import annotations

from collections.abc import Callable, Container, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from typing import Any, Final, TypeAlias, final

from ...dataclass import dataclass
from ...diagnostics.catalogue.call import TooManyDims
from ...diagnostics.diagnostic import CheckError, Label, RunError
from ...diagnostics.source import Span
from ...ir.expr import Var
from ...ir.module import Module
from ...ir.types import (
    AdtType,
    TensorType,
    Type,
    TypeVar,
    is_open_shape,
    map_type,
    open_shapes,
    show,
)
from ...passes.ranks import MOST_DIMS, Ranks, at_ranks, open_count, ranks_to_try
from ...translate.program.signature import Parameter as DeclaredParameter
from ..border.places import Parameter
from ..border.value_types import Typed, solve
from ..compile.program import Program
from ..values.representation import UserData
from .call_signature import Interface

Declared: TypeAlias = Var | DeclaredParameter
"""A parameter as it is declared: with a name, a type or none, and a span."""


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


@final
class RankReader:
    """Reads ranks off the arguments of a function."""

    def __init__(
        self, parameters: Iterable[Declared], fields: Callable[[AdtType, Any], Typed]
    ) -> None:
        """`fields` returns the fields of a value of a data type, with their types."""
        self._parameters: Final = list(map(_marked, parameters))
        self._fields: Final = fields
        self.has_ranks: Final = any(p.shapes for p in self._parameters)
        """Whether some parameter takes tensors of any rank."""

    def ranks(self, values: Sequence[Any], known: Container[str] = ()) -> Ranks:
        """Return how many sizes each `...` stands for, none where no value shows it; the parameters
        in `known` have no values. Raises RunError where there are too many."""
        taken = [p for p in self._parameters if p.name not in known]
        given = [(p.ty, v) for p, v in zip(taken, values, strict=True) if p.shapes]
        wanted = [name for p in taken for name in p.shapes]
        found = solve(given, wanted, self._fields, _rank_of, lambda _: True)
        return tuple(
            _dims(p, shape, found.get(name, 0)) for p in taken for name, shape in p.shapes.items()
        )


@final
@dataclass(frozen=True, slots=True)
class _Marked:
    """A parameter with type variables in the places of tensors of any rank, and what these are."""

    name: str
    ty: Type
    span: Span
    shapes: Mapping[str, TensorType]


def _marked(parameter: Declared) -> _Marked:
    shapes: dict[str, TensorType] = {}
    mark = partial(_mark, parameter.name, shapes)
    ty = TypeVar(parameter.name) if parameter.ty is None else parameter.ty
    return _Marked(parameter.name, map_type(ty, mark, lambda dim: dim), parameter.span, shapes)


def _mark(parameter: str, shapes: dict[str, TensorType], ty: Type) -> Type | None:
    if not is_open_shape(ty):
        return None
    name = f"{parameter} {len(shapes)}"
    shapes[name] = ty
    return TypeVar(name)


def _rank_of(value: Any) -> int | None:
    """Return the rank of a value that a tensor is made of; None for what shows none."""
    shape = getattr(value, "shape", None)
    if shape is not None:
        return len(shape)
    return 0 if isinstance(value, bool | int | float) else None


def _dims(parameter: _Marked, shape: TensorType, rank: int) -> int:
    number = max(rank - len(shape.shape) + 1, 0)
    if number > MOST_DIMS:
        raise RunError(TooManyDims(parameter.span, parameter.name, show(shape), number))
    return number
