"""A supplier of elements that only notes what is read and how much is computed."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import field
from typing import Any, Final, final

from ..dataclass import dataclass
from ..ir.declaration.elements import Elements, Place
from ..ir.dims import Dim
from ..ir.expr import Constant, Var, type_of
from ..ir.types import DType, is_float
from .groups import Scattered
from .places import Places
from .reading import Reader, dtype_of, shape_of


@final
@dataclass(frozen=True, slots=True)
class Work:
    """How much was computed for the element at some coordinates."""

    index: tuple[Dim, ...]
    elements: _Counting


class _Counting(Elements):
    """The arithmetic of one call: every result is a new value, and operations are counted."""

    def __init__(self, record: Recording, dtype: DType) -> None:
        self._record: Final = record
        self._dtype: Final = dtype
        self.operations = 0
        """Additions, multiplications, comparisons and the like."""
        self.functions = 0
        """Exponentials and other functions that are made of several operations."""

    def const(self, value: float, /) -> Any:
        return _Element()

    def cast(self, a: Any, dtype: Any, /) -> Any:
        return _Element()

    def number(self, coordinate: Dim, /) -> Any:
        return _Element()

    def coordinate(self, value: Any, size: Dim, /, *, from_end: bool = True) -> Dim:
        of = value.of if isinstance(value, _Element) else None
        self._record.may_fail |= of is None or self._record.known_places.get(of) != size
        return self._record.found_coordinate(size)

    def floordiv(self, a: Any, b: Any, /) -> Any:
        return self._quotient()

    def mod(self, a: Any, b: Any, /) -> Any:
        return self._quotient()

    def _quotient(self) -> Any:
        self.operations += 1
        self._record.may_fail |= not is_float(self._dtype)
        return _Element()


class _Element:
    """The value of an element, which may be a tuple; `of` is the variable that has been read."""

    __slots__ = ("of",)

    def __init__(self, of: Var | None = None) -> None:
        self.of: Final = of

    def __getitem__(self, field: int) -> _Element:
        return _Element()


def _counted(counter: str) -> Callable[..., Any]:
    def count(self: _Counting, *operands: Any) -> Any:
        setattr(self, counter, getattr(self, counter) + 1)
        return _Element()

    return count


for _name in (
    *("add", "sub", "mul", "div", "neg", "abs", "sign", "minimum", "maximum"),
    *("compared", "logical", "logical_not", "where", "isnan", "isfinite", "rounded", "bits"),
):
    setattr(_Counting, _name, _counted("operations"))
for _name in ("pow", "function"):
    setattr(_Counting, _name, _counted("functions"))


@final
@dataclass(slots=True)
class Recording:
    """The reads and computations, in order. `is_leaf` returns whether a variable bound inside is
    read like a parameter; the elements of the variables `known_places` are places of a dim of a
    size."""

    is_leaf: Callable[[Var], bool] = lambda var: False
    known_places: Mapping[Var, Dim] = field(default_factory=dict[Var, Dim])
    places: Places = field(default_factory=Places)
    reads: dict[tuple[Var, tuple[Dim, ...]], bool] = field(
        default_factory=dict[tuple[Var, tuple[Dim, ...]], bool]
    )
    """Which elements of which leaves, and whether always: not only where something holds."""
    work: list[Work] = field(default_factory=list[Work])
    may_fail: bool = False
    """Whether a computed place may not exist, or an integer may be divided by 0."""
    _found: int = 0

    def found_coordinate(self, size: Dim) -> Dim:
        """Return a coordinate that only the run knows."""
        self._found += 1
        return self.places.coordinate(f"{FOUND}{self._found}", size)

    def elements(self, dtype: DType, index: tuple[Dim, ...], /) -> Elements:
        """Return arithmetic that counts."""
        counting = _Counting(self, dtype)  # pyright: ignore[reportAbstractUsage]  made by a loop
        self.work.append(Work(index, counting))
        return counting

    def holds(self, var: Var, /) -> bool:
        """Return whether a variable is one of the leaves."""
        return self.is_leaf(var)

    def read(
        self,
        var: Var | Constant,
        index: tuple[Dim, ...],
        mask: Any | None,
        otherwise: Any | None,
        /,
    ) -> Any:
        """Note that an element is read; constants are always there."""
        if isinstance(var, Constant):
            return _Element()
        key = (var, index)
        self.reads[key] = self.reads.get(key, False) or mask is None
        return _Element(var)

    def computed(self, var: Var, index: tuple[Dim, ...], value: Any, /) -> Any:
        """Return the value as it is."""
        return value

    def checked(self, elements: Elements, value: Any, mask: Any | None, /) -> Any:
        """Return the value as it is."""
        return value


FOUND: Final = "?"
"""How the names of coordinates begin that only the run knows."""


def read_scatter(found: Scattered, reader: Reader, record: Recording) -> None:
    """Read what a scatter adds or stores at one place, where it does, and what it adds to."""
    call, start = found.call, found.start
    place = Place(record.places.index("i", found.over), found.over)
    elements = record.elements(dtype_of(type_of(found.total)), place.index)
    found.lowering.body(elements, place, *reader.operands(call), *call.attrs.values())
    if start is not None:
        reader.element(start, record.places.index("b", shape_of(type_of(start))))
