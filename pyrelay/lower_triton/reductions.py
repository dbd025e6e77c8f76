"""How elements combine along a row: the text of each kind of reduction.

A block of a row combines at once (`whole`), or each block of a loop is combined into an accumulator
that is as large as a block, which combines at the end. Elements beyond the end of the row do not
count. Half types are summed in float32, whole numbers in int64 (the dtype of the result).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, final

from ..ir.expr import type_of
from ..ir.types import DType, TupleType, Type, bool_, int32, int64, is_float
from ..passes.regions.groups import Reduced
from ..passes.regions.reading import dtype_of
from .block import Block
from .expressions import literal, type_text
from .scalars import highest, lowest
from .terms import Term, widened
from .text import Text, call, infix

_POSITIONS: Final = ("argmax", "argmin")


@final
@dataclass(frozen=True, slots=True, eq=False)
class Reduction:
    """A reduction of a kernel: `operand` is the term of each element, in the dtype in which they
    combine, and `results` are the terms of what it gives: the value, the position, or both."""

    reduced: Reduced
    operand: Term
    value: Term | None
    position: Term | None

    @property
    def dtype(self) -> DType:
        """The dtype in which elements combine."""
        assert self.operand.dtype is not None
        return self.operand.dtype

    @property
    def is_pair(self) -> bool:
        """Whether positions are kept beside the elements."""
        return self.position is not None

    @property
    def is_largest(self) -> bool:
        """Whether the largest element is looked for, not the smallest."""
        return self.reduced.combine in ("max", "argmax")

    @property
    def results(self) -> tuple[Term, ...]:
        """The terms that it gives."""
        return tuple(t for t in (self.value, self.position) if t is not None)


def combining_dtype(reduced: Reduced) -> DType:
    """Give the dtype in which the elements of a reduction combine."""
    if reduced.combine in _POSITIONS:
        return widened(dtype_of(type_of(reduced.operand)))
    if reduced.combine in ("and", "or"):
        return bool_
    return widened(dtype_of(first_of(type_of(reduced.call))))


def part_dtypes(reduction: Reduction) -> tuple[DType, ...]:
    """Give the dtypes in which parts of a reduction are kept."""
    first = int32 if reduction.dtype == bool_ else reduction.dtype
    return (first, int64) if reduction.is_pair else (first,)


def first_of(ty: Type) -> Type:
    """Give the type of what a reduction gives, without that of a position beside it."""
    if not isinstance(ty, TupleType):
        return ty
    first, _ = ty.fields
    return first


def identity(reduction: Reduction) -> float:
    """Give what changes nothing when it is combined."""
    match reduction.reduced.combine:
        case "add" | "mean":
            return 0.0 if is_float(reduction.dtype) else 0
        case "mul":
            return 1.0 if is_float(reduction.dtype) else 1
        case "and":
            return True
        case "or":
            return False
        case _ if reduction.is_largest:
            return lowest(reduction.dtype)
        case _:
            return highest(reduction.dtype)


@final
class Row:
    """Where a reduction is written: the block of elements, and how a row of it is combined."""

    def __init__(
        self, outer: Block, coordinate: str, count: Text, shape: Sequence[str] | None = None
    ) -> None:
        """`outer` is where results are used, `coordinate` the text of the place in the row, `count`
        the number of places, `shape` the sizes of blocks if they are not those of `outer`."""
        shape = outer.shape if shape is None else shape
        self._outer: Final = outer
        self._coordinate: Final = coordinate
        self._count: Final = count
        self._axis: Final = "0" if len(shape) == 1 else "1, keep_dims=True"
        self._shape: Final = f"[{', '.join(shape)}]"

    def whole(self, reduction: Reduction, mask: str | None) -> None:
        """Combine a row that is one block."""
        value = self._masked(self._outer, reduction, mask)
        place = self._place(mask) if reduction.is_pair else None
        self._give(reduction, value, place)

    def start(self, reduction: Reduction) -> tuple[str, ...]:
        """Make the accumulator of a row that takes several blocks; give its names."""
        name = reduction.reduced.var.name
        fresh = self._outer.kernel.fresh
        full = literal(identity(reduction))
        best = fresh(f"{name}_block")
        dtype = type_text(reduction.dtype)
        self._outer.line(f"{best} = tl.full({self._shape}, {full}, {dtype})")
        if not reduction.is_pair:
            return (best,)
        place = fresh(f"{name}_place")
        self._outer.line(f"{place} = tl.full({self._shape}, -1, tl.int64)")
        return best, place

    def step(self, loop: Block, reduction: Reduction, names: tuple[str, ...], mask: str) -> None:
        """Combine one more block of a row into the accumulator."""
        value = self._masked(loop, reduction, mask)
        if reduction.is_pair:
            best, place = names
            function = loop.kernel.function(self._pair_function(reduction))
            found = call(function, best, place, value, self._place(mask))
            loop.line(f"{best}, {place} = {found}")
            return
        (total,) = names
        loop.line(self._combined(loop, reduction, total, value))

    def finish(self, reduction: Reduction, names: tuple[str, ...]) -> None:
        """Combine the accumulator."""
        self._give(reduction, Text(names[0]), Text(names[1]) if len(names) > 1 else None)

    def parts(self, reduction: Reduction, names: tuple[str, ...]) -> tuple[Text, ...]:
        """Give the accumulator combined, for `merge` to go on with: each with its `part_dtypes`."""
        if not reduction.is_pair:
            return (Text(self._final(reduction, Text(names[0]), is_part=True)),)
        best, place = (self._outer.kernel.fresh(f"{n}_part") for n in names)
        self._outer.line(f"{best}, {place} = {self._pair(reduction, Text(names[0]), names[1])}")
        return Text(best), Text(place)

    def merge(self, reduction: Reduction, loads: Sequence[Text], mask: str) -> None:
        """Combine the parts of a row, which are loaded so."""
        first = loads[0]
        if reduction.dtype == bool_:
            first = infix(first, "!=", Text("0"))
        value = call("tl.where", mask, first, literal(identity(reduction)))
        place = call("tl.where", mask, loads[1], "-1") if reduction.is_pair else None
        self._give(reduction, value, place)

    def _combined(self, loop: Block, reduction: Reduction, total: str, value: Text) -> str:
        match reduction.reduced.combine:
            case "add" | "mean":
                return f"{total} += {value}"
            case "mul":
                return f"{total} *= {value}"
            case "and":
                return f"{total} = {total} & {value.inside(4)}"
            case "or":
                return f"{total} = {total} | {value.inside(2)}"
            case _:
                return f"{total} = {call(self._extreme(loop, reduction), total, value)}"

    def _extreme(self, block: Block, reduction: Reduction) -> str:
        name = "maximum" if reduction.is_largest else "minimum"
        return block.kernel.function(name) if is_float(reduction.dtype) else f"tl.{name}"

    def _masked(self, block: Block, reduction: Reduction, mask: str | None) -> Text:
        """Give the elements of a block, those outside the row as what changes nothing."""
        term = reduction.operand
        text = block.text(term)
        if term.op == "const":
            text = call("tl.full", "[]", text, type_text(reduction.dtype))
        if mask is None:
            return call("tl.broadcast_to", text, self._shape)
        return call("tl.where", mask, text, literal(identity(reduction)))

    def _place(self, mask: str | None) -> Text:
        place = Text(f"{self._coordinate}.to(tl.int64)")
        if mask is not None:
            place = call("tl.where", mask, place, "-1")
        return call("tl.broadcast_to", place, self._shape)

    def _pair_function(self, reduction: Reduction) -> str:
        return "first_largest" if reduction.is_largest else "first_smallest"

    def _give(self, reduction: Reduction, value: Text, place: Text | None) -> None:
        """Combine a block along the row, and say how the results are written from there on."""
        if place is not None:
            self._give_pair(reduction, value, place)
            return
        assert reduction.value is not None
        name = self._named(reduction, reduction.value, "")
        self._outer.line(f"{name} = {self._final(reduction, value)}")

    def _final(self, reduction: Reduction, value: Text, *, is_part: bool = False) -> str:
        truth = "" if is_part else " != 0"
        match reduction.reduced.combine:
            case "mean" if not is_part:
                return f"tl.sum({value}, {self._axis}) / {self._count.inside(7)}"
            case "add" | "mean":
                return f"tl.sum({value}, {self._axis})"
            case "and":
                return f"tl.min({value.atom}.to(tl.int32), {self._axis}){truth}"
            case "or":
                return f"tl.max({value.atom}.to(tl.int32), {self._axis}){truth}"
            case "mul":
                function = self._outer.kernel.function("times")
                return f"tl.reduce({value}, {self._order}, {function}{self._kept})"
            case _ if is_float(reduction.dtype):
                function = self._extreme(self._outer, reduction)
                return f"tl.reduce({value}, {self._order}, {function}{self._kept})"
            case _ if reduction.is_largest:
                return f"tl.max({value}, {self._axis})"
            case _:
                return f"tl.min({value}, {self._axis})"

    @property
    def _order(self) -> str:
        return self._axis[0]

    @property
    def _kept(self) -> str:
        return self._axis[1:]

    def _give_pair(self, reduction: Reduction, value: Text, place: Text) -> None:
        assert reduction.position is not None
        position = self._named(reduction, reduction.position, "_position")
        best = (
            self._outer.kernel.fresh(f"{reduction.reduced.var.name}_best")
            if reduction.value is None
            else self._named(reduction, reduction.value, "")
        )
        self._outer.line(f"{best}, {position} = {self._pair(reduction, value, str(place))}")

    def _pair(self, reduction: Reduction, value: Text, place: str) -> str:
        function = self._outer.kernel.function(self._pair_function(reduction))
        full = call("tl.broadcast_to", value, self._shape)
        return f"tl.reduce(({full}, {place}), {self._order}, {function}{self._kept})"

    def _named(self, reduction: Reduction, result: Term, suffix: str) -> str:
        span = reduction.reduced.var.span
        if comment := self._outer.kernel.comment(span):
            self._outer.line(comment)
        name = self._outer.kernel.fresh(f"{reduction.reduced.var.name}{suffix}")
        self._outer.put(result, Text(name))
        return name
