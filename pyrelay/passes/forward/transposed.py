"""Tangents by transposition: the derivative of an operator that states only how cotangents pass.

A pullback is linear in the cotangent of the result. Written as a function, it is differentiated in
that cotangent, in reverse mode: the result maps tangents of the operands to tangents of the
operator's result. This is the transposition of linear functions of Radul, Paszke, Frostig, Johnson
and Maclaurin, "You only linearize once" (POPL 2023), the other way round.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, final

from ...ir.dims import DimVar
from ...ir.expr import Expr, Function, Var, type_of
from ...ir.names import Names
from ...ir.op import Gradient, Op, Pullback
from ...ir.traverse import free_vars
from ...ir.types import (
    AdtType,
    FnType,
    TupleType,
    Type,
    as_arguments,
    dim_names,
)
from ...operators.builder import Builder, Value
from ..deriving.cotangents.masks import bits
from ..deriving.instantiation import match_types, type_arguments

if TYPE_CHECKING:
    from ..deriving.workspace import Workspace
    from ..grad import ReverseMode
    from .instances import Instance


@final
class Transposed:
    """Defines transposed pullbacks."""

    def __init__(self, space: Workspace, reverse: ReverseMode) -> None:
        self._space: Final = space
        self._reverse: Final = reverse

    def tangents(
        self,
        op: Op,
        rule: Gradient,
        out: Value,
        args: Sequence[Value],
        given: Sequence[Sequence[Expr | None]],
        attrs: Mapping[str, Any],
    ) -> list[Expr | None]:
        """Return the tangents of the leaves of a call's result, `given` those of the operands."""
        builder, leaves = out.builder, self._space.leaves
        wanted = tuple(any(t is not None for t in own) for own in given)
        function, kept = self._pull(op, rule, out, args, wanted, given, attrs)
        if not kept:
            return [None] * leaves.width(out.ty)
        store = self._space.store
        pull = store.functions[function]
        count = leaves.width(out.ty)
        # What no cotangent is read of cannot move: it is constant, as a count beside a loss is.
        read = set(free_vars(pull.body))
        moved = tuple(i for i in range(count) if pull.params[i] in read)
        if not moved:
            return [None] * count
        name = self._reverse.transposed(function, moved)
        zero = self._space.cotangents.zero
        operands = [zero(builder, leaf) for leaf in leaves.of(out.ty)]
        operands += [*args, out, *(builder.value(t) for t in kept)]
        declared = [type_of(p) for p in pull.params]
        passed = [v.ty for v in operands[: len(declared)]]
        types = match_types(pull.type_params, declared, passed)
        result = TupleType(tuple(leaves.of(out.ty)[i] for i in moved))
        whole = builder.apply(name, operands, result, type_arguments(pull.type_params, types))
        found: list[Expr | None] = [None] * count
        for place, leaf in enumerate(moved):
            found[leaf] = whole[place].atom
        return found

    def _pull(
        self,
        op: Op,
        rule: Gradient,
        out: Value,
        args: Sequence[Value],
        wanted: tuple[bool, ...],
        given: Sequence[Sequence[Expr | None]],
        attrs: Mapping[str, Any],
    ) -> tuple[str, list[Expr]]:
        """Define the pullback as a function of the cotangents of the result's leaves, the operands
        and the result; return its name, and the tangents that stand for what it returns."""
        span, names = out.builder.span, Names()
        leaves = self._space.leaves
        cotangents = [Var(names.fresh("g"), leaf, span=span) for leaf in leaves.of(out.ty)]
        operands = [Var(names.fresh("x"), a.ty, span=span) for a in args]
        value = Var(names.fresh("out"), out.ty, span=span)
        builder = Builder(span, names)
        inside = builder.value(value)
        g = self._space.border.of_result(inside, iter(cotangents))
        found = rule(Pullback(g, inside, tuple(map(builder.value, operands)), attrs, wanted))
        results: list[Value] = []
        kept: list[Expr] = []
        for operand, result, own in zip(operands, found, given, strict=True):
            if result is None:
                continue
            parts = self.leaves_of(builder, result, type_of(operand))
            for part, tangent in zip(parts, own, strict=True):
                if part is not None and tangent is not None:
                    results.append(builder.value(part))
                    kept.append(tangent)
        params = (*cotangents, *operands, value)
        body = builder.block(builder.tuple(results))
        types = tuple(type_of(p) for p in params)
        sizes = dict.fromkeys(n for ty in types for n in sorted(dim_names(ty)))
        quantified = tuple(map(DimVar, sizes))
        name = self._space.store.function_name(f"pull_{op.name}")
        self._space.store.functions[name] = Function(
            params,
            body,
            type_of(body),
            quantified,
            name,
            ty=FnType(types, type_of(body), quantified),
            span=span,
        )
        return name, kept

    def function(self, source: Function, instance: Instance) -> Function:
        """Return the instance of a function whose derivative is what its user wrote for reverse
        mode: the value, beside the tangents that the transposed derivative gives."""
        space, reverse = self._space, self._reverse
        span, names = source.span.derived(f"derivative of {source.name}"), Names()
        params = [Var(names.fresh(p.name), type_of(p), span=span) for p in source.params]
        builder = Builder(span, names)
        result = source.result
        assert result is not None
        type_args = as_arguments(source.type_params)
        value = builder.apply(instance.source, [*map(builder.value, params)], result, type_args)
        leaves = space.leaves.of(result)
        places = [(i, leaf) for i, p in enumerate(params) for leaf in space.leaves.of(type_of(p))]
        tangents = {
            place: Var(names.fresh("d"), places[place][1], span=span)
            for place in bits(instance.varied)
        }
        wrt = tuple(dict.fromkeys(places[place][0] for place in tangents))
        pulled = reverse.transposed(instance.source, wrt)
        last = len(params) + len(leaves)
        pushed = reverse.transposed(pulled, tuple(range(len(params), last)))
        args = [builder.value(p) for p in params]
        args += map(builder.value, space.border.anywhere(builder, value))
        for place, (index, leaf) in enumerate(places):
            if place in tangents:
                args.append(builder.value(tangents[place]))
            elif index in wrt:
                args.append(space.cotangents.zero(builder, leaf))
        found = builder.apply(pushed, args, TupleType(leaves), type_args)
        whole = builder.tuple((value, *(found[i] for i in bits(instance.moved))))
        params += tangents.values()
        types = tuple(type_of(p) for p in params)
        return Function(
            tuple(params),
            builder.block(whole),
            whole.ty,
            source.type_params,
            instance.function,
            source.assumptions,
            ty=FnType(types, whole.ty, source.type_params),
            span=span,
        )

    def width(self, ty: Type) -> int:
        """Return the number of leaves of a type."""
        return self._space.leaves.width(ty)

    def assembled(self, value: Value, leaves: Sequence[Expr | None]) -> Value | None:
        """Return the tangent of a value in its own form from its leaves; None for zero."""
        if all(leaf is None for leaf in leaves):
            return None
        return self._space.border.of_result(value, iter(leaves))

    def leaves_of(
        self, builder: Builder, made: Value | Sequence[Value | None] | None, ty: Type
    ) -> Iterator[Expr | None]:
        """Return the leaves of a tangent, or of a cotangent, in the form of the value it belongs
        to; None where there is none."""
        width = self._space.leaves.width(ty)
        if made is None or not width:
            yield from [None] * width
            return
        match ty:
            case TupleType(fields):
                for index, field in enumerate(fields):
                    if self._space.leaves.width(field):
                        yield from self.leaves_of(builder, made[index], field)
            case AdtType():
                assert isinstance(made, Value)
                yield from self._space.border.incoming(builder, made, ty)
            case _:
                assert isinstance(made, Value)
                yield made.atom
