"""How many sizes each `...` in the types of parameters stands for in a call."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, Protocol, final

from ...diagnostics.catalogue.call import TooManyDims
from ...diagnostics.diagnostic import RunError
from ...diagnostics.source import Span
from ...ir.types import AdtType, TensorType, Type, TypeVar, is_open_shape, map_type, show
from ...passes.ranks import MOST_DIMS, Ranks
from ..border.value_types import Typed, solve


class Declared(Protocol):
    """A parameter as it is declared."""

    @property
    def name(self) -> str:
        """Its name."""
        ...

    @property
    def ty(self) -> Type | None:
        """Its type, None where it has no annotation."""
        ...

    @property
    def span(self) -> Span:
        """The place of its annotation."""
        ...


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
