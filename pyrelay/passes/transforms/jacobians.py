"""Jacobians: what a linear map gives along the vectors of a basis.

A jacobian is taken along a basis of the arguments in forward mode, of the value in reverse mode.
The linear map is mapped over the whole basis by `vmap`, so each operator is called once, however
many elements there are, and what does not depend on the direction once. Where `vmap` refuses
the function, a loop takes the vectors one after the other.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Final, TypeAlias

from ...ir.derived_types.batch_dims import with_batch
from ...ir.derived_types.jacobians import mapped, tensors_in
from ...ir.dims import ZERO, Dim, product
from ...ir.expr import Batching, Binding, Call, Function, If, Rule, Transform, Var, type_of
from ...ir.names import Names
from ...ir.traverse import let
from ...ir.types import DType, FnType, TensorType, TupleType, Type, int64
from ...operators.builder import Builder, Value
from ...operators.primitive.compare import less
from ...operators.primitive.create import eye
from ...operators.primitive.index import set_at
from ...operators.primitive.join import cat, slice_along
from ...operators.primitive.view import permute
from .composition import Made, TransformParts

Apply: TypeAlias = Callable[[Builder, Value], Value]
"""A linear map, as code."""

Along: TypeAlias = Callable[[Builder, Type, Type, Apply], list[list[Value]]]
"""From a basis, the type of the result and a linear map between them, to what the map gives along
each element of each tensor in the basis: for each tensor of the result, these stacked."""


def jacfwd(parts: TransformParts, along: Along) -> Made:
    """Return the function that pushes the basis of the arguments forward."""
    span = parts.span
    given = (TupleType(parts.own), TupleType(parts.wanted))
    both = TupleType((parts.value, parts.value))
    push = parts.made(Rule.JVP, parts.transform.function, given, both)
    builder = Builder(span, Names())
    params = parts.variables(builder, parts.own)
    captured, own = params[: len(parts.captured)], params[len(parts.captured) :]
    primals = builder.tuple([builder.value(p) for p in own])

    def pushed(inside: Builder, direction: Value) -> Value:
        args = (*captured, primals.atom, direction.atom)
        return inside.bind(Call(push.var, args, ty=both, span=span))[1]

    basis = TupleType(parts.wanted)
    columns = along(builder, basis, parts.value, pushed)
    entries = [
        [turned(rows, out, given) for rows, out in zip(found, tensors_in(parts.value), strict=True)]
        for given, found in zip(tensors_in(basis), columns, strict=True)
    ]
    return (push,), parts.function(
        builder, params, _arranged(builder, parts, lambda out, given: entries[given][out])
    )


def jacrev(parts: TransformParts, along: Along) -> Made:
    """Return the function that pulls the basis of the value back."""
    span = parts.span
    result = TupleType(parts.wanted)
    builder = Builder(span, Names())
    params = parts.variables(builder, parts.own)
    vjp, _, pull = parts.pullback(builder, params)

    def pulled(inside: Builder, cotangent: Value) -> Value:
        return inside.bind(Call(pull.atom, (cotangent.atom,), ty=result, span=span))

    rows = along(builder, parts.value, result, pulled)
    ins = list(tensors_in(result))
    entries = [
        [part.reshape(*out.shape, *given.shape) for part, given in zip(found, ins, strict=True)]
        for out, found in zip(tensors_in(parts.value), rows, strict=True)
    ]
    return (vjp,), parts.function(
        builder, params, _arranged(builder, parts, lambda out, given: entries[out][given])
    )


def _arranged(builder: Builder, parts: TransformParts, entry: Callable[[int, int], Value]) -> Value:
    """Return the entries of a jacobian, by the numbers of the tensors, in its form."""
    outs = iter(range(len(list(tensors_in(parts.value)))))

    def row(_: TensorType) -> Value:
        out, ins = next(outs), iter(range(len(list(tensors_in(TupleType(parts.wanted))))))
        found = [mapped(ty, lambda _: entry(out, next(ins)), builder.tuple) for ty in parts.wanted]
        return found[0] if parts.options.single else builder.tuple(found)

    return mapped(parts.value, row, builder.tuple)


def turned(rows: Value, out: TensorType, given: TensorType) -> Value:
    """Return derivatives along a basis, stacked in front, with the dims of the basis behind."""
    rank = len(out.shape)
    behind = permute(rows, dims=(*range(1, rank + 1), 0)) if rank else rows
    return behind.reshape(*out.shape, *given.shape)


def at_once(builder: Builder, basis: Type, result: Type, apply: Apply) -> list[list[Value]]:
    """Map over the whole basis."""
    span = builder.span
    tensors = list(tensors_in(basis))
    inside = Builder(span, builder.names)
    directions = [Var(builder.names.fresh("d"), t, span=span) for t in tensors]
    given = iter(directions)
    moved = apply(inside, mapped(basis, lambda _: inside.value(next(given)), inside.tuple))
    flat = inside.tuple(_flat(moved))
    ty = FnType(tuple(tensors), flat.ty)
    body = inside.block(flat)
    one = Function(tuple(directions), body, flat.ty, (), "along", ty=ty, span=span)
    sizes = [product(t.shape) for t in tensors]
    starts = [sum(sizes[:i], ZERO) for i in range(len(sizes) + 1)]
    rows = [
        _basis(builder, t, start, starts[-1]) for t, start in zip(tensors, starts, strict=False)
    ]
    whole = with_batch(flat.ty, 0, starts[-1], {})
    many = FnType(tuple(r.ty for r in rows), whole)
    mapping = Transform(Rule.VMAP, builder.bind(one, "along").atom, Batching(), ty=many, span=span)
    function = builder.bind(mapping, "vmap")
    found = builder.bind(Call(function.atom, tuple(r.atom for r in rows), ty=whole, span=span))
    columns = [found[i] for i in range(len(list(tensors_in(result))))]
    if len(tensors) == 1:
        return [columns]
    ends = pairwise(starts)
    return [[slice_along(c, 0, start, end) for c in columns] for start, end in ends]


def _basis(builder: Builder, tensor: TensorType, start: Dim, count: Dim) -> Value:
    """Return the part of `count` vectors in one tensor, to which those from `start` on belong."""
    size, dtype = product(tensor.shape), tensor.dtype
    assert isinstance(dtype, DType)
    parts = [builder.call(eye, (), {"n": size, "dtype": dtype})]
    before, after = start, count - start - size
    if before != ZERO:
        parts.insert(0, builder.zeros(TensorType((before, size), dtype)))
    if after != ZERO:
        parts.append(builder.zeros(TensorType((after, size), dtype)))
    rows = parts[0] if len(parts) == 1 else builder.call(cat, (builder.tuple(parts),), {"dim": 0})
    return rows.reshape(count, *tensor.shape)


def one_by_one(builder: Builder, basis: Type, result: Type, apply: Apply) -> list[list[Value]]:
    """Take the vectors of the basis in a loop."""
    places = range(len(list(tensors_in(basis))))
    return [_loop(builder, basis, place, result, apply) for place in places]


def _loop(builder: Builder, basis: Type, place: int, result: Type, apply: Apply) -> list[Value]:
    """Write the loop over the elements of one tensor of a basis; return the stacked results."""
    span, names = builder.span, builder.names
    tensor = list(tensors_in(basis))[place]
    count = product(tensor.shape)
    end = builder.size(count)
    outs = list(tensors_in(result))
    zeros = [builder.zeros(t) for t in tensors_in(basis)]
    flat = builder.zeros(TensorType((count,), tensor.dtype))
    starts = [builder.zeros(TensorType((count, *t.shape), t.dtype)) for t in outs]
    index = Var(names.fresh("i"), TensorType((), int64), span=span)
    stacks = [Var(names.fresh("rows"), s.ty, span=span) for s in starts]
    whole = TupleType(tuple(s.ty for s in starts))
    types = (type_of(index), *whole.fields)
    loop = Var(names.fresh("along"), FnType(types, whole), span=span)
    test, more, done = (Builder(span, names) for _ in range(3))
    at = more.value(index)
    element = (more.tuple((at,)), more.constant(1.0, flat.dtype))
    unit = more.call(set_at, (flat, *element), {"spec": _ROW}).reshape(*tensor.shape)
    parts = iter([unit if i == place else more.value(z.atom) for i, z in enumerate(zeros)])
    moved = apply(more, mapped(basis, lambda _: next(parts), more.tuple))
    rows = [
        more.call(set_at, (more.value(stack), more.tuple((at,)), part), {"spec": _ROW})
        for stack, part in zip(stacks, _flat(moved), strict=True)
    ]
    following = at + 1
    again = Call(loop, (following.atom, *(r.atom for r in rows)), ty=whole, span=span)
    goes_on = test.call(less, (test.value(index), end))
    branch = If(
        goes_on.atom,
        let(more.bindings, again),
        done.block(done.tuple([done.value(s) for s in stacks])),
        whole,
        span=span,
    )
    body = let(test.bindings, branch)
    function = Function((index, *stacks), body, whole, (), "along", ty=type_of(loop), span=span)
    builder.bindings.append(Binding(loop, function))
    args = (builder.constant(0, int64).atom, *(s.atom for s in starts))
    found = builder.bind(Call(loop, args, ty=whole, span=span))
    return [found[i] for i in range(len(outs))]


_ROW: Final = (("int", 0),)


def _flat(value: Value) -> list[Value]:
    """Return the tensors in tuples."""
    if not isinstance(value.ty, TupleType):
        return [value]
    return [part for i in range(len(value.ty.fields)) for part in _flat(value[i])]
