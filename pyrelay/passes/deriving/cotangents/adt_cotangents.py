"""Cotangents at the border, where users give and take values of their own types.

Inside, the cotangent of a data value is a generated type. A gradient that leaves has the type of
the value: `gradient` functions put the leaves where the value has floats, zeros where it has
integers, and keep the rest. A cotangent that comes in, of a pullback's argument, goes the other
way, through `cotangent` functions.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final, final

from ....diagnostics.source import Span
from ....ir.dims import DimVar
from ....ir.expr import Clause, Expr, Function, Match, Tuple, Var, Wildcard, type_of
from ....ir.names import Names
from ....ir.types import (
    AdtType,
    FnType,
    SizeType,
    TensorType,
    TupleType,
    Type,
    int64,
    is_float,
    known_dtype,
)
from ....operators.builder import Builder, Value
from ....operators.primitive.create import full
from ..leaves import Leaves, skeleton
from .cotangents import Cotangents, field_pattern, open_fields

if TYPE_CHECKING:
    from ....ir.module import ConstructorDef
    from ..store import Store


@final
class Border:
    """Turns leaves into values of users' types and back; defines the functions this needs."""

    def __init__(self, store: Store, leaves: Leaves, cotangents: Cotangents) -> None:
        self._store: Final = store
        self._leaves: Final = leaves
        self._cotangents: Final = cotangents
        self._gradients: Final[dict[AdtType, str]] = {}
        self._incoming: Final[dict[AdtType, str]] = {}

    def gradient(
        self, builder: Builder, value: Value, ty: Type, leaves: Iterator[Expr | None]
    ) -> Value:
        """Return the gradient of a value, in its own type, from its leaves (None for zero)."""
        match ty:
            case TensorType(_, dtype) if is_float(dtype):
                leaf = next(leaves)
                return builder.zeros(ty) if leaf is None else builder.value(leaf)
            case TensorType():
                return builder.zeros(ty)
            case SizeType():
                return builder.constant(0, int64)
            case TupleType(fields):
                inside = [
                    self.gradient(builder, value[i], field, leaves)
                    for i, field in enumerate(fields)
                ]
                return builder.tuple(inside)
            case AdtType():
                general, dims = skeleton(ty)
                function = self._gradient_function(general)
                given = [value]
                for ct_type in self._leaves.of(ty):
                    leaf = next(leaves)
                    zero = self._cotangents.zero
                    given.append(zero(builder, ct_type) if leaf is None else builder.value(leaf))
                return builder.apply(function, given, ty, dims)
            case _:
                return value

    def of_result(self, out: Value, leaves: Iterator[Expr | None]) -> Value:
        """Return leaves in the form of an operator's result; unit stands where there is none."""
        if isinstance(out.ty, AdtType):
            return self.gradient(out.builder, out, out.ty, leaves)
        return _of_tensors(out.builder, out.ty, leaves)

    def incoming(self, builder: Builder, value: Value, ty: Type) -> list[Expr]:
        """Return the leaves of a cotangent that a user made in the value's own type."""
        match ty:
            case TensorType(_, dtype):
                return [value.atom] if is_float(dtype) else []
            case TupleType(fields):
                found: list[Expr] = []
                for index, field in enumerate(fields):
                    if self._leaves.width(field):
                        found += self.incoming(builder, value[index], field)
                return found
            case AdtType():
                leaves = self._leaves.of(ty)
                if not leaves:
                    return []
                general, dims = skeleton(ty)
                function = self._incoming_function(general)
                return [builder.apply(function, (value,), leaves[0], dims).atom]
            case _:
                return []

    def anywhere(self, builder: Builder, value: Value) -> list[Expr]:
        """Return the leaves of some cotangent of a value, with all of its structure: what is linear
        in a cotangent has the same derivative everywhere. They are ones, and of data the data
        themselves. At zero a rule that iterates until its result stands still would not iterate,
        and the symbolic zero of a data type has no parts that a derivative could be taken in."""
        own = self.incoming(builder, value, value.ty)
        types = self._leaves.of(value.ty)
        return [self._ones(builder, t, o) for t, o in zip(types, own, strict=True)]

    def _ones(self, builder: Builder, leaf: Type, own: Expr) -> Expr:
        if not isinstance(leaf, TensorType):
            return own
        attrs = {"size": leaf.shape, "fill_value": 1.0, "dtype": known_dtype(leaf)}
        return builder.call(full, (), attrs).atom

    # Functions over data. Each is asked for by the type it is for, with parameters as arguments.

    def _gradient_function(self, ty: AdtType) -> str:
        if ty not in self._gradients:
            self._gradients[ty] = self._store.function_name(f"gradient_{ty.name}")
            function = self._define_gradient(ty, self._gradients[ty])
            self._store.functions[self._gradients[ty]] = function
        return self._gradients[ty]

    def _define_gradient(self, ty: AdtType, name: str) -> Function:
        definition = self._store.adts[ty.name]
        span = definition.span.derived("gradient of a data value")
        names = Names()
        value = Var(names.fresh("value"), ty, span=span)
        ct_types = self._leaves.of(ty)
        params = (value, *(Var(names.fresh("ct"), t, span=span) for t in ct_types))
        clauses: list[Clause] = []
        for constructor in definition.constructors:
            fields = self._field_vars(ty, constructor, names, span)
            builder = Builder(span, names)
            given = self._opened(builder, params[1:], ty, constructor, fields)
            inside = [self.gradient(builder, builder.value(f), type_of(f), given) for f in fields]
            result = builder.construct(ty.name, constructor.name, inside, ty)
            pattern = field_pattern(ty.name, constructor, fields, span)
            clauses.append(Clause(pattern, builder.block(result)))
        body = Match(value, tuple(clauses), ty=ty, span=span)
        return _function(name, params, body, ty, span)

    def _opened(
        self,
        builder: Builder,
        ct: tuple[Var, ...],
        ty: AdtType,
        constructor: ConstructorDef,
        fields: tuple[Var, ...],
    ) -> Iterator[Expr | None]:
        """Return the cotangents of all leaves of the fields: those of `ct`, or zeros."""
        leaves = [leaf for f in fields for leaf in self._leaves.of(type_of(f))]
        if not ct or not leaves:
            return iter(())
        ct_type = type_of(ct[0])
        assert isinstance(ct_type, AdtType)
        name = self._leaves.constructor(ct_type, ty, constructor.name)
        if name is None:
            return iter([None] * len(leaves))
        span, names = builder.span, builder.names
        known = self._store.adts[ct_type.name].constructor(name)
        opened = open_fields(known, names, span, leaves)
        held, zeros = Builder(span, names), Builder(span, names)
        holding = held.tuple([held.value(v) for v in opened])
        none = zeros.tuple([self._cotangents.zero(zeros, leaf) for leaf in leaves])
        whole = Match(
            ct[0],
            (
                Clause(field_pattern(ct_type.name, known, opened, span), held.block(holding)),
                Clause(Wildcard(span=span), zeros.block(none)),
            ),
            ty=holding.ty,
            span=span,
        )
        bound = builder.bind(whole, "ct")
        return iter([bound[i].atom for i in range(len(leaves))])

    def _incoming_function(self, ty: AdtType) -> str:
        if ty not in self._incoming:
            self._incoming[ty] = self._store.function_name(f"cotangent_{ty.name}")
            function = self._define_incoming(ty, self._incoming[ty])
            self._store.functions[self._incoming[ty]] = function
        return self._incoming[ty]

    def _define_incoming(self, ty: AdtType, name: str) -> Function:
        definition = self._store.adts[ty.name]
        span = definition.span.derived("cotangent of a data value")
        names = Names()
        value = Var(names.fresh("value"), ty, span=span)
        (ct_type,) = self._leaves.of(ty)
        assert isinstance(ct_type, AdtType)
        clauses: list[Clause] = []
        for constructor in definition.constructors:
            fields = self._field_vars(ty, constructor, names, span)
            builder = Builder(span, names)
            made = self._leaves.constructor(ct_type, ty, constructor.name)
            if made is None:
                result = self._cotangents.zero(builder, ct_type)
            else:
                leaves = [
                    builder.value(leaf)
                    for f in fields
                    for leaf in self.incoming(builder, builder.value(f), type_of(f))
                ]
                result = builder.construct(ct_type.name, made, leaves, ct_type)
            pattern = field_pattern(ty.name, constructor, fields, span)
            clauses.append(Clause(pattern, builder.block(result)))
        body = Match(value, tuple(clauses), ty=ct_type, span=span)
        return _function(name, (value,), body, ct_type, span)

    def _field_vars(
        self, ty: AdtType, constructor: ConstructorDef, names: Names, span: Span
    ) -> tuple[Var, ...]:
        types = self._leaves.fields(ty, constructor.name)
        return open_fields(constructor, names, span, types)


def _function(name: str, params: tuple[Var, ...], body: Expr, result: Type, span: Span) -> Function:
    types = tuple(type_of(p) for p in params)
    ty = params[0].ty
    assert isinstance(ty, AdtType)
    type_params = tuple(DimVar(f"dim_{i}") for i in range(len(skeleton(ty)[1])))
    return Function(
        params, body, result, type_params, name, ty=FnType(types, result, type_params), span=span
    )


def _of_tensors(builder: Builder, ty: Type, leaves: Iterator[Expr | None]) -> Value:
    match ty:
        case TensorType(_, dtype) if is_float(dtype):
            leaf = next(leaves)
            return builder.zeros(ty) if leaf is None else builder.value(leaf)
        case TupleType(fields) if fields:
            inside = tuple(_of_tensors(builder, f, leaves).atom for f in fields)
            # Not bound: a rule takes the fields it needs, and those alone are saved or computed.
            return Value(builder, Tuple(inside, ty, span=builder.span))
        case _:
            return builder.unit()
