"""Transforms that are made of others: Hessian-vector products and jacobians.

A product of a vector with the Hessian is the derivative of the gradient in its direction (forward
over reverse: Pearlmutter, "Fast exact multiplication by the Hessian", 1994). A jacobian is taken
along the vectors of a basis, one after the other: in forward mode those of the arguments, in
reverse mode those of the value. A Hessian is the jacobian of a gradient.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final, final

from ...ir.block_builder import BlockBuilder
from ...ir.derived_types.jacobians import mapped, tensors_in
from ...ir.dims import product
from ...ir.expr import (
    Binding,
    Call,
    Differentiation,
    Expr,
    Flavour,
    Function,
    If,
    LetBlock,
    Rule,
    Transform,
    TupleGet,
    Var,
    type_of,
)
from ...ir.names import Names
from ...ir.traverse import let, post_order, rewrite
from ...ir.types import FnType, TensorType, TupleType, Type, int64
from ...operators.builder import Builder, Value
from ...operators.primitive.compare import less
from ...operators.primitive.index import set_at
from ...operators.primitive.view import permute

if TYPE_CHECKING:
    from ...diagnostics.source import Span


def with_transforms_composed(function: Function) -> Function:
    """Return a function in A-normal form in which every transform has a deriver."""
    nodes = post_order(function)
    if not any(isinstance(n, Transform) and n.rule in COMPOSED for n in nodes):
        return function

    def change(node: Expr) -> Expr:
        if not isinstance(node, LetBlock) or node.flavour is Flavour.REC:
            return node
        return replace(node, bindings=tuple(b for old in node.bindings for b in _composed(old)))

    made = rewrite(function, change)
    assert isinstance(made, Function)
    return made


def _composed(binding: Binding) -> Iterator[Binding]:
    value = binding.value
    if not isinstance(value, Transform) or value.rule not in COMPOSED:
        yield binding
        return
    parts = _Parts.of(value)
    before, function = COMPOSED[value.rule](parts)
    for inner in before:
        yield from _composed(inner)
    yield replace(binding, value=function)


@final
@dataclass(frozen=True, slots=True, eq=False)
class _Parts:
    """A transform taken apart: its function, what that captures, and its own parameters."""

    transform: Transform
    captured: tuple[Type, ...]
    own: tuple[Type, ...]
    value: Type
    wanted: tuple[Type, ...]
    options: Differentiation

    @classmethod
    def of(cls, transform: Transform) -> _Parts:
        """Take a typed transform apart."""
        ty = type_of(transform.function)
        assert isinstance(ty, FnType)
        options = transform.options
        assert isinstance(options, Differentiation)
        own = ty.params[transform.captures :]
        wanted = tuple(own[i] for i in options.indices)
        captured = ty.params[: transform.captures]
        return cls(transform, captured, own, ty.result, wanted, options)

    @property
    def span(self) -> Span:
        """The place of the transform."""
        return self.transform.span

    def made(self, rule: Rule, function: Expr, params: Sequence[Type], result: Type) -> Binding:
        """Return the transform by another rule of the function, or of what was made of it."""
        ty = FnType((*self.captured, *params), result)
        options = self.options if rule is Rule.GRAD else replace(self.options, single=False)
        new = replace(self.transform, rule=rule, function=function, options=options, ty=ty)
        return Binding(Var(rule.value, ty, span=self.span), new)

    def variables(self, builder: Builder, types: Sequence[Type]) -> list[Var]:
        """Return new parameters for captures, and for values of these types."""
        every = (*self.captured, *types)
        return [Var(builder.names.fresh("x"), ty, span=self.span) for ty in every]

    def function(self, builder: Builder, params: Sequence[Var], result: Value) -> Function:
        """Return the function that the transform stands for."""
        ty = FnType(tuple(type_of(p) for p in params), result.ty)
        code = BlockBuilder()
        for binding in builder.bindings:
            if isinstance(binding.value, Function):  # a loop, which calls itself
                code.bind_rec([binding])
            else:
                code.bind(binding.var, binding.value)
        body = code.close(result.atom)
        name = self.transform.rule.value
        return Function(tuple(params), body, result.ty, (), name, ty=ty, span=self.span)

    def gradient(self) -> Binding:
        """Return the gradient of the function."""
        result = self.wanted[0] if self.options.single else TupleType(self.wanted)
        return self.made(Rule.GRAD, self.transform.function, self.own, result)


_Made = tuple[Sequence[Binding], Function]


def _hvp(parts: _Parts) -> _Made:
    """Return `fn (primals, tangents) { jvp(grad(f))(primals, tangents).1 }`."""
    gradient = parts.gradient()
    made = type_of(gradient.value)
    assert isinstance(made, FnType)
    given = (TupleType(parts.own), TupleType(parts.wanted))
    both = TupleType((made.result, made.result))
    push = parts.made(Rule.JVP, gradient.var, given, both)
    builder = Builder(parts.span, Names())
    params = parts.variables(builder, given)
    found = builder.bind(Call(push.var, tuple(params), ty=both, span=parts.span))
    return (gradient, push), parts.function(builder, params, found[1])


def _hessian(parts: _Parts) -> _Made:
    """Return the jacobian, in forward mode, of the gradient."""
    gradient = parts.gradient()
    outer = replace(parts.transform, rule=Rule.JACFWD, function=gradient.var)
    before, function = _jacfwd(_Parts.of(outer))
    return (gradient, *before), function


def _jacfwd(parts: _Parts) -> _Made:
    """Return the function that pushes the basis of the arguments forward, vector by vector."""
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

    outs = list(tensors_in(parts.value))
    columns = _along_basis(builder, TupleType(parts.wanted), parts.value, pushed)
    entries = [
        [_turned(rows, out, given) for rows, out in zip(found, outs, strict=True)]
        for given, found in columns
    ]
    return (push,), parts.function(
        builder, params, _arranged(builder, parts, lambda out, given: entries[given][out])
    )


def _jacrev(parts: _Parts) -> _Made:
    """Return the function that pulls the basis of the value back, vector by vector."""
    span = parts.span
    result = TupleType(parts.wanted)
    pull_type = FnType((parts.value,), result)
    pair = TupleType((parts.value, pull_type))
    vjp = parts.made(Rule.VJP, parts.transform.function, parts.own, pair)
    builder = Builder(span, Names())
    params = parts.variables(builder, parts.own)
    whole = builder.bind(Call(vjp.var, tuple(params), ty=pair, span=span))
    pull = builder.bind(TupleGet(whole.atom, 1, pull_type, span=span), "pull")

    def pulled(inside: Builder, cotangent: Value) -> Value:
        return inside.bind(Call(pull.atom, (cotangent.atom,), ty=result, span=span))

    rows = _along_basis(builder, parts.value, result, pulled)
    ins = list(tensors_in(result))
    entries = [
        [part.reshape(*out.shape, *given.shape) for part, given in zip(found, ins, strict=True)]
        for out, found in rows
    ]
    return (vjp,), parts.function(
        builder, params, _arranged(builder, parts, lambda out, given: entries[out][given])
    )


def _arranged(builder: Builder, parts: _Parts, entry: Callable[[int, int], Value]) -> Value:
    """Return the entries of a jacobian, by the numbers of the tensors, in its form."""
    outs = iter(range(len(list(tensors_in(parts.value)))))

    def row(_: TensorType) -> Value:
        out, ins = next(outs), iter(range(len(list(tensors_in(TupleType(parts.wanted))))))
        found = [mapped(ty, lambda _: entry(out, next(ins)), builder.tuple) for ty in parts.wanted]
        return found[0] if parts.options.single else builder.tuple(found)

    return mapped(parts.value, row, builder.tuple)


def _turned(rows: Value, out: TensorType, given: TensorType) -> Value:
    """Return derivatives along a basis, stacked in front, with the dims of the basis behind."""
    rank = len(out.shape)
    behind = permute(rows, dims=(*range(1, rank + 1), 0)) if rank else rows
    return behind.reshape(*out.shape, *given.shape)


def _along_basis(
    builder: Builder, basis: Type, result: Type, apply: Callable[[Builder, Value], Value]
) -> list[tuple[TensorType, list[Value]]]:
    """Return for each tensor in `basis` what a linear map `apply`, from `basis` to `result`, gives
    along each of its elements: for each tensor of the result, these stacked."""
    found: list[tuple[TensorType, list[Value]]] = []
    for place, tensor in enumerate(tensors_in(basis)):
        stacked = _loop(builder, basis, place, result, apply)
        found.append((tensor, stacked))
    return found


def _loop(
    builder: Builder,
    basis: Type,
    place: int,
    result: Type,
    apply: Callable[[Builder, Value], Value],
) -> list[Value]:
    """Write the loop over the elements of one tensor of a basis; give the stacked results."""
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


COMPOSED: Final[dict[Rule, Callable[[_Parts], _Made]]] = {
    Rule.HVP: _hvp,
    Rule.HESSIAN: _hessian,
    Rule.JACFWD: _jacfwd,
    Rule.JACREV: _jacrev,
}
"""The writers of the transforms that are composed of others."""
