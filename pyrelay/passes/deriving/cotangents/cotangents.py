"""Arithmetic of cotangents: the zero of a leaf, the sum of two, and sums of generated data.

The sum of two values of a cotangent data type is a generated recursive function. It stops where
one side is `zero`, so it visits only what both sides hold.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, final

from ....diagnostics.source import NOWHERE, Span
from ....ir.expr import (
    BindPattern,
    Clause,
    ConstructorPattern,
    Expr,
    Function,
    Match,
    Var,
    Wildcard,
    type_of,
)
from ....ir.names import Names
from ....ir.types import AdtType, FnType, TensorType, Type, as_arguments
from ....operators.builder import Builder, Value

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ....ir.module import AdtDef, ConstructorDef
    from ..leaves import Leaves
    from ..store import Store


@final
class Cotangents:
    """Makes zeros and sums in a builder; defines the functions that sums of data need."""

    def __init__(self, store: Store, leaves: Leaves) -> None:
        self._store: Final = store
        self.leaves: Final = leaves
        self._adders: Final[dict[str, str]] = {}
        self._pending: Final[list[str]] = []

    def zero(self, builder: Builder, leaf: Type) -> Value:
        """Return the zero of a leaf, whose sizes must be known where the code stands."""
        if isinstance(leaf, TensorType):
            return builder.zeros(leaf)
        assert isinstance(leaf, AdtType)
        return builder.construct(leaf.name, self.leaves.data(leaf).zero, (), leaf)

    def add(self, builder: Builder, leaf: Type, left: Expr, right: Expr) -> Value:
        """Return the sum of two cotangents of a leaf."""
        a, b = builder.value(left), builder.value(right)
        if isinstance(leaf, TensorType):
            return a + b
        assert isinstance(leaf, AdtType)
        adder = self._adder(leaf.name)
        self._define_pending()
        return builder.apply(adder, (a, b), leaf, leaf.args)

    def _adder(self, name: str) -> str:
        if name not in self._adders:
            self._adders[name] = self._store.function_name(f"add_{name}")
            self._pending.append(name)
        return self._adders[name]

    def _define_pending(self) -> None:
        while self._pending:
            name = self._pending.pop()
            self._store.functions[self._adders[name]] = self._define(self._store.adts[name])

    def _define(self, adt: AdtDef) -> Function:
        """Return `fn (a, b)`: on a match of both sides the sums of their fields, else the side that
        is not zero."""
        span = NOWHERE.derived("sum of cotangents")
        names = Names()
        ty = AdtType(adt.name, as_arguments(adt.type_params))
        a, b = (Var(names.fresh(n), ty, span=span) for n in "ab")
        clauses = [
            self._clause(adt, constructor, a, b, names)
            for constructor in adt.constructors
            if constructor.fields
        ]
        clauses.append(Clause(Wildcard(span=span), b))
        body = Match(a, tuple(clauses), ty=ty, span=span)
        return Function(
            (a, b),
            body,
            ty,
            adt.type_params,
            self._adders[adt.name],
            ty=FnType((ty, ty), ty, adt.type_params),
            span=span,
        )

    def _clause(
        self, adt: AdtDef, constructor: ConstructorDef, a: Var, b: Var, names: Names
    ) -> Clause:
        """Return the sum with an `a` of a constructor: with a `b` of the same one the sums of their
        fields, else itself."""
        span, ty = a.span, type_of(a)
        assert isinstance(ty, AdtType)
        left, right = (open_fields(constructor, names, span) for _ in "ab")
        builder = Builder(span, names)
        sums: list[Value] = []
        for leaf, x, y in zip(constructor.fields, left, right, strict=True):
            operands = (builder.value(x), builder.value(y))
            if isinstance(leaf, TensorType):
                sums.append(operands[0] + operands[1])
                continue
            assert isinstance(leaf, AdtType)
            sums.append(builder.apply(self._adder(leaf.name), operands, leaf, leaf.args))
        total = builder.construct(adt.name, constructor.name, sums, ty)
        both = (
            Clause(field_pattern(adt.name, constructor, right, span), builder.block(total)),
            Clause(Wildcard(span=span), a),
        )
        inner = Match(b, both, ty=ty, span=span)
        return Clause(field_pattern(adt.name, constructor, left, span), inner)


def open_fields(
    constructor: ConstructorDef, names: Names, span: Span, types: Sequence[Type] | None = None
) -> tuple[Var, ...]:
    """Return new variables for the fields of a constructor."""
    wanted = constructor.fields if types is None else types
    return tuple(Var(names.fresh("d"), ty, span=span) for ty in wanted)


def field_pattern(
    adt: str, constructor: ConstructorDef, fields: Sequence[Var], span: Span
) -> ConstructorPattern:
    """Return the pattern that binds the fields of a constructor."""
    inside = tuple(BindPattern(v, span=span) for v in fields)
    return ConstructorPattern(adt, constructor.name, inside, span=span)
