"""Pieces of the text of kernels: expressions, and index arithmetic.

Brackets stand only where the precedence of Python needs them. Offsets are dims over the coordinates
of a kernel (`kernels.places`), over sizes and strides. What has no coordinate in it is computed on
the host and passed as one integer.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce
from typing import Final, TypeAlias, final

from ...dataclass import dataclass
from ...ir.bounds import is_nonnegative
from ...ir.dims import ZERO, Dim, DimAtom, DimOp, DimVar
from ..calling import Argument, Size, Stride, size_name
from ..places import Places
from .supplier import STRIDE

_BINDINGS: Final = {
    **dict.fromkeys(("==", "!=", "<", "<=", ">", ">="), 0),
    "|": 1,
    "^": 2,
    "&": 3,
    "<<": 4,
    ">>": 4,
    "+": 5,
    "-": 5,
    "*": 6,
    "/": 6,
    "//": 6,
    "%": 6,
}
_UNARY: Final = 7
_ATOM: Final = 8


@final
@dataclass(frozen=True, slots=True)
class Text:
    """An expression, and how tightly its outermost operator binds."""

    text: str
    binding: int = _ATOM

    def __str__(self) -> str:
        return self.text

    def inside(self, binding: int) -> str:
        """Return the text as an operand that must bind so tightly."""
        return self.text if self.binding >= binding else f"({self.text})"

    @property
    def atom(self) -> str:
        """The text where a method may follow."""
        return self.inside(_ATOM)


def infix(left: Text, sign: str, right: Text) -> Text:
    """Return an operation between two expressions; comparisons are not chained."""
    binding = _BINDINGS[sign]
    return Text(f"{left.inside(binding or 1)} {sign} {right.inside(binding + 1)}", binding)


def behind(address: str, places: Text) -> Text:
    """Return the address so many places behind another; what a sum has is added one by one, so that
    numbers come to the address before blocks of places do."""
    if places.text == "0":
        return Text(address)
    return Text(f"{address} + {places.inside(_BINDINGS['+'])}", _BINDINGS["+"])


def negative(operand: Text) -> Text:
    """Return an expression with its sign changed."""
    return Text(f"-{operand.inside(_UNARY)}", _UNARY)


def call(function: str, *operands: Text | str) -> Text:
    """Return a call."""
    return Text(f"{function}({', '.join(map(str, operands))})")


Coordinates: TypeAlias = Callable[[str], "Text | None"]
"""Return the text of a coordinate; None for the name of a size."""


@final
@dataclass(frozen=True, slots=True)
class Syntax:
    """How a language writes the quotient of integers, the larger of two, and an operand of a
    function."""

    quotient: str
    maximum: str
    operand: Callable[[Text], Text] = lambda text: text


@final
class DimText:
    """Writes the dims of one kernel: `operands` are the names of its operands, `argument` returns
    the name under which an integer is passed, `function` the name of a function of the backend."""

    def __init__(
        self,
        places: Places,
        operands: Sequence[str],
        argument: Callable[[Argument, str], str],
        function: Callable[[str], str],
        syntax: Syntax,
    ) -> None:
        self._places: Final = places
        self._operands: Final = operands
        self._argument: Final = argument
        self._function: Final = function
        self._syntax: Final = syntax

    def whole(self, dim: Dim, coordinates: Coordinates) -> Text:
        """Return the text of a dim."""
        total: Text | None = None
        for atoms, factor in _by_coordinates(dim, coordinates):
            is_less = total is not None and (factor.constant or 0) < 0
            term = self._product(atoms, -factor if is_less else factor, coordinates)
            total = term if total is None else infix(total, "-" if is_less else "+", term)
        return total or Text("0")

    def size(self, dim: Dim, wish: str | None = None) -> Text:
        """Return the text of a dim without coordinates: a number, or an argument, under the name
        wished for if it is a new one."""
        if dim.constant is not None:
            number = Text(str(abs(dim.constant)))
            return negative(number) if dim.constant < 0 else number
        if not any(name.startswith(STRIDE) for name in dim.names()):
            return Text(self._argument(Size(dim), wish or size_name(dim)))
        if dim.name is not None:
            operand, axis = map(int, dim.name.removeprefix(STRIDE).split("."))
            wish = f"{self._operands[operand]}_stride_{axis}"
            return Text(self._argument(Stride(operand, axis), wish))
        terms = [
            _times([self.size(Dim.atom(a)) for a in monomial], self.size(Dim.of(factor)))
            for monomial, factor in dim.terms
        ]
        return reduce(lambda total, term: infix(total, "+", term), terms)

    def _product(self, atoms: tuple[DimAtom, ...], factor: Dim, coordinates: Coordinates) -> Text:
        if not atoms:
            return self.size(factor)
        return _times([self._atom(a, coordinates) for a in atoms], self.size(factor))

    def _atom(self, atom: DimAtom, coordinates: Coordinates) -> Text:
        match atom:
            case DimVar(name):
                text = coordinates(name)
                assert text is not None
                return text
            case DimOp("max", left, right):
                a, b = self.whole(left, coordinates), self.whole(right, coordinates)
                return self._call(self._syntax.maximum, a, b)
            case DimOp(kind, left, right):
                a, b = self.whole(left, coordinates), self.whole(right, coordinates)
                # The quotients of kernels round towards zero.
                if not self._is_nonnegative(left):
                    return self._call(self._function(_FLOORED[kind]), a, b)
                return infix(a, self._syntax.quotient if kind == "floordiv" else "%", b)
            case _:
                raise AssertionError("a checked program has no unknown sizes")

    def _call(self, function: str, *operands: Text) -> Text:
        return call(function, *map(self._syntax.operand, operands))

    def _is_nonnegative(self, dim: Dim) -> bool:
        low, _ = self._places.bounds(dim)
        return low is not None and is_nonnegative(low)


_FLOORED: Final = {"floordiv": "integer_floor_divide", "mod": "integer_remainder"}


def _times(factors: Sequence[Text], by: Text) -> Text:
    """Return a product, without a last factor of 1."""
    if by.text == "-1":
        return negative(_times(factors, Text("1")))
    parts = [*factors, *([] if by.text == "1" and factors else [by])]
    return reduce(lambda total, part: infix(total, "*", part), parts)


def _by_coordinates(dim: Dim, coordinates: Coordinates) -> list[tuple[tuple[DimAtom, ...], Dim]]:
    """Return a dim as a sum of products of atoms with coordinates in them and factors without."""
    found: dict[tuple[DimAtom, ...], Dim] = {}
    for monomial, factor in dim.terms:
        moving = tuple(a for a in monomial if any(map(coordinates, Dim.atom(a).names())))
        still = tuple(a for a in monomial if a not in moving)
        found[moving] = found.get(moving, ZERO) + Dim(((still, factor),))
    return sorted(found.items(), key=_order)


def _order(part: tuple[tuple[DimAtom, ...], Dim]) -> tuple[bool, bool, int, int]:
    """Order the parts of a sum: what is added comes first, so that no text begins with a sign if it
    need not; of that what steps farthest."""
    atoms, factor = part
    monomial, coefficient = factor.terms[0]
    return coefficient < 0, not atoms, -len(monomial), -abs(coefficient)
