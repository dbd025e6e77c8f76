"""Jacobians over data: records, lists, trees, and tuples that hold integers beside floats.

How many elements there are is counted first. The linear map is then mapped by `vmap` over their
numbers: inside, a direction is made that is one at a single element. What it gives at each float
tensor is collected in lists, one for each type of tensor, and goes from there to its place.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, final

from ...ir.derived_types.batch_dims import with_batch
from ...ir.derived_types.jacobians import entries_type
from ...ir.dims import Dim, product
from ...ir.expr import Batching, Call, Function, Rule, Transform, Var
from ...ir.names import Names
from ...ir.types import (
    INT,
    AdtType,
    FnType,
    SizeType,
    TensorType,
    TupleType,
    Type,
    int64,
    is_float,
    substitution,
)
from ...operators.builder import Builder, Value
from ...operators.host.sizes import as_size
from ...operators.primitive.compare import equal
from ...operators.primitive.create import arange
from ...operators.primitive.gathering import index_select
from .composition import Made, TransformParts
from .jacobians import turned
from .structures import Stacks, StructureMap, Visited


def data_jacfwd(parts: TransformParts) -> Made:
    """Return the function that pushes the basis of the arguments forward."""
    writer = _Writer(parts)
    given = (TupleType(parts.own), TupleType(parts.wanted))
    both = TupleType((parts.value, parts.value))
    push = parts.made(Rule.JVP, parts.transform.function, given, both)

    def pushed(inside: Builder, direction: Value) -> tuple[Value, Value]:
        args = (*writer.captured, writer.primals.atom, direction.atom)
        found = inside.bind(Call(push.var, args, ty=both, span=parts.span))
        return found[1], found[0]

    value, rows = writer.along(writer.wanted, TupleType(parts.wanted), parts.value, pushed)
    assert value is not None
    return (push,), writer.function(writer.arranged_forward(value, rows))


def data_jacrev(parts: TransformParts) -> Made:
    """Return the function that pulls the basis of the value back."""
    writer = _Writer(parts)
    result = TupleType(parts.wanted)
    vjp, value, pull = parts.pullback(writer.builder, writer.params)

    def pulled(inside: Builder, cotangent: Value) -> tuple[Value, None]:
        call = Call(pull.atom, (cotangent.atom,), ty=result, span=parts.span)
        return inside.bind(call), None

    _, rows = writer.along(value, parts.value, result, pulled)
    return (vjp,), writer.function(writer.arranged_backward(value, rows))


@final
class _Writer:
    """The code of one jacobian."""

    def __init__(self, parts: TransformParts) -> None:
        self._parts: Final = parts
        self._store: Final = parts.store
        self._stacks: Final = Stacks(parts.store, parts.span)
        self.builder: Final = Builder(parts.span, Names())
        self.params: Final = parts.variables(self.builder, parts.own)
        own = self.params[len(parts.captured) :]
        self.captured: Final = self.params[: len(parts.captured)]
        self.primals: Final = self.builder.tuple([self.builder.value(p) for p in own])
        chosen = [self.builder.value(own[i]) for i in parts.options.indices]
        self.wanted: Final = self.builder.tuple(chosen)

    def function(self, result: Value) -> Function:
        """Return the function that gives a jacobian."""
        return self._parts.function(self.builder, self.params, result)

    def along(
        self,
        at: Value,
        basis: Type,
        result: Type,
        apply: Callable[[Builder, Value], tuple[Value, Value | None]],
    ) -> tuple[Value | None, list[Value]]:
        """Return the results of a linear map along each element of a value, for each type of tensor
        in its result a list of these tensors, and what `apply` gives beside it."""
        builder, span = self.builder, self.builder.span
        count = self._count(at, basis)
        size = count.builder.call(as_size, (count,))
        assert isinstance(size.ty, SizeType)
        unit, collect = self._unit(), self._collect(result)
        inside = Builder(span, builder.names)
        number = Var(builder.names.fresh("number"), INT, span=span)
        start = inside.constant(0, int64)
        direction, _ = unit.over(inside.value(at.atom), basis, [inside.value(number)], [start])
        moved, beside = apply(inside, direction)
        empty = [self._stacks.empty(inside, ty) for ty in _tensors(result, self._parts)]
        _, lists = collect.over(moved, result, (), empty)
        given = inside.tuple((*lists, *(() if beside is None else (beside,))))
        builder.bindings.extend((*unit.written(), *collect.written()))
        numbers = builder.call(arange, (), {"end": size.ty.dim})
        body = inside.block(given)
        ty = FnType((INT,), given.ty)
        one = builder.bind(Function((number,), body, given.ty, (), "along", ty=ty, span=span))
        axes = (0,) * len(lists) + (() if beside is None else (None,))
        whole = with_batch(given.ty, axes, size.ty.dim, self._store.adts)
        many = FnType((numbers.ty,), whole)
        options = Batching(out_axes=axes)
        mapping = builder.bind(Transform(Rule.VMAP, one.atom, options, ty=many, span=span))
        found = builder.bind(Call(mapping.atom, (numbers.atom,), ty=whole, span=span))
        rows = [found[i] for i in range(len(lists))]
        return (None if beside is None else found[len(lists)]), rows

    def _count(self, value: Value, ty: Type) -> Value:
        """Return how many elements the float tensors of a value have."""

        def visit(
            leaf: Value, ty: TensorType, _: Sequence[Value], state: Sequence[Value]
        ) -> Visited:
            builder = leaf.builder
            return builder.unit(), [state[0] + _size(builder, ty)]

        walk = StructureMap(self._store, "count", visit, None)
        inside = Builder(self.builder.span, self.builder.names)
        start = inside.constant(0, int64)
        _, (found,) = walk.over(inside.value(value.atom), ty, (), [start])
        self.builder.bindings.extend((*walk.written(), *inside.bindings))
        return self.builder.value(found.atom)

    def _unit(self) -> StructureMap:
        """Return the function that makes the value which is one at the element of a number, and
        zero else."""

        def visit(
            leaf: Value, ty: TensorType, fixed: Sequence[Value], state: Sequence[Value]
        ) -> Visited:
            builder, size = leaf.builder, product(ty.shape)
            numbers = builder.call(arange, (), {"end": size}) + state[0]
            here = equal(numbers, fixed[0]).cast(leaf.dtype).reshape(*ty.shape)
            return here, [state[0] + _size(builder, ty)]

        return StructureMap(self._store, "unit", visit, lambda ty: ty)

    def _collect(self, result: Type) -> StructureMap:
        """Return the function that puts the tensors of a value into lists, the first in front."""
        tensors = _tensors(result, self._parts)

        def visit(
            leaf: Value, ty: TensorType, _: Sequence[Value], state: Sequence[Value]
        ) -> Visited:
            place = tensors.index(ty)
            made = list(state)
            made[place] = self._stacks.pushed(state[place], leaf)
            return leaf.builder.unit(), made

        return StructureMap(self._store, "collect", visit, None, backwards=True)

    def arranged_forward(self, value: Value, rows: Sequence[Value]) -> Value:
        """Return the jacobian of tangents, for each type of tensor in the value a list of them."""
        parts, wanted = self._parts, TupleType(self._parts.wanted)
        outs = _tensors(parts.value, parts)
        stacked = [_element(r) for r in rows]
        inner = {out: self._slices(out) for out in outs}

        def visit(
            leaf: Value, ty: TensorType, fixed: Sequence[Value], state: Sequence[Value]
        ) -> Visited:
            place, left = outs.index(ty), list(state)
            found, left[place] = self._stacks.popped(state[place], stacked[place])
            start = leaf.builder.constant(0, int64)
            entry, _ = inner[ty].over(fixed[0], wanted, [found, leaf], [start])
            return self._entry(entry), left

        outer = StructureMap(self._store, "arrange", visit, self._entries)
        return self._arranged(outer, list(inner.values()), value, [self.wanted], rows)

    def arranged_backward(self, value: Value, rows: Sequence[Value]) -> Value:
        """Return the jacobian of cotangents, for each type of tensor in the arguments a list."""
        parts, wanted = self._parts, TupleType(self._parts.wanted)
        inner = {out: self._parts_of(out, rows) for out in _tensors(parts.value, parts)}

        def visit(
            leaf: Value, ty: TensorType, fixed: Sequence[Value], state: Sequence[Value]
        ) -> Visited:
            entry, _ = inner[ty].over(fixed[0], wanted, [state[0], leaf], fixed[1:])
            return self._entry(entry), [state[0] + _size(leaf.builder, ty)]

        outer = StructureMap(self._store, "arrange", visit, self._entries)
        start = self.builder.constant(0, int64)
        return self._arranged(outer, list(inner.values()), value, [self.wanted, *rows], [start])

    def _slices(self, out: TensorType) -> StructureMap:
        """Return the function that splits the derivatives of one tensor, whose leading dim goes
        along the elements of the arguments."""

        def visit(
            leaf: Value, ty: TensorType, fixed: Sequence[Value], state: Sequence[Value]
        ) -> Visited:
            columns = _section(fixed[0], state[0], product(ty.shape))
            return turned(columns, out, ty), [state[0] + _size(leaf.builder, ty)]

        return StructureMap(self._store, "place", visit, _behind(out))

    def _parts_of(self, out: TensorType, rows: Sequence[Value]) -> StructureMap:
        """Return the function that takes the derivatives of one tensor out of those in each tensor
        of the arguments, whose leading dim goes along the elements of the value."""
        tensors = _tensors(TupleType(self._parts.wanted), self._parts)
        stacked = [_element(r) for r in rows]

        def visit(
            _: Value, ty: TensorType, fixed: Sequence[Value], state: Sequence[Value]
        ) -> Visited:
            place, left = tensors.index(ty), list(state)
            found, left[place] = self._stacks.popped(state[place], stacked[place])
            section = _section(found, fixed[0], product(out.shape))
            return section.reshape(*out.shape, *ty.shape), left

        return StructureMap(self._store, "place", visit, _behind(out))

    def _arranged(
        self,
        outer: StructureMap,
        inner: Sequence[StructureMap],
        value: Value,
        fixed: Sequence[Value],
        state: Sequence[Value],
    ) -> Value:
        builder = self.builder
        inside = Builder(builder.span, builder.names)
        given = [[inside.value(v.atom) for v in vs] for vs in (fixed, state)]
        found, _ = outer.over(inside.value(value.atom), self._parts.value, *given)
        written = [b for walk in (outer, *inner) for b in walk.written()]
        builder.bindings.extend((*written, *inside.bindings))
        return builder.value(found.atom)

    def _entries(self, out: TensorType) -> Type:
        single = self._parts.options.single
        return entries_type(out, self._parts.wanted, self._store.adts, single=single)

    def _entry(self, found: Value) -> Value:
        return found[0] if self._parts.options.single else found


def _behind(out: TensorType) -> Callable[[TensorType], Type]:
    return lambda ty: TensorType((*out.shape, *ty.shape), out.dtype)


def _size(builder: Builder, ty: TensorType) -> Value:
    return builder.size(product(ty.shape)).cast(int64)


def _section(rows: Value, start: Value, count: Dim) -> Value:
    """Return `count` rows from a number on."""
    return index_select(rows, rows.builder.call(arange, (), {"end": count}) + start, dim=0)


def _element(stack: Value) -> TensorType:
    """Return the type of the tensors in a list."""
    assert isinstance(stack.ty, AdtType)
    (ty,) = stack.ty.args
    assert isinstance(ty, TensorType)
    return ty


def _tensors(ty: Type, parts: TransformParts) -> list[TensorType]:
    """Return the types of the float tensors in a value, data included, each once."""
    found: dict[TensorType, None] = {}
    pending, seen = [ty], set[Type]()
    while pending:
        match pending.pop():
            case TensorType(_, dtype) as tensor if is_float(dtype):
                found[tensor] = None
            case TupleType(fields):
                pending += reversed(fields)
            case AdtType(name, args) as data if data not in seen:
                seen.add(data)
                definition = parts.store.adts[name]
                instance = substitution(definition.type_params, args)
                inside = list(map(instance, definition.fields))
                pending += reversed(inside)
            case _:
                pass
    return list(found)
