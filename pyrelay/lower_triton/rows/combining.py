"""How elements combine along a row: the text of each kind of reduction.

A block of a row combines at once (`whole`), or each block of a loop is combined into accumulators
that are as large as a block (`start`, `step`), which combine at the end (`finish`), or into parts
(`parts`) that another kernel goes on with. Elements beyond the end of the row do not count.
Reductions that are made online (`online`) keep accumulators relative to those of their leader.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final, final

from ...ir.types import is_float
from ...kernels.plans.reductions import Deviations, Exponentials, Reduction, identity
from ...kernels.plans.terms import Term
from ...kernels.plans.text import Text, call, infix
from ..block import Block
from ..expressions import literal, type_text


@final
class Row:
    """Where reductions are written: the block of elements, and how a row of it is combined."""

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
        self._names: Final[dict[Reduction, tuple[str, ...]]] = {}
        self._written: Final[dict[Block, str]] = {}

    def whole(self, reduction: Reduction, mask: str | None) -> None:
        """Combine a row that is one block."""
        value = self._masked(self._outer, reduction, mask)
        if reduction.is_pair:
            self._give_pair(reduction, value, self._places(self._outer, mask))
        else:
            self._give(reduction, self._final(reduction, value))

    def start(self, reductions: Sequence[Reduction]) -> None:
        """Make the accumulators of a row that takes several blocks."""
        for reduction in reductions:
            name, dtype = reduction.reduced.var.name, type_text(reduction.dtype)
            names = [self._full(f"{name}_block", literal(identity(reduction)), dtype)]
            if reduction.is_pair:
                names.append(self._full(f"{name}_place", "-1", "tl.int64"))
            if _is_shifted(reduction, reductions):
                names.append(self._full(f"{name}_shift", "0.0", dtype))
            self.hold(reduction, names)

    def _full(self, wish: str, value: Text | str, dtype: str) -> str:
        name = self._outer.kernel.fresh(wish)
        self._outer.line(f"{name} = tl.full({self._shape}, {value}, {dtype})")
        return name

    def hold(self, reduction: Reduction, names: Sequence[str]) -> None:
        """Take the names of blocks as the accumulators of a reduction."""
        self._names[reduction] = tuple(names)

    def step(
        self, loop: Block, reductions: Sequence[Reduction], mask: str | None, is_first: str
    ) -> None:
        """Combine one more block of a row into the accumulators; `is_first` holds for the first."""
        for reduction in reductions:
            followers = _followers(reduction, reductions)
            match followers:
                case _ if reduction.online is not None:
                    continue  # is written with its leader
                case [Reduction(online=Deviations()) as squares]:
                    self._step_deviations(loop, reduction, squares, mask, is_first)
                case _ if reduction.is_pair:
                    self._step_pair(loop, reduction, mask)
                case _:
                    self._step(loop, reduction, followers, mask)

    def _step(
        self, loop: Block, reduction: Reduction, sums: Sequence[Reduction], mask: str | None
    ) -> None:
        """Combine a block into one accumulator, and into the sums that are relative to it."""
        value = self._masked(loop, reduction, mask)
        (total,) = self._names[reduction]
        if sums and not value.text.isidentifier():
            name = loop.kernel.fresh(f"{reduction.reduced.var.name}_next")
            loop.line(f"{name} = {value}")
            value = Text(name)
        for relative in sums:
            self._step_exponentials(loop, relative, total, value, mask)
        loop.line(self._combined(loop, reduction, total, value))

    def _step_pair(self, loop: Block, reduction: Reduction, mask: str | None) -> None:
        value = self._masked(loop, reduction, mask)
        best, place = self._names[reduction]
        function = loop.kernel.function(self._pair_function(reduction))
        places = self._places(loop, mask)
        loop.line(f"{best}, {place} = {call(function, best, place, value, places)}")

    def _step_exponentials(
        self, loop: Block, reduction: Reduction, largest: str, value: Text, mask: str | None
    ) -> None:
        assert isinstance(reduction.online, Exponentials)
        (total,) = self._names[reduction]
        weight = Text("1.0")
        if reduction.online.weight is not None:
            weight = loop.text(reduction.online.weight)
            weight = weight if mask is None else call("tl.where", mask, weight, "0.0")
        self._comment(reduction, loop)
        function = loop.kernel.function("add_exponential")
        loop.line(f"{total} = {call(function, total, largest, value, weight)}")

    def _step_deviations(
        self, loop: Block, reduction: Reduction, squares: Reduction, mask: str | None, is_first: str
    ) -> None:
        (total, shift), (square,) = self._names[reduction], self._names[squares]
        value = loop.text(reduction.operand)
        function = loop.kernel.function("add_shifted")
        added = call(function, shift, total, square, value, is_first, mask or "True")
        self._comment(squares, loop)
        loop.line(f"{shift}, {total}, {square} = {added}")

    def finish(self, reductions: Sequence[Reduction], taken: str) -> None:
        """Combine the accumulators; each element of one stands for `taken` elements of the row."""
        taken = self._moments(reductions, taken)
        for reduction in reductions:
            names = self._names[reduction]
            if reduction.is_pair:
                self._give_pair(reduction, Text(names[0]), Text(names[1]))
            else:
                self._give(reduction, self._online(reduction, reductions, taken))

    def _moments(self, reductions: Sequence[Reduction], taken: str) -> str:
        """Make means and squares around them of shifted sums; return the name of `taken`."""
        shifted = [r for r in reductions if _is_shifted(r, reductions)]
        if not shifted:
            return taken
        count = self._outer.kernel.fresh("taken")
        self._outer.line(f"{count} = {taken}")
        for reduction in shifted:
            total, *shift = self._names[reduction]
            (squares,) = _followers(reduction, reductions)
            (square,) = self._names[squares]
            if shift:  # else another kernel has done it
                function = self._outer.kernel.function("moments")
                made = call(function, *shift, total, square, count)
                self._outer.line(f"{total}, {square} = {made}")
        return count

    def _online(self, reduction: Reduction, reductions: Sequence[Reduction], taken: str) -> str:
        """Return the text of an accumulator combined with that of its leader."""
        total, *_ = self._names[reduction]
        match reduction.online:
            case Exponentials(leader, shift, _):
                (largest,) = self._names[leader]
                power = self._outer.kernel.function("exp")
                less = infix(Text(largest), "-", self._outer.text(shift))
                return self._final(reduction, infix(Text(total), "*", call(power, less)))
            case Deviations(leader):
                assert leader.value is not None
                mean, *_ = self._names[leader]
                function = self._outer.kernel.function("squares_around")
                around = self._outer.text(leader.value)
                return self._final(reduction, call(function, total, mean, taken, around))
            case None if _is_shifted(reduction, reductions):
                return self._final(reduction, infix(Text(total), "*", Text(taken)))
            case None:
                return self._final(reduction, Text(total))

    def parts(
        self, reductions: Sequence[Reduction], taken: str, count: str
    ) -> dict[Reduction, tuple[Text, ...]]:
        """Return the accumulators of `count` elements combined, for another kernel to hold: each
        with its `part_dtypes`."""
        taken = self._moments(reductions, taken)
        found: dict[Reduction, tuple[Text, ...]] = {}
        for reduction in reductions:
            if reduction.is_pair:
                best, place = (
                    self._outer.kernel.fresh(f"{n}_part") for n in self._names[reduction]
                )
                pair = self._pair(reduction, *map(Text, self._names[reduction]))
                self._outer.line(f"{best}, {place} = {pair}")
                found[reduction] = Text(best), Text(place)
                continue
            part = self._part(reduction, reductions, found, taken, count)
            name = self._outer.kernel.fresh(f"{reduction.reduced.var.name}_part")
            self._outer.line(f"{name} = {part}")
            found[reduction] = (Text(name),)
        return found

    def _part(
        self,
        reduction: Reduction,
        reductions: Sequence[Reduction],
        found: dict[Reduction, tuple[Text, ...]],
        taken: str,
        count: str,
    ) -> str:
        total, *_ = self._names[reduction]
        function = self._outer.kernel.function
        match reduction.online:
            case Exponentials(leader):
                largest, new = self._names[leader][0], found[leader][0]
                value = call(function("relative_to"), total, largest, new)
                return self._final(reduction, value, is_part=True)
            case Deviations(leader):
                mean, new = self._names[leader][0], found[leader][0]
                value = call(function("squares_around"), total, mean, taken, new)
                return self._final(reduction, value, is_part=True)
            case None if _is_shifted(reduction, reductions):
                value = infix(Text(total), "*", Text(taken))
                return f"{self._final(reduction, value, is_part=True)} / ({count})"
            case None:
                return self._final(reduction, Text(total), is_part=True)

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
        """Return the elements of a block, those outside the row as what changes nothing."""
        term = reduction.operand
        text = block.text(term)
        if term.op == "const":
            text = call("tl.full", "[]", text, type_text(reduction.dtype))
        is_whole = len(block.axes_of(term)) == len(block.shape)
        if mask is not None:
            text = call("tl.where", mask, text, literal(identity(reduction)))
            is_whole = is_whole or not reduction.is_pair  # pairs must be as large as their places
        return text if is_whole else call("tl.broadcast_to", text, self._shape)

    def _places(self, block: Block, mask: str | None) -> Text:
        """Return the name of the places of a block, -1 outside the row; they are written once."""
        if block not in self._written:
            place = Text(f"{self._coordinate}.to(tl.int64)")
            if mask is not None:
                place = call("tl.where", mask, place, "-1")
            name = block.kernel.fresh("places")
            if self._axis != "0":
                place = call("tl.broadcast_to", place, self._shape)
            block.line(f"{name} = {place}")
            self._written[block] = name
        return Text(self._written[block])

    def _pair_function(self, reduction: Reduction) -> str:
        return "first_largest" if reduction.is_largest else "first_smallest"

    def _give(self, reduction: Reduction, text: str) -> None:
        """Write a combined row, and say how it is written from there on."""
        assert reduction.value is not None
        self._comment(reduction, self._outer)
        name = self._named(reduction, reduction.value, "")
        self._outer.line(f"{name} = {text}")

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
        self._comment(reduction, self._outer)
        position = self._named(reduction, reduction.position, "_position")
        best = (
            self._outer.kernel.fresh(f"{reduction.reduced.var.name}_best")
            if reduction.value is None
            else self._named(reduction, reduction.value, "")
        )
        self._outer.line(f"{best}, {position} = {self._pair(reduction, value, place)}")

    def _pair(self, reduction: Reduction, value: Text, place: Text) -> str:
        function = self._outer.kernel.function(self._pair_function(reduction))
        return f"tl.reduce(({value}, {place}), {self._order}, {function}{self._kept})"

    def _named(self, reduction: Reduction, result: Term, suffix: str) -> str:
        name = self._outer.kernel.fresh(f"{reduction.reduced.var.name}{suffix}")
        self._outer.put(result, Text(name))
        return name

    def _comment(self, reduction: Reduction, block: Block) -> None:
        if comment := self._outer.kernel.comment(reduction.reduced.var.span):
            block.line(comment)


def _followers(reduction: Reduction, reductions: Iterable[Reduction]) -> list[Reduction]:
    """Return the reductions that are made online with one."""
    return [r for r in reductions if r.online is not None and r.online.leader is reduction]


def _is_shifted(reduction: Reduction, reductions: Iterable[Reduction]) -> bool:
    """Return whether a mean is accumulated as a sum of differences."""
    return any(isinstance(r.online, Deviations) for r in _followers(reduction, reductions))
