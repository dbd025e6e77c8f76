"""The arithmetic of bodies, as terms of a kernel.

Half types are computed with as float32. Beside `Scalars`' own names, the operations of terms are

    & | ^ << >>                             of integers bit by bit, and of bools
    quotient, rest                          of unsigned integers
    integer_floor_divide, integer_remainder of signed ones, as Python's
    floor_divide, remainder, power          of floats, as torch's
    integer_power                           of integers; of a negative power the whole part
    minimum, maximum                        of floats; NaN wins
    least, most                             of integers
    square_root, reciprocal_root            rounded correctly, and as the device rounds
    round_even                              to the nearest whole number, halves to even
    checked                                 the first operand; the kernel fails where all others,
                                            which are bools, hold
    neg, abs, sign, where, eq, ne, lt ...   of what `Scalars` says

A backend writes each of them; `terms` has the others, which read and convert.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Final, final

from ...ir.constant import nearest
from ...ir.declaration.elements import Elements
from ...ir.dims import Dim
from ...ir.types import DType, DTypeKind, bool_, int8, int16, int32, int64, is_float, uint8
from .terms import Term, Terms, is_half, widened

_ROOTS: Final = {"sqrt": "square_root", "rsqrt": "reciprocal_root"}
_LOGICAL: Final = {"and": "&", "or": "|", "xor": "^"}

_CONSTANT_POWERS: Final = 8
"""Whole powers up to this are products."""

_RANGES: Final = {
    bool_: (0, 1),
    uint8: (0, 255),
    **{d: (-(2 ** (d.bits - 1)), 2 ** (d.bits - 1) - 1) for d in (int8, int16, int32, int64)},
}


def lowest(dtype: DType) -> float:
    """Return the lower bound of the elements of a dtype."""
    return -math.inf if is_float(dtype) else _RANGES[dtype][0]


def highest(dtype: DType) -> float:
    """Return the upper bound of the elements of the dtype."""
    return math.inf if is_float(dtype) else _RANGES[dtype][1]


@final
class TermArithmetic(Elements):
    """The arithmetic of one body; it gives terms. Numbers are of the dtype of the call where they
    meet no other value."""

    def __init__(
        self,
        terms: Terms,
        dtype: DType,
        new_coordinate: Callable[[TermArithmetic, Term, Dim, bool], Dim],
    ) -> None:
        """`new_coordinate` makes a coordinate of an int64 term, for a dim of a size, and whether
        values below 0 count from the end."""
        self._terms: Final = terms
        self._dtype: Final = widened(dtype)
        self._new_coordinate: Final = new_coordinate
        self.places: Final[list[tuple[Term, Dim]]] = []
        """The computed places, and the sizes of the dims that they are of."""
        self.divisors: Final[list[Term]] = []
        """The integers that are divided by and may be 0."""

    def wrapped(self, value: Term, size: Dim) -> Term:
        """Return an int64 value with values below 0 counted from the end of a dim."""
        behind = self.add(value, self.number(size))
        return self.where(self.lt(value, self.const(0)), behind, value)

    # What all operations are made of.

    def _unary(self, op: str, a: Term) -> Term:
        return self._terms.make(op, self._typed(a), dtype=a.dtype or self._dtype)

    def _binary(self, op: str, a: Term, b: Term, result: DType | None = None) -> Term:
        dtype = self._common(a, b)
        if a.dtype is None and b.dtype is None:
            a = self._typed(a)
        return self._terms.make(op, a, b, dtype=result or dtype)

    def _common(self, a: Term, b: Term) -> DType:
        dtypes = [d for d in (a.dtype, b.dtype) if d is not None]
        return max(dtypes, key=lambda d: (d.kind.value, d.bits), default=self._dtype)

    def _typed(self, a: Term) -> Term:
        """Return a number in the dtype of the call, and any other term as it is."""
        if a.dtype is not None:
            return a
        return self._terms.make("const", dtype=self._dtype, detail=a.detail)

    def _is_float(self, *values: Term) -> bool:
        dtypes = [v.dtype for v in values if v.dtype is not None] or [self._dtype]
        return any(map(is_float, dtypes))

    def _is_bool(self, *values: Term) -> bool:
        dtypes = [v.dtype for v in values if v.dtype is not None] or [self._dtype]
        return all(d == bool_ for d in dtypes)

    def checked(self, value: Term, fault: Term, mask: Term | None) -> Term:
        """Return a value; the kernel fails where a fault holds, and `mask` too."""
        value = self._typed(value)
        masks = () if mask is None else (mask,)
        return self._terms.make("checked", value, fault, *masks, dtype=value.dtype)

    def is_outside(self, place: Term, size: Dim) -> Term:
        """Return whether an integer is no place of a dim."""
        below, behind = self.lt(place, self.const(0)), self.ge(place, self.number(size))
        return self.logical("or", below, behind)

    def is_zero(self, value: Term) -> Term:
        """Return whether a value is 0."""
        return self.eq(self._typed(value), self.const(0))

    # `Scalars`.

    def const(self, value: float, /) -> Term:
        return self._terms.make("const", detail=value)

    def add(self, a: Term, b: Term, /) -> Term:
        return self._binary("|" if self._is_bool(a, b) else "add", a, b)

    def sub(self, a: Term, b: Term, /) -> Term:
        return self._binary("sub", a, b)

    def mul(self, a: Term, b: Term, /) -> Term:
        return self._binary("&" if self._is_bool(a, b) else "mul", a, b)

    def div(self, a: Term, b: Term, /) -> Term:
        return self._binary("div", a, b)

    def floordiv(self, a: Term, b: Term, /) -> Term:
        return self._division("floor_divide", "quotient", a, b)

    def mod(self, a: Term, b: Term, /) -> Term:
        return self._division("remainder", "rest", a, b)

    def _division(self, function: str, unsigned: str, a: Term, b: Term) -> Term:
        if self._is_float(a, b):
            return self._called(function, a, b)
        if b.op != "const" or not b.detail:
            self.divisors.append(b)
        if self._common(a, b) in (uint8, bool_):
            return self._binary(unsigned, a, b)
        return self._called(f"integer_{function}", a, b)

    def _called(self, function: str, a: Term, b: Term) -> Term:
        """Return a call of one of our functions, whose operands are all of one dtype."""
        dtype = self._common(a, b)
        given = [
            t if t.dtype is not None else self._terms.make("const", dtype=dtype, detail=t.detail)
            for t in (a, b)
        ]
        return self._terms.make(function, *given, dtype=dtype)

    def pow(self, a: Term, b: Term, /) -> Term:
        if b.op == "const" and (found := self._constant_power(a, b.detail)) is not None:
            return found
        return self._called("power" if self._is_float(a, b) else "integer_power", a, b)

    def _constant_power(self, a: Term, exponent: float) -> Term | None:
        if self._is_float(a):
            match exponent:
                case 0.5:
                    return self.sqrt(a)
                case -0.5:
                    return self.rsqrt(a)
                case -1:
                    return self.div(self.const(1.0), a)
                case _:
                    pass
        if exponent != int(exponent) or not 1 <= exponent <= _CONSTANT_POWERS:
            return None
        product = a
        for bit in bin(int(exponent))[3:]:
            product = self.mul(product, product)
            product = self.mul(product, a) if bit == "1" else product
        return product

    def neg(self, a: Term, /) -> Term:
        return self._unary("neg", a)

    def abs(self, a: Term, /) -> Term:
        return a if self._common(a, a) in (uint8, bool_) else self._unary("abs", a)

    def sign(self, a: Term, /) -> Term:
        return a if self._is_bool(a) else self._unary("sign", a)

    def function(self, name: str, a: Term, /) -> Term:
        return self._unary(_ROOTS.get(name, name), a)

    def rounded(self, name: str, a: Term, /) -> Term:
        if not self._is_float(a):
            return a
        return self._unary("round_even" if name == "round" else name, a)

    def compared(self, name: str, a: Term, b: Term, /) -> Term:
        if name not in ("eq", "ne") and self._is_bool(a, b):
            a, b = self.cast(a, int32), self.cast(b, int32)  # no sign decides the order of bools
        return self._binary(name, a, b, bool_)

    def logical(self, name: str, a: Term, b: Term, /) -> Term:
        return self._binary(_LOGICAL[name], self.cast(a, bool_), self.cast(b, bool_))

    def minimum(self, a: Term, b: Term, /) -> Term:
        if self._is_bool(a, b):
            return self._binary("&", a, b)
        is_float = self._is_float(a, b)
        return self._called("minimum", a, b) if is_float else self._binary("least", a, b)

    def maximum(self, a: Term, b: Term, /) -> Term:
        if self._is_bool(a, b):
            return self._binary("|", a, b)
        is_float = self._is_float(a, b)
        return self._called("maximum", a, b) if is_float else self._binary("most", a, b)

    def logical_not(self, a: Term, /) -> Term:
        return self._terms.make("eq", self._typed(a), self.const(0), dtype=bool_)

    def bits(self, a: Term, operator: str, b: Term, /) -> Term:
        return self._binary(operator, a, b)

    def bit_not(self, a: Term, /) -> Term:
        if self._is_bool(a):
            return self.logical_not(a)
        low, high = _RANGES[self._common(a, a)]
        return self.bits(a, "^", self.const(-1 if low < 0 else high))

    def where(self, condition: Term, a: Term, b: Term, /) -> Term:
        dtype = self._common(a, b)
        if a.dtype is None and b.dtype is None:
            a = self._typed(a)
        return self._terms.make("where", self.cast(condition, bool_), a, b, dtype=dtype)

    def isnan(self, a: Term, /) -> Term:
        a = self._typed(a)
        return self._terms.make("ne", a, a, dtype=bool_)

    def isfinite(self, a: Term, /) -> Term:
        if not self._is_float(a):
            return self.eq(a, a)
        return self._binary("lt", self._unary("abs", a), self.const(math.inf), bool_)

    def cast(self, a: Term, dtype: DType, /) -> Term:
        to = widened(dtype)
        if a.op == "const":
            return self._terms.make("const", dtype=to, detail=_converted(a.detail, dtype))
        if dtype == bool_:
            return a if a.dtype == bool_ else self.ne(a, self.const(0))
        if is_half(dtype) and not self._is_already(a, dtype):
            return self._terms.make("cast", a, dtype=to, detail=dtype)
        return a if a.dtype == to else self._terms.make("cast", a, dtype=to)

    def _is_already(self, a: Term, dtype: DType) -> bool:
        """Return whether a term is certainly an element of a half type."""
        return a.op in ("load", "cast") and self._terms.rounded(a) == dtype

    # `Elements`.

    def number(self, coordinate: Dim, /) -> Term:
        """Return a coordinate as an int64 value."""
        if coordinate.constant is not None:
            return self._terms.make("const", dtype=int64, detail=coordinate.constant)
        return self._terms.make("size", dtype=int64, detail=coordinate)

    def coordinate(self, value: Term, size: Dim, /, *, from_end: bool = True) -> Dim:
        """Return an integer value as a coordinate. A constant that exists in a dim of constant size
        is one; whether any other exists is for the kernel to find."""
        if value.op == "const" and size.constant is not None:
            place = int(value.detail)
            place += size.constant if place < 0 and from_end else 0
            if 0 <= place < size.constant:
                return Dim.of(place)
        return self._new_coordinate(self, self.cast(value, int64), size, from_end)


def _converted(value: Any, dtype: DType) -> Any:
    match dtype.kind:
        case DTypeKind.FLOAT:
            return nearest(float(value), dtype)
        case DTypeKind.INT:
            return int(value)
        case DTypeKind.BOOL:
            return bool(value)
