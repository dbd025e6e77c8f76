"""C code under one indentation, whose values are vectors: the lanes are places along one axis.

A value that does not move along that axis is a vector of equal lanes, so every value has one C
type. Where the axis ends before a vector does, the last lanes hold no places: loads do not read
there and stores do not write there, and what is computed for them is never used.

Lines may stand for several vectors, one behind the other: statement by statement, so that a
processor has something to do while results are on their way. A value is then an array `x[u]`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import reduce
from typing import Final, final

from ...ir.dims import ONE, ZERO, Dim, DimOp
from ...ir.types import DType, bool_, float32, float64, int32, int64, is_float
from ...kernels.calling import Number, Read
from ...kernels.places import step_along
from ...kernels.plans.code import Axis, CodeBlock
from ...kernels.plans.supplier import Store
from ...kernels.plans.terms import Access, Term, is_half
from ...kernels.plans.text import Text, call, infix, negative
from ..math import element_name, element_of
from .emit import KernelText
from .picked import picked, places_apart

INFIX: Final = {"add": "+", "sub": "-", "mul": "*", "div": "/"} | {
    op: op for op in ("&", "|", "^", "<<", ">>")
}
"""Operations that are written between their operands."""

_MOST_SHARING: Final = 16
"""Places that more lanes share are gathered."""

_COMPARISONS: Final = frozenset(("eq", "ne", "lt", "le", "gt", "ge"))


@final
class Block(CodeBlock):
    """Code under one indentation: `lane` is the coordinate along which lanes lie, None where every
    value is one for all lanes."""

    def __init__(
        self,
        kernel: KernelText,
        axes: Sequence[Axis],
        lane: str | None,
        outer: Block | None = None,
        loop: str | None = None,
    ) -> None:
        super().__init__(kernel, axes, outer, loop)
        self.kernel: Final = kernel
        self.lane: Final = lane
        self.at_once: Final = 1 if lane is None else kernel.at_once
        self._checked: Final[set[tuple[Term, Dim]]] = set()

    def assigned(self, name: str, text: Text, term: Term) -> str:
        """Return the line that names the value of a term."""
        assert term.dtype is not None
        return self.declared(self.kernel.vector(term.dtype), name, text)

    def declared(self, vector: str, name: str, text: Text) -> str:
        """Return the line that declares a value."""
        if self.at_once > 1:
            return f"LET_{self.at_once} ({vector}, {name}, {text});"
        return f"{vector} {name} = {text};"

    def reference(self, name: str) -> Text:
        """Return how a value is written that a line here has named."""
        return Text(f"{name}[u]" if self.at_once > 1 else name)

    def each(self, *lines: str) -> None:
        """Add statements that are done for each of the vectors."""
        if self.at_once == 1:
            self.lines.extend(lines)
        elif len(lines) == 1:
            self.line(f"EACH_{self.at_once} ({lines[0]})")
        else:
            self.lines.extend((f"EACH_{self.at_once} (", *(f"    {line}" for line in lines), ")"))

    def store(self, store: Store) -> None:
        """Write a store of the places of a vector."""
        pointer = self.kernel.argument(store.target, store.name)
        assert store.term.dtype is not None
        value = self.typed(store.term, store.term.dtype)
        step, dtype = self.step(store.at), store.target.dtype
        if step is None:
            self._store_apart(pointer, store, value)
            return
        where = self.behind(pointer, store.at)
        if step in (ZERO, ONE):
            function = self.kernel.function("store_part", dtype)
            self.each(f"{call(function, where, value, 'n' if step == ONE else '1')};")
            return
        function = self.kernel.function("store_strided_part", dtype)
        stride = self.kernel.dims.whole(step, self.scalar)
        self.each(f"{call(function, where, stride, value, 'n')};")

    def reload(self, store: Store) -> None:
        """Write the load of a term that has been stored."""
        pointer, dtype = self.kernel.argument(store.target, store.name), store.target.dtype
        where, step = self.behind(pointer, store.at), self.step(store.at)
        if step == ONE:
            text = call(self.kernel.function("load_part", dtype), where, "n")
        elif step is not None:
            stride = self.kernel.dims.whole(step, self.scalar)
            text = call(self.kernel.function("load_strided_part", dtype), where, stride, "n")
        else:
            text = call(self.kernel.function("gather", dtype), pointer, self.place_vector(store.at))
        name = self.kernel.fresh("kept")
        self.line(self.assigned(name, text, store.term))
        self.put(store.term, self.reference(name))

    def _store_apart(self, pointer: str, store: Store, value: Text) -> None:
        """Write a store of places that are not evenly apart."""
        places, stored = self.kernel.fresh("places"), self.kernel.fresh("stored")
        vector = f"{self.kernel.place_element}x{self.kernel.lanes}"
        self.each(
            f"{vector} {places} = {self.place_vector(store.at)};",
            f"{element_of(store.target.dtype).c} {stored}[{self.kernel.lanes}];",
            f"{call(self.kernel.function('store', store.target.dtype), stored, value)};",
            "for (int lane = 0; lane < n; lane++)",
            f"    {pointer}[{places}[lane]] = {stored}[lane];",
        )

    def scatter(self, store: Store, *, adds: bool) -> None:
        """Write the addition of the places of a vector to what is stored, or their store."""
        pointer = self.kernel.argument(store.target, store.name)
        dtype = store.target.dtype
        for name in self.kernel.terms.found(store.at):
            self.text(self.kernel.terms.coordinates[name][0])
        inside = self._inside(store.at, ())
        value = self.typed(store.term, dtype)
        if self.step(store.at) == ONE:
            where = self.behind(pointer, store.at)
            if adds:
                load = call(self.kernel.function("load_part", dtype), where, "n")
                value = infix(load, "+", value)
            self.line(f"{call(self.kernel.function('store_part', dtype), where, value, 'n')};")
            return
        places, added = self.kernel.fresh("places"), self.kernel.fresh("added")
        vector = f"{self.kernel.place_element}x{self.kernel.lanes}"
        self.line(f"{vector} {places} = {self.place_vector(store.at)};")
        self.line(f"{self.kernel.vector(dtype)} {added} = {value};")
        asked = "" if inside is None else f"if ({inside.atom}[lane]) "
        count = "n" if self.lane is not None else "1"
        self.line(f"for (int lane = 0; lane < {count}; lane++)")
        self.line(f"    {asked}{pointer}[{places}[lane]] {'+=' if adds else '='} {added}[lane];")

    # Places.

    def scalar(self, name: str) -> Text | None:
        """Return the text of a coordinate as one number: that of the first lane."""
        bound = self.kernel.terms.coordinates.get(name)
        if bound is None:
            return self.coordinate(name)
        found = self.text(bound[0])
        return Text(f"{found.atom}[0]")

    def lanes(self, name: str) -> Text | None:
        """Return the text of a coordinate as a vector, or as a number for all lanes."""
        if name == self.lane:
            text = self.coordinate(name)
            assert text is not None
            numbers = f"relay_numbers_{self.kernel.place_element}x{self.kernel.lanes}()"
            return Text(f"({numbers} + ({self.kernel.place_c}){text.inside(6)})")
        bound = self.kernel.terms.coordinates.get(name)
        if bound is not None:
            return self._as_place(bound[0])
        text = self.coordinate(name)
        return None if text is None else Text(f"({self.kernel.place_c}){text.atom}", 7)

    def _as_place(self, term: Term) -> Text:
        """Return the text of an int64 value as a vector of places."""
        text = self.text(term)
        if self.kernel.place_element == "i64":
            return text
        return call(f"relay_cast_{self.kernel.place_element}_i64x{self.kernel.lanes}", text)

    def step(self, place: Dim) -> Dim | None:
        """Return how far apart the places of neighbouring lanes lie; None where that differs."""
        for name in self.kernel.terms.found(place):
            if self.moves(self.kernel.terms.coordinates[name][0]):
                return None
        return self.linear_step(place)

    def linear_step(self, place: Dim) -> Dim | None:
        """Return how far apart the places of neighbouring lanes lie where computed places are one
        for all lanes."""
        if self.lane is None or self.lane not in place.names():
            return ZERO
        return step_along(place, self.lane)

    def places_apart(self, place: Dim) -> tuple[int, ...] | None:
        """Return how far behind the first the places of the lanes lie, where a vector is a group of
        rows and its places are not evenly apart; None otherwise."""
        row = self.kernel.row
        if row is None or row > self.kernel.lanes or list(self.kernel.terms.found(place)):
            return None
        if self.linear_step(place) is not None:
            return None
        return places_apart(self.kernel, place, self.lane, row)

    def _shared(self, place: Dim) -> tuple[str, Text] | None:
        """Return by how many neighbouring lanes a place is shared, and how many of the lanes that
        share the first one lie before; None unless places are such and follow each other."""
        if self.lane is None or list(self.kernel.terms.found(place)):
            return None
        moving = [t for t in place.terms if self.lane in Dim((t,)).names()]
        match moving:
            case [((DimOp("floordiv", lane, count),), 1)]:
                number = count.constant
            case _:
                return None
        if number is None or not 1 < number <= _MOST_SHARING or self.linear_step(lane) != ONE:
            return None
        return str(number), self.kernel.dims.whole(lane % number, self.scalar)

    def moves(self, term: Term) -> bool:
        """Return whether the lanes of a value differ."""
        return self.lane in self.axes_of(term)

    def behind(self, pointer: str, place: Dim) -> Text:
        """Return the address of the place of the first lane."""
        text = self.kernel.dims.whole(place, self.scalar)
        return Text(pointer) if text.text == "0" else infix(Text(pointer), "+", text)

    def place_vector(self, place: Dim) -> Text:
        """Return the places of all lanes."""
        text = self.kernel.wide_dims.whole(place, self.lanes)
        vector = f"{self.kernel.place_element}x{self.kernel.lanes}"
        return Text(f"(({vector}){{0}} + {text.inside(6)})")

    # Expressions.

    def compute(self, term: Term) -> None:
        """Compute a term here; what it needs has been. A narrow place is computed where it is
        converted."""
        if term in self.kernel.narrow:
            self.texts[term] = self.expression(term)
        else:
            super().compute(term)

    def expression(self, term: Term) -> Text:
        """Return the text of a term."""
        match term.op:
            case "const":
                return self.constant(term.detail, term.dtype or float32)
            case "size":
                return self._size(term)
            case "load":
                return self._load(term)
            case "value":
                return self._value(term)
            case "cast":
                return self._cast(term)
            case "neg":
                return negative(self.text(term.operands[0]))
            case "checked":
                return self._checked_value(term)
            case op if op in INFIX:
                return self._infix(term)
            case _:
                return self._call(term)

    def typed(self, term: Term, dtype: DType) -> Text:
        """Return a vector of a dtype with the values of a term."""
        if term.op == "const":
            return self.constant(term.detail, dtype)
        if term.dtype == dtype or term.dtype is None:
            return self.text(term)
        return self._converted(self.text(term), term.dtype, dtype)

    def _converted(self, text: Text, source: DType, to: DType) -> Text:
        return call(self.kernel.function(f"cast_{element_name(to)}", source), text)

    def constant(self, value: float, dtype: DType) -> Text:
        """Return a number as a vector of a dtype."""
        vector = self.kernel.vector(dtype)
        if dtype == bool_:
            return Text(f"~({vector}){{0}}" if value else f"({vector}){{0}}")
        return call(self.kernel.function("splat", dtype), literal(value, dtype))

    def _beside(self, term: Term, other: Term, dtype: DType) -> Text:
        """Return an operand of an operation between operands; a number stays one beside a
        vector."""
        is_number = term.op == "const" and other.op != "const" and dtype in (float32, float64)
        return literal(term.detail, dtype) if is_number else self.typed(term, dtype)

    def _infix(self, term: Term) -> Text:
        a, b = term.operands
        assert term.dtype is not None
        left, right = self._beside(a, b, term.dtype), self._beside(b, a, term.dtype)
        return infix(left, INFIX[term.op], right)

    def _call(self, term: Term) -> Text:
        op, operands = term.op, term.operands
        assert term.dtype is not None
        if op == "where":
            condition, *chosen = operands
            given = [self.typed(condition, bool_), *(self.typed(t, term.dtype) for t in chosen)]
            return call(self.kernel.function(op, term.dtype), *given)
        dtype = self._common(operands) if op in _COMPARISONS else term.dtype
        return call(self.kernel.function(op, dtype), *(self.typed(t, dtype) for t in operands))

    def _common(self, operands: Sequence[Term]) -> DType:
        dtypes = [t.dtype for t in operands if t.dtype is not None]
        return max(dtypes, key=lambda d: (d.kind.value, d.bits), default=float32)

    def _size(self, term: Term) -> Text:
        dim = term.detail
        assert isinstance(dim, Dim)
        return self.place_of(dim)

    def place_of(self, dim: Dim) -> Text:
        """Return a dim as an int64 vector."""
        if self.step(dim) != ZERO:
            text = self.place_vector(dim)
            if self.kernel.place_element == "i64":
                return text
            return call(f"relay_cast_i64_{self.kernel.place_element}x{self.kernel.lanes}", text)
        return call(self.kernel.function("splat", int64), self.kernel.dims.whole(dim, self.scalar))

    def _load(self, term: Term) -> Text:
        access = term.detail
        assert isinstance(access, Access)
        pointer = self._pointer(access)
        asked = () if self.kernel.is_inside(access) else term.operands
        inside = self._inside(access.offset, asked)
        function = self.kernel.function
        if inside is None and (apart := self.places_apart(access.offset)) is not None:
            assert self.lane is not None
            first = self.kernel.simplified(access.offset.rename({self.lane: ZERO}))
            return picked(self.kernel, access.dtype, self.behind(pointer, first), apart)
        if (shared := self._shared(access.offset)) is not None:
            where, chosen = self.behind(pointer, access.offset), "n" if inside is None else inside
            verb = "load_repeated_part" if inside is None else "load_repeated_where"
            return call(function(verb, access.dtype), where, *shared, chosen)
        if inside is not None:
            place = self.place_vector(access.offset)
            return call(function("gather_where", access.dtype), pointer, place, inside)
        where, step = self.behind(pointer, access.offset), self.step(access.offset)
        assert step is not None
        if step == ONE:
            return call(function("load_part", access.dtype), where, "n")
        if step != ZERO:
            stride = self.kernel.dims.whole(step, self.scalar)
            return call(function("load_strided_part", access.dtype), where, stride, "n")
        if access.dtype == bool_ or is_half(access.dtype):
            return call(function("load_strided", access.dtype), where, "0")
        value = f"{where.atom}[0]" if where.text == pointer else f"*({where})"
        return call(function("splat", access.dtype), value)

    def _pointer(self, access: Access) -> str:
        """Return the address of what a load reads from."""
        if isinstance(access.operand, str):
            return access.operand
        wish = f"{self.kernel.operand_name(access.operand)}_at"
        return self.kernel.argument(Read(access.operand, access.dtype), wish)

    def address(self, access: Access) -> Text:
        """Return the address of the place of the first lane that a load reads."""
        return self.behind(self._pointer(access), access.offset)

    def _inside(self, offset: Dim, asked: Sequence[Term]) -> Text | None:
        """Return the mask of the lanes that a load reads, None for all that are places: those asked
        for. A computed place that is asked for and does not exist fails the run."""
        asks = [self.typed(m, bool_) for m in asked]
        ways = self.step(offset), self._shared(offset), self.places_apart(offset)
        is_regular = any(way is not None for way in ways)
        is_single = not asks and is_regular
        places = [self.kernel.terms.coordinates[n] for n in self.kernel.terms.found(offset)]
        for place, size in places:
            self.text(place)
            if is_single:
                home = self._home(place)
                assert isinstance(home, Block)
                home.check(place, size)
        if is_single:
            return None
        if self.lane is not None:
            asks.append(self.existing)
        if not asks:
            return None
        wanted = self._named("wanted", reduce(lambda a, b: infix(a, "&", b), asks))
        for place, size in places:
            self._fail(infix(wanted, "&", self._outside(place, size)))
        return wanted

    def _checked_value(self, term: Term) -> Text:
        """Return the text of a value, after the check that it asks for."""
        value, *faults = term.operands
        masks = [self.typed(fault, bool_) for fault in faults]
        if self.lane is not None:
            masks.append(self.existing)
        self._fail(reduce(lambda a, b: infix(a, "&", b), masks))
        return self.text(value)

    def check(self, place: Term, size: Dim) -> None:
        """Fail the run unless a computed place, one for all lanes, exists."""
        if (place, size) not in self._checked:
            self._checked.add((place, size))
            self._fail(self._outside(place, size))

    def _outside(self, place: Term, size: Dim) -> Text:
        text, splat = self.text(place), self.kernel.function("splat", int64)
        limit = call(splat, self.kernel.dims.size(size))
        low = call(self.kernel.function("lt", int64), text, call(splat, "0"))
        high = call(self.kernel.function("ge", int64), text, limit)
        return Text(f"({low} | {high})")

    @property
    def existing(self) -> Text:
        """The mask of the lanes that are places."""
        of = f"{self.kernel.place_element}x{self.kernel.lanes}"
        return call(f"relay_lt_{of}", f"relay_numbers_{of}()", call(f"relay_splat_{of}", "n"))

    def _named(self, wish: str, mask: Text) -> Text:
        name = self.kernel.fresh(wish)
        self.line(f"{self.kernel.vector(bool_)} {name} = {mask};")
        return Text(name)

    def _fail(self, mask: Text) -> None:
        """End the loop, and note in the run that it failed, where a mask has a lane."""
        self.kernel.may_fail = True
        bits = call(self.kernel.function("bits", bool_), mask)
        self.line(f"if ({bits}) {{ args.run->failed = 1; return; }}")

    def _value(self, term: Term) -> Text:
        assert term.dtype is not None
        operand = term.detail
        wish = f"{self.kernel.operand_name(operand)}_value"
        name = self.kernel.argument(Number(operand, term.dtype), wish)
        if term.dtype != bool_:
            return call(self.kernel.function("splat", term.dtype), name)
        vector = self.kernel.vector(bool_)
        return Text(f"(({vector}){{0}} - {name})")

    def _cast(self, term: Term) -> Text:
        assert term.dtype is not None
        (value,) = term.operands
        assert value.dtype is not None
        is_place = value.op == "size" and self.step(value.detail) != ZERO
        if is_place and term.dtype == int32 and self.kernel.place_element == "i32":
            return self.place_vector(value.detail)
        if not isinstance(term.detail, DType):
            return self.typed(value, term.dtype)
        # torch rounds what becomes a half in two steps, too
        return call(self.kernel.function("rounded", term.detail), self.typed(value, float32))


def literal(value: float, dtype: DType) -> Text:
    """Return a number as it is written in C, as one of a dtype."""
    if is_float(dtype):
        return _float(float(value), "f" if dtype == float32 else "")
    number = int(value)
    if dtype == int64:
        if number == -(2**63):
            return Text("INT64_MIN")
        text = Text(f"INT64_C({abs(number)})" if abs(number) >= _INT_END else str(abs(number)))
        return negative(text) if number < 0 else text
    if number == -_INT_END:
        return Text("INT32_MIN")
    return negative(Text(str(-number))) if number < 0 else Text(str(number))


_INT_END: Final = 2**31


def _float(value: float, suffix: str) -> Text:
    if math.isnan(value):
        return Text(f'__builtin_nan{suffix}("")')
    if math.isinf(value):
        text = Text(f"__builtin_inf{suffix}()")
    elif suffix and abs(value) > _FLOAT_END:
        text = Text("__builtin_inff()")
    else:
        text = Text(f"{abs(value)!r}{suffix}")
    return negative(text) if math.copysign(1.0, value) < 0 else text


_FLOAT_END: Final = 3.4028235677973366e38
"""Numbers from here on round to infinity in float32."""
