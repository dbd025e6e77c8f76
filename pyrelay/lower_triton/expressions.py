"""The expression of one term, as Triton text.

What a term needs has been written before; `block.Block` says how, and along which axes terms move.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from functools import reduce
from typing import TYPE_CHECKING, Final, final

from ..ir.dims import Dim
from ..ir.types import DType, DTypeKind, bool_, float32
from ..kernels.calling import Number, Read
from ..kernels.plans.terms import Access, Term
from .text import Text, behind, call, infix, negative

if TYPE_CHECKING:
    from .block import Block


INFIX: Final = {
    **{op: op for op in ("&", "|", "^", "<<", ">>")},
    "add": "+",
    "sub": "-",
    "mul": "*",
    "div": "/",
    "quotient": "//",
    "rest": "%",
    "eq": "==",
    "ne": "!=",
    "lt": "<",
    "le": "<=",
    "gt": ">",
    "ge": ">=",
}
"""Operations that are written between their operands."""

TRITON: Final = {
    **{op: op for op in ("abs", "log", "sin", "cos", "erf", "floor", "ceil", "where")},
    "least": "minimum",
    "most": "maximum",
}
"""Operations that are functions of Triton itself; the others are those of `math`."""

FUNCTIONS: Final = frozenset(
    (
        *("exp", "expm1", "log1p", "sigmoid", "tanh", "sinh", "cosh", "tan", "atan", "asin"),
        *("acos", "square_root", "reciprocal_root", "round_even", "sign", "power"),
        *("integer_power", "floor_divide", "remainder", "integer_floor_divide"),
        *("integer_remainder", "minimum", "maximum", "times"),
        *("first_largest", "first_smallest"),
        *("add_exponential", "relative_to", "add_shifted", "moments", "squares_around"),
    )
)
"""The functions of `math`."""


@final
class Writer:
    """Writes the expression of one term in a block; what it needs is written already."""

    def __init__(self, block: Block) -> None:
        self._block: Final = block
        self._kernel: Final = block.kernel

    def expression(self, term: Term) -> Text:
        """Return the text of a term."""
        match term.op:
            case "const":
                return literal(term.detail)
            case "size":
                return self._size(term)
            case "load":
                return self._load(term)
            case "value":
                return self._value(term)
            case "cast":
                return self._cast(term)
            case "neg":
                return negative(self._operand(term.operands[0]))
            case "&" | "|" | "^" if term.dtype == bool_:
                return self._logic(term)
            case op if op in INFIX:
                a, b = term.operands
                return infix(self._beside(a, b), INFIX[op], self._beside(b, a))
            case _:
                return self._call(term)

    def _call(self, term: Term) -> Text:
        op = term.op
        name = f"tl.{TRITON[op]}" if op in TRITON else self._kernel.function(op)
        if op == "where":
            condition, a, b = term.operands
            return call(name, self._operand(condition), self._beside(a, b), self._beside(b, a))
        if op in ("least", "most", "minimum", "maximum"):
            a, b = term.operands
            return call(name, self._beside(a, b), self._beside(b, a))
        return call(name, *(self._typed(t) for t in term.operands))

    def _operand(self, term: Term) -> Text:
        return self._block.text(term)

    def _logic(self, term: Term) -> Text:
        """Return two bools combined. Triton's interpreter makes numbers of the bool of a comparison
        of single elements when it meets those of a block, but not if it chooses among them."""
        a, b = term.operands
        left, right = self._beside(a, b), self._beside(b, a)
        if self._is_single(b) and not self._is_single(a):
            a, left, right = b, right, left
        if not self._is_single(a) or self._is_single(term):
            return infix(left, term.op, right)
        match term.op:
            case "&":
                return call("tl.where", left, right, "False")
            case "|":
                return call("tl.where", left, "True", right)
            case _:
                return call("tl.where", left, infix(right, "==", Text("0")), right)

    def _is_single(self, term: Term) -> bool:
        return not self._block.axes_of(term)

    def _beside(self, term: Term, other: Term) -> Text:
        """Return an operand; a number takes the dtype of the other operand if that is its own."""
        if term.op == "size" and self._is_single(term) and other.op not in ("const", "size"):
            return self._kernel.dims.whole(term.detail, self._block.coordinate)
        is_weak = term.dtype is None or term.dtype == other.dtype
        return self._operand(term) if is_weak and other.op != "const" else self._typed(term)

    def _typed(self, term: Term) -> Text:
        if term.op != "const" or term.dtype is None:
            return self._operand(term)
        return call("tl.full", "[]", literal(term.detail), type_text(term.dtype))

    def _size(self, term: Term) -> Text:
        dim = term.detail
        assert isinstance(dim, Dim)
        text = self._kernel.dims.whole(dim, self._block.coordinate)
        if dim.names() & self._block.axes_of(term) or any(self._kernel.terms.found(dim)):
            return Text(f"{text.atom}.to(tl.int64)")
        return call("tl.full", "[]", text, "tl.int64")

    def _load(self, term: Term) -> Text:
        access = term.detail
        assert isinstance(access, Access)
        if isinstance(access.operand, str):
            pointer = access.operand
        else:
            wish = f"{self._kernel.operand_name(access.operand)}_ptr"
            pointer = self._kernel.argument(Read(access.operand, access.dtype), wish)
        axes = self._block.axes_of(term)
        mask = self.mask(axes, access.offset, term.operands)
        address = self.address(pointer, access.offset, mask if axes else None)
        masks = [] if mask is None else [f"mask={mask}"]
        other = ["other=0"] if masks and term in self._kernel.filled else []
        text = call("tl.load", address, *masks, *other)
        if access.dtype == bool_:
            return text
        if term.dtype != access.dtype:
            assert term.dtype is not None
            return Text(f"{text}.to({type_text(term.dtype)})")
        return text

    def address(self, pointer: str, offset: Dim, mask: Text | None) -> Text:
        """Return the address of a place, as a block where the mask is one."""
        at = self._kernel.dims.whole(offset, self._block.coordinate)
        if mask is not None and not self._moves(offset):
            at = call("tl.where", mask, at, "0")
        return behind(pointer, at)

    def mask(self, axes: Iterable[str], offset: Dim, asked: Iterable[Term] = ()) -> Text | None:
        """Return what must hold for the place of an element along axes: it is asked for, and it
        exists."""
        block = self._block.inside(axes)
        single: list[Text] = []
        parts: list[Text] = [Text(b) for b in block]
        for name in self._kernel.terms.found(offset):
            place, size = self._kernel.terms.coordinates[name]
            text = self._operand(place)
            bounds = [infix(text, ">=", Text("0")), infix(text, "<", self._kernel.dims.size(size))]
            (single if self._is_single(place) else parts).extend(bounds)
        for mask in asked:
            (single if self._is_single(mask) else parts).append(self._operand(mask))
        # As in `_logic`.
        whole = reduce(lambda a, b: infix(a, "&", b), parts) if parts else None
        alone = reduce(lambda a, b: call("tl.where", a, b, "False"), single) if single else None
        if whole is None or alone is None:
            return whole or alone
        return call("tl.where", alone, whole, "False")

    def _moves(self, offset: Dim) -> bool:
        """Return whether a place is a block, or one element for all."""
        found = [self._kernel.terms.coordinates[n][0] for n in self._kernel.terms.found(offset)]
        names = offset.names()
        return any(map(self._block.is_axis, names)) or not all(map(self._is_single, found))

    def _value(self, term: Term) -> Text:
        assert term.dtype is not None
        operand = term.detail
        wish = f"{self._kernel.operand_name(operand)}_value"
        name = self._kernel.argument(Number(operand, term.dtype), wish)
        return call("tl.full", "[]", name, type_text(term.dtype))

    def _cast(self, term: Term) -> Text:
        assert term.dtype is not None
        (value,) = term.operands
        text = self._typed(value).atom
        if isinstance(term.detail, DType):
            if value.dtype not in (None, float32):
                text = f"{text}.to(tl.float32)"  # torch rounds what becomes a half in two steps
            text = f"{text}.to({type_text(term.detail)})"
        return Text(f"{text}.to({type_text(term.dtype)})")


def literal(value: float) -> Text:
    """Return a number as it is written in a kernel."""
    if isinstance(value, float) and not math.isfinite(value):
        name = "nan" if math.isnan(value) else "inf"
        text = Text(f'float("{name}")')
        return negative(text) if value == -math.inf else text
    if isinstance(value, bool) or math.copysign(1.0, value) > 0:
        return Text(repr(value))
    return negative(Text(repr(-value)))


def type_text(dtype: DType) -> str:
    """Return Triton's name of a dtype."""
    return "tl.int1" if dtype.kind is DTypeKind.BOOL else f"tl.{dtype.name}"
