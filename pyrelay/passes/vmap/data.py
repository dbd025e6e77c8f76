"""Batched values: their types, and how they are made of values that are not batched.

A batched tensor has a new leading dim. A batched value of a data type has one structure, and its
tensors are batched. A data type that holds tensors of its own, not only by its type parameters, has
a copy with batched fields, with the size of the batch as a further parameter.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final, final

from ...ir.derived_types.batch_dims import batch_definitions, inside_batch
from ...ir.derived_types.own_tensors import own_tensors
from ...ir.dims import Dim, DimVar
from ...ir.expr import (
    BindPattern,
    Clause,
    ConstructorPattern,
    Function,
    Match,
    Var,
)
from ...ir.names import Names
from ...ir.types import (
    INT,
    AdtType,
    FnType,
    RefType,
    SizeType,
    TensorType,
    TupleType,
    Type,
    batch_name,
    int64,
)
from ...operators.builder import Builder, Value
from ...operators.primitive.compare import cast, greater_equal
from ...operators.primitive.gathering import index_select
from ..deriving.leaves import skeleton
from .cases import Case, either, match_of
from .masks import Mask, is_any

if TYPE_CHECKING:
    from ...diagnostics.source import Span
    from ..deriving.store import Store


@final
class Batches:
    """The types of batched values, and functions on batched data, each defined once."""

    def __init__(self, store: Store) -> None:
        self._store: Final = store
        self._functions: Final[dict[tuple[str, AdtType], str]] = {}
        self._own: Final[dict[str, bool]] = {}

    # Types.

    def full(self, ty: Type) -> Mask:
        """Return the mask of a value all of whose tensors are batched."""
        match ty:
            case TensorType():
                return True
            case TupleType(fields):
                return tuple(map(self.full, fields))
            case AdtType():
                return self.holds_tensors(ty)
            case RefType(value):
                return self.full(value)
            case _:
                return False

    def none(self, ty: Type) -> Mask:
        """Return the mask of a value that is the same in every call."""
        match ty:
            case TupleType(fields):
                return tuple(map(self.none, fields))
            case RefType(value):
                return self.none(value)
            case _:
                return False

    def holds_tensors(self, ty: Type) -> bool:
        """Return whether a value of a type may hold a tensor."""
        pending, seen = [ty], set[AdtType]()
        while pending:
            match pending.pop():
                case TensorType():
                    return True
                case TupleType(fields):
                    pending += fields
                case AdtType(name) as data if data not in seen and name in self._store.adts:
                    seen.add(data)
                    general, _ = skeleton(data)
                    for constructor in self._store.adts[name].constructors:
                        pending += self.fields(general, constructor.name)
                case _:
                    pass
            if len(seen) > _MAX_TYPES:
                return True
        return False

    def type(self, ty: Type, mask: Mask, count: Dim) -> Type:
        """Return the type of a value of which some tensors are batched. A size that is, is a tensor
        of integers."""
        if isinstance(ty, TupleType):
            assert isinstance(mask, tuple)
            parts = zip(ty.fields, mask, strict=True)
            return TupleType(tuple(self.type(t, m, count) for t, m in parts))
        if not mask:
            return ty
        if isinstance(ty, SizeType):
            return TensorType((count,), int64)
        if isinstance(ty, RefType):
            return RefType(self.type(ty.value, mask, count))
        return self.inside(ty, count)

    def inside(self, ty: Type, count: Dim) -> Type:
        """Return the type of a batched part of data, in which sizes stay what they are."""
        found = inside_batch(ty, count, self._store.adts)
        self._store.adts.update(batch_definitions(found, self._store.adts))
        return found

    def constructor(self, adt: str, name: str) -> tuple[str, str]:
        """Return the data type and constructor of batched values made by a constructor."""
        return (batch_name(adt) if self.has_own_tensors(adt) else adt), name

    def fields(self, ty: AdtType, constructor: str) -> tuple[Type, ...]:
        """Return the types of the fields of a constructor of an applied data type."""
        return self._store.adts[ty.name].field_types(ty, constructor)

    def has_own_tensors(self, name: str) -> bool:
        """Return whether a data type holds tensors that its type parameters do not show."""
        if name not in self._own:
            self._own[name] = own_tensors(self._store.adts, name)
        return self._own[name]

    # Values.

    def repeated(self, value: Value, ty: Type, mask: Mask, count: Dim) -> Value:
        """Return a value with all tensors batched, those that are not repeated without copying.
        `ty` may name sizes that only data knows: those of a tensor are in its own type."""
        builder = value.builder
        match ty:
            case TupleType(fields):
                assert isinstance(mask, tuple)
                each = enumerate(zip(fields, mask, strict=True))
                return builder.tuple([self.repeated(value[i], t, m, count) for i, (t, m) in each])
            case TensorType() if not mask:
                return value.expand((count, *value.shape))
            case SizeType() if not mask:
                return value.expand((count,))
            case AdtType() if not mask and self.holds_tensors(ty):
                size = builder.size(count)
                return self._applied("repeat", builder, size, value, ty, count, count)
            case _:
                return value

    def _repeated_inside(self, value: Value, ty: Type, count: Dim) -> Value:
        """Return a part of data with all tensors batched; sizes stay what they are."""
        match ty:
            case TupleType(fields):
                parts = (self._repeated_inside(value[i], t, count) for i, t in enumerate(fields))
                return value.builder.tuple(list(parts))
            case SizeType():
                return value
            case _:
                return self.repeated(value, ty, self.none(ty), count)

    def taken(self, value: Value, ty: Type, mask: Mask, places: Value, count: Dim) -> Value:
        """Return a value with the elements of the batch, of `count`, at some places alone."""
        builder = value.builder
        match ty:
            case TupleType(fields):
                assert isinstance(mask, tuple)
                each = enumerate(zip(fields, mask, strict=True))
                parts = [self.taken(value[i], t, m, places, count) for i, (t, m) in each]
                return builder.tuple(parts)
            case TensorType() | SizeType() if mask:
                return index_select(value, places, dim=0)
            case AdtType() if mask:
                return self._applied("take", builder, places, value, ty, count, places.shape[0])
            case _:
                return value

    def size_of(self, value: Value, ty: Type, mask: Mask, count: Dim) -> Value:
        """Return how many elements a batched value has, -1 if it holds no tensor."""
        builder = value.builder
        match ty:
            case TupleType(fields):
                assert isinstance(mask, tuple)
                each = enumerate(zip(fields, mask, strict=True))
                return self.size_of_first([(value[i], t, m) for i, (t, m) in each], builder, count)
            case TensorType() | SizeType() if mask:
                return cast(builder.size(count), dtype=int64)
            case AdtType() if mask and self.holds_tensors(ty):
                general, dims = skeleton(ty)
                name = self._size_function(general, builder.span)
                return builder.apply(name, (value,), INT, (*dims, count))
            case _:
                return builder.constant(-1, int64)

    def size_of_first(
        self, parts: Sequence[tuple[Value, Type, Mask]], builder: Builder, count: Dim
    ) -> Value:
        """Return how many elements the first part has that holds a tensor, -1 if none does."""
        held = [p for p in parts if is_any(p[2]) and self.holds_tensors(p[1])]
        held.sort(key=lambda part: not isinstance(part[1], TensorType))
        if not held:
            return builder.constant(-1, int64)
        (value, ty, mask), *rest = held
        found = self.size_of(builder.value(value.atom), ty, mask, count)
        if not rest or isinstance(ty, TensorType):
            return found
        return either(
            greater_equal(found, 0),
            lambda inner: inner.value(found.atom),
            lambda inner: self.size_of_first(rest, inner, count),
        )

    def _size_function(self, general: AdtType, span: Span) -> str:
        """Return the function that finds the size of a batch in data."""
        key = ("size", general)
        if key in self._functions:
            return self._functions[key]
        name = self._functions[key] = self._store.function_name(f"{general.name}_size")
        builder, count = Builder(span, Names()), Dim.of("batch")
        source = self.inside(general, count)
        assert isinstance(source, AdtType)
        param = Var("value", source, span=span)

        def case(number: int) -> Case:
            types = self.fields(general, self._store.adts[general.name].constructors[number].name)
            given = self._store.adts[source.name].constructors[number].name

            def code(inner: Builder, fields: list[Value]) -> Value:
                parts = [(f, t, self.full(t)) for f, t in zip(fields, types, strict=True)]
                return self.size_of_first(parts, inner, count)

            return self.fields(source, given), code

        definition = self._store.adts[source.name]
        cases = [case(number) for number in range(len(definition.constructors))]
        body = builder.block(
            builder.bind(match_of(builder.value(param), definition, cases), "size")
        )
        names = (n for d in (*_arguments(general), count) for n in sorted(d.names()))
        params = tuple(map(DimVar, names))
        ty = FnType((source,), INT, params)
        self._store.functions[name] = Function((param,), body, INT, params, name, ty=ty, span=span)
        return name

    def _applied(
        self,
        kind: str,
        builder: Builder,
        control: Value,
        value: Value,
        ty: AdtType,
        count: Dim,
        result: Dim,
    ) -> Value:
        general, dims = skeleton(ty)
        sizes = (count,) if kind == "repeat" else (count, result)
        name = self._function(kind, general, builder.span)
        return builder.apply(name, (control, value), self.inside(ty, result), (*dims, *sizes))

    def _function(self, kind: str, general: AdtType, span: Span) -> str:
        """Return the function that repeats batched data, or takes some places of them."""
        key = (kind, general)
        if key in self._functions:
            return self._functions[key]
        name = self._functions[key] = self._store.function_name(f"{general.name}_{kind}")
        builder = Builder(span, Names())
        before, after = Dim.of("batch"), Dim.of("batch" if kind == "repeat" else "taken")
        is_take = kind == "take"
        control_type = TensorType((after,), int64) if is_take else SizeType(after)
        control = Var("places" if is_take else "size", control_type, span=span)
        source = self.inside(general, before) if is_take else general
        param = Var("value", source, span=span)

        def change(part: Value, ty: Type) -> Value:
            if is_take:
                places = part.builder.value(control)
                return self.taken(part, ty, self.full(ty), places, before)
            return self._repeated_inside(part, ty, before)

        result = self.inside(general, after)
        body = self.mapped(builder, param, general, source, result, change)
        sizes = [before, after] if is_take else [after]
        params = tuple(DimVar(n) for d in (*_arguments(general), *sizes) for n in sorted(d.names()))
        ty = FnType((control_type, source), result, params)
        self._store.functions[name] = Function(
            (control, param), body, result, params, name, ty=ty, span=span
        )
        return name

    def mapped(
        self,
        builder: Builder,
        param: Var,
        general: AdtType,
        source: Type,
        result: Type,
        change: Callable[[Value, Type], Value],
    ) -> Match:
        """Return the match on a parameter that changes each field of each constructor."""
        assert isinstance(source, AdtType)
        assert isinstance(result, AdtType)
        clauses: list[Clause] = []
        names = [c.name for c in self._store.adts[general.name].constructors]
        for tag, name in enumerate(names):
            inside = Builder(builder.span, builder.names)
            given = self._store.adts[source.name].constructors[tag].name
            made = self._store.adts[result.name].constructors[tag].name
            fields = [
                Var(builder.names.fresh("field"), t, span=builder.span)
                for t in self.fields(source, given)
            ]
            types = self.fields(general, name)
            values = [change(inside.value(v), t) for v, t in zip(fields, types, strict=True)]
            whole = inside.construct(result.name, made, values, result)
            patterns = tuple(BindPattern(v, span=builder.span) for v in fields)
            pattern = ConstructorPattern(source.name, given, patterns, span=builder.span)
            clauses.append(Clause(pattern, inside.block(whole)))
        return Match(builder.value(param).atom, tuple(clauses), ty=result, span=builder.span)


_MAX_TYPES: Final = 1000
"""How many data types inside one are looked at before it is taken to hold tensors."""


def _arguments(general: AdtType) -> Sequence[Dim]:
    return skeleton(general)[1]
