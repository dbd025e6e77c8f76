"""Data whose structure differs between the elements of a batch.

Such data are *mixed*: a tuple with a part for each constructor, which is empty or has the positions
of the elements that the constructor made, in order, and its fields, batched over these elements
alone. Fields of data are mixed again, so a list is as deep as the longest of the elements, and
level `n` holds the elements of which the list has more than `n`. An operator is called once a part.

What is batched otherwise is a `Batch` (`data.py`): one structure for all elements.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final, TypeAlias, final

from ...ir.dims import ZERO, Dim, DimVar
from ...ir.expr import Call, Function, Var
from ...ir.names import Names
from ...ir.types import AdtType, FnType, SizeType, TensorType, TupleType, Type, int64
from ...operators.builder import Builder, Value
from ...operators.host.failing import no_structure
from ...operators.primitive.arithmetic import minimum
from ...operators.primitive.compare import equal, greater
from ...operators.primitive.create import arange
from ...operators.primitive.gathering import index_select
from ...operators.primitive.index import set_at
from ...operators.primitive.join import cat, slice_along
from ...operators.primitive.sort import argsort, searchsorted
from ..deriving.leaves import skeleton
from .cases import Case, either, match_of, opened
from .data import Batches
from .forms import Forms
from .lanes import positions
from .masks import MIXED, Mask, is_any

if TYPE_CHECKING:
    from ...diagnostics.source import Span
    from ..deriving.store import Store

_Code: TypeAlias = Callable[[Builder, list[Value]], Value]


@final
class Mixtures:
    """The types of batched values of both kinds, and the functions on them, each defined once."""

    def __init__(self, store: Store) -> None:
        self.uniform: Final = Batches(store)
        self.forms: Final = Forms(store, self.uniform)
        self._store: Final = store
        self._functions: Final[dict[tuple[str, AdtType], str]] = {}

    # Values.

    def widened(self, value: Value, ty: Type, mask: Mask, wanted: Mask, count: Dim) -> Value:
        """Return a value with more of it batched."""
        if mask == wanted:
            return value
        if isinstance(ty, TupleType):
            assert isinstance(mask, tuple)
            assert isinstance(wanted, tuple)
            each = enumerate(zip(ty.fields, mask, wanted, strict=True))
            fields = [self.widened(value[i], t, m, w, count) for i, (t, m, w) in each]
            return value.builder.tuple(fields)
        value = self.uniform.repeated(value, ty, is_any(mask), count)
        if wanted is not MIXED:
            return value
        return self._applied("mix", value.builder, [value.builder.size(count), value], ty, (count,))

    def size_of_first(
        self, parts: Sequence[tuple[Value, Type, Mask]], builder: Builder, count: Dim
    ) -> Value:
        """Return the size of the batch by the first of some values of one structure that holds a
        tensor, -1 if none does."""
        return self.uniform.size_of_first(parts, builder, count)

    def uniform_of(self, value: Value, ty: Type, mask: Mask, count: Dim) -> Value:
        """Return a value whose data have one structure; elsewhere the program stops there."""
        if isinstance(ty, TupleType):
            assert isinstance(mask, tuple)
            each = enumerate(zip(ty.fields, mask, strict=True))
            fields = [self.uniform_of(value[i], t, m, count) for i, (t, m) in each]
            return value.builder.tuple(fields)
        if mask is not MIXED:
            return value
        size = value.builder.size(count)
        return self._applied("uniform", value.builder, [size, value], ty, (count,))

    def taken(self, value: Value, ty: Type, mask: Mask, places: Value, count: Dim) -> Value:
        """Return a value for the elements at some places, in order, among `count`, alone."""
        if isinstance(ty, TupleType):
            assert isinstance(mask, tuple)
            each = enumerate(zip(ty.fields, mask, strict=True))
            fields = [self.taken(value[i], t, m, places, count) for i, (t, m) in each]
            return value.builder.tuple(fields)
        if mask is not MIXED:
            return self.uniform.taken(value, ty, is_any(mask), places, count)
        return self._applied("take", value.builder, [places, value], ty, (places.shape[0],))

    def made(
        self, builder: Builder, ty: AdtType, constructor: str, values: Sequence[Value], count: Dim
    ) -> Value:
        """Return mixed data that one constructor makes for all elements; `values` may differ."""
        every = builder.call(arange, (), {"end": count})
        return self._with_part(builder, ty, constructor, [every, *values])

    def blank(self, builder: Builder, ty: Type, count: Dim) -> Value:
        """Return a value for `count` elements, to be written over: zeros, and empty parts."""
        match ty:
            case TupleType(fields):
                return builder.tuple([self.blank(builder, f, count) for f in fields])
            case AdtType() if self.forms.differing(ty) is MIXED:
                return self._with_part(builder, ty, None, [])
            case AdtType(name):
                (constructor,) = self._store.adts[name].constructors
                fields = self.forms.fields(ty, constructor.name)
                values = [self.blank(builder, f, count) for f in fields]
                whole = self.forms.type(ty, self.forms.full(ty), count)
                return self._record(builder, values, whole)
            case SizeType(dim):
                return builder.size(dim)
            case _:
                return builder.zeros(self.forms.type(ty, self.forms.full(ty), count))

    def merged(self, whole: Value, part: Value, ty: Type, places: Value, count: Dim) -> Value:
        """Return a value for `count` elements in which those at some places, in order, are those of
        another. What `whole` has there is blank."""
        builder = whole.builder
        match ty:
            case TupleType(fields):
                each = enumerate(fields)
                return builder.tuple(
                    [self.merged(whole[i], part[i], t, places, count) for i, t in each]
                )
            case AdtType() if self.forms.differing(ty) is MIXED:
                every = builder.call(arange, (), {"end": count})
                sizes = (count, places.shape[0])
                return self._applied("merge", builder, [every, whole, places, part], ty, sizes)
            case AdtType():
                types = self.forms.fields(ty, self._store.adts[ty.name].constructors[0].name)
                sides = zip(self._fields(whole), self._fields(part), types, strict=True)
                values = [self.merged(w, p, t, places, count) for w, p, t in sides]
                return self._record(builder, values, whole.ty)
            case SizeType():
                return whole
            case _:
                at = builder.tuple((places,))
                return set_at(whole, at, part, spec=(("int", 0),))

    def _fields(self, record: Value) -> list[Value]:
        assert isinstance(record.ty, AdtType)
        definition = self._store.adts[record.ty.name]
        types = self.forms.fields(record.ty, definition.constructors[0].name)
        return opened(record, definition, types)

    def _record(self, builder: Builder, values: list[Value], whole: Type) -> Value:
        """Return a record whose type for the batch is `whole`."""
        assert isinstance(whole, AdtType)
        name = self._store.adts[whole.name].constructors[0].name
        return builder.construct(whole.name, name, values, whole)

    def _with_part(
        self, builder: Builder, ty: AdtType, constructor: str | None, fields: Sequence[Value]
    ) -> Value:
        """Return mixed data of which one part has elements."""
        definition = self._store.adts[ty.name]
        parts: list[Value] = []
        types = self.forms.part_types(*skeleton(ty))
        for each, part in zip(definition.constructors, types, strict=True):
            parts.append(self._part(builder, part, fields if each.name == constructor else None))
        return builder.tuple(parts)

    def _part(self, builder: Builder, ty: AdtType, fields: Sequence[Value] | None) -> Value:
        some, none = self._store.adts[ty.name].constructors
        name = none.name if fields is None else some.name
        return builder.construct(ty.name, name, fields or (), ty)

    # Matches.

    def part_of(self, value: Value, ty: AdtType, constructor: str) -> Value:
        """Return the part of mixed data that a constructor has."""
        return value[self._store.adts[ty.name].tag(constructor)]

    def part_match(self, part: Value, ty: AdtType, name: str, some: _Code, none: _Code) -> Value:
        """Return the value computed from the positions and fields of a part, or for an empty
        one."""
        assert isinstance(part.ty, AdtType)
        builder = part.builder
        count = Dim.of(builder.names.fresh("elements"))
        cases: list[Case] = [(self.forms.part_fields(ty, name, count), some), ((), none)]
        return builder.bind(match_of(part, self._store.adts[part.ty.name], cases), "part")

    # Functions on mixed data.

    def _applied(
        self, kind: str, builder: Builder, values: Sequence[Value], ty: Type, sizes: tuple[Dim, ...]
    ) -> Value:
        assert isinstance(ty, AdtType)
        general, dims = skeleton(ty)
        name = self._function(kind, general, builder.span)
        mask = self.forms.full(ty) if kind == "uniform" else MIXED
        result = self.forms.type(ty, mask, sizes[0])
        return builder.apply(name, values, result, (*dims, *sizes))

    def _function(self, kind: str, general: AdtType, span: Span) -> str:
        key = (kind, general)
        if key not in self._functions:
            name = self._functions[key] = self._store.function_name(f"{general.name}_{kind}")
            self._store.functions[name] = self._defined(kind, general, name, span)
        return self._functions[key]

    def _defined(self, kind: str, general: AdtType, name: str, span: Span) -> Function:
        dims = [n for d in skeleton(general)[1] for n in sorted(d.names())]
        names = Names([*dims, "first", "second"])
        builder = Builder(span, names)
        first, second = Dim.of("first"), Dim.of("second")
        mixed = self.forms.type(general, MIXED, first)
        uniform = self.forms.type(general, self.forms.full(general), first)

        def param(hint: str, ty: Type) -> Var:
            return Var(names.fresh(hint), ty, span=span)

        def places(size: Dim) -> Var:
            return param("places", TensorType((size,), int64))

        match kind:
            case "mix":
                params = (param("size", SizeType(first)), param("value", uniform))
                code = self._mix
            case "uniform":
                params = (param("size", SizeType(first)), param("value", mixed))
                code = self._uniform
            case "take":
                params = (places(first), param("value", mixed))
                code = self._take
            case _:
                params = (places(first), param("a", mixed), places(second), param("b", mixed))
                code = self._merge
        result = code(general, *map(builder.value, params))
        sizes = ("first", "second") if kind == "merge" else ("first",)
        type_params = tuple(map(DimVar, (*dims, *sizes)))
        types = tuple(p.ty for p in params if p.ty is not None)
        ty = FnType(types, result.ty, type_params)
        body = builder.block(result)
        return Function(params, body, result.ty, type_params, name, ty=ty, span=span)

    def _constructors(self, general: AdtType) -> list[tuple[str, tuple[Type, ...]]]:
        """Return the constructors of a data type with the types of their fields."""
        found = self._store.adts[general.name].constructors
        return [(c.name, self.forms.fields(general, c.name)) for c in found]

    def _mix(self, general: AdtType, size: Value, value: Value) -> Value:
        """Return data of one structure as mixed ones."""
        assert isinstance(size.ty, SizeType)
        assert isinstance(value.ty, AdtType)
        count, source = size.ty.dim, value.ty

        def case(number: int) -> Case:
            name, types = self._constructors(general)[number]
            given = self._store.adts[source.name].constructors[number].name

            def code(inner: Builder, fields: list[Value]) -> Value:
                each = zip(fields, types, strict=True)
                values = [
                    self.widened(f, t, self.forms.full(t), self.forms.differing(t), count)
                    for f, t in each
                ]
                return self.made(inner, general, name, values, count)

            return self.forms.fields(source, given), code

        definition = self._store.adts[source.name]
        cases = [case(number) for number in range(len(definition.constructors))]
        return value.builder.bind(match_of(value, definition, cases), "mixed")

    def _uniform(self, general: AdtType, size: Value, value: Value) -> Value:
        """Return mixed data as data of one structure, which is that of the first part."""
        assert isinstance(size.ty, SizeType)
        count = size.ty.dim
        result = self.forms.type(general, self.forms.full(general), count)
        constructors = self._constructors(general)

        def failing(inner: Builder) -> Value:
            return inner.bind(Call(no_structure, (), ty=result, span=inner.span), "never")

        def whole(inner: Builder, number: int, fields: Sequence[Value]) -> Value:
            name, types = constructors[number]
            here, *rest = fields
            # The positions are all of them, in order: taken by these, the fields have the size of
            # the batch in their types.
            every = inner.call(arange, (), {"end": count})
            values: list[Value] = []
            for field, ty in zip(rest, types, strict=True):
                mask, own = self.forms.differing(ty), inner.value(field.atom)
                same = self.taken(own, ty, mask, every, here.shape[0])
                values.append(self.uniform_of(same, ty, mask, count))
            return inner.construct(*self.forms.constructor(general.name, name), values, result)

        def from_part(builder: Builder, number: int) -> Value:
            if number == len(constructors):
                return failing(builder)

            def some(inner: Builder, fields: list[Value]) -> Value:
                are_all = equal(inner.size(fields[0].shape[0]), inner.size(count))
                return either(are_all, lambda b: whole(b, number, fields), failing)

            part, name = builder.value(value.atom)[number], constructors[number][0]
            return self.part_match(
                part, general, name, some, lambda inner, _: from_part(inner, number + 1)
            )

        return from_part(value.builder, 0)

    def _take(self, general: AdtType, places: Value, value: Value) -> Value:
        """Return mixed data for the elements at some places alone."""
        parts = [
            self._taken_part(general, number, places, value[number])
            for number in range(len(self._constructors(general)))
        ]
        return value.builder.tuple(parts)

    def _taken_part(self, general: AdtType, number: int, places: Value, part: Value) -> Value:
        name, types = self._constructors(general)[number]
        ty = part.ty
        assert isinstance(ty, AdtType)

        def none(inner: Builder, _: Sequence[Value] = ()) -> Value:
            return self._part(inner, ty, None)

        def some(inner: Builder, fields: list[Value]) -> Value:
            own, *rest = fields
            count, wanted = own.shape[0], inner.value(places.atom)
            near = minimum(searchsorted(own, wanted), inner.size(count - 1))
            kept = positions(equal(index_select(own, near, dim=0), wanted))
            rows = index_select(near, kept, dim=0)

            def moved(then: Builder) -> Value:
                at = then.value(rows.atom)
                found = [
                    self.taken(then.value(f.atom), t, self.forms.differing(t), at, count)
                    for f, t in zip(rest, types, strict=True)
                ]
                return self._part(then, ty, [then.value(kept.atom), *found])

            return either(greater(inner.size(kept.shape[0]), 0), moved, none)

        return self.part_match(part, general, name, some, none)

    def _merge(self, general: AdtType, at_a: Value, a: Value, at_b: Value, b: Value) -> Value:
        """Return mixed data with the elements of two, which are put at some places."""
        parts = [
            self._merged_part(general, number, at_a, a, at_b, b)
            for number in range(len(self._constructors(general)))
        ]
        return a.builder.tuple(parts)

    def _merged_part(
        self, general: AdtType, number: int, at_a: Value, a: Value, at_b: Value, b: Value
    ) -> Value:
        name, types = self._constructors(general)[number]
        ty = a[number].ty
        assert isinstance(ty, AdtType)

        def moved(inner: Builder, places: Value, fields: list[Value]) -> list[Value]:
            """Return a part with its positions among the elements of the result."""
            own = index_select(inner.value(places.atom), fields[0], dim=0)
            return [own, *(inner.value(f.atom) for f in fields[1:])]

        def with_a(inner: Builder, left: list[Value]) -> Value:
            def with_both(inside: Builder, right: list[Value]) -> Value:
                left_here = moved(inside, at_a, left)
                right_here = moved(inside, at_b, right)
                return self._part(inside, ty, self._interleaved(left_here, right_here, types))

            def with_a_alone(inside: Builder, _: list[Value]) -> Value:
                return self._part(inside, ty, moved(inside, at_a, left))

            part = inner.value(b.atom)[number]
            return self.part_match(part, general, name, with_both, with_a_alone)

        def without_a(inner: Builder, _: list[Value]) -> Value:
            part = inner.value(b.atom)[number]
            return self.part_match(
                part,
                general,
                name,
                lambda inside, right: self._part(inside, ty, moved(inside, at_b, right)),
                lambda inside, _: self._part(inside, ty, None),
            )

        return self.part_match(a[number], general, name, with_a, without_a)

    def _interleaved(
        self, left: list[Value], right: list[Value], types: Sequence[Type]
    ) -> list[Value]:
        """Return the positions and fields of two parts as those of one, by position."""
        builder = left[0].builder
        both = cat(builder.tuple((left[0], right[0])), dim=0)
        order = argsort(both)
        ranks = argsort(order)
        count = left[0].shape[0]
        sides = [slice_along(ranks, 0, ZERO, count), slice_along(ranks, 0, count, ranks.shape[0])]
        places = index_select(both, order, dim=0)
        sides_of = zip(left[1:], right[1:], types, strict=True)
        return [places, *(self._woven(a, b, t, order, sides) for a, b, t in sides_of)]

    def _woven(self, a: Value, b: Value, ty: Type, order: Value, sides: Sequence[Value]) -> Value:
        builder = a.builder
        match ty:
            case TupleType(fields):
                each = enumerate(fields)
                return builder.tuple([self._woven(a[i], b[i], t, order, sides) for i, t in each])
            case TensorType():
                return index_select(cat(builder.tuple((a, b)), dim=0), order, dim=0)
            case AdtType() if self.forms.differing(ty) is MIXED:
                sizes = (sides[0].shape[0], sides[1].shape[0])
                return self._applied("merge", builder, [sides[0], a, sides[1], b], ty, sizes)
            case AdtType():
                types = self.forms.fields(ty, self._store.adts[ty.name].constructors[0].name)
                fields = zip(self._fields(a), self._fields(b), types, strict=True)
                values = [self._woven(x, y, t, order, sides) for x, y, t in fields]
                whole = self.forms.type(ty, self.forms.full(ty), order.shape[0])
                return self._record(builder, values, whole)
            case _:
                return a
