"""`relay.tree_map(f, a, b)`: code that takes apart values of the types that inference found.

For each data type in the trees a local recursive function matches all of them at once and makes a
value of the first's constructor. `f` is called for tensors of floats, a copy of it for each type of
tensor; all other leaves are those of the first tree.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final, final

from ...ir.expr import (
    Binding,
    BindPattern,
    Call,
    Clause,
    Constructor,
    ConstructorPattern,
    Expr,
    Flavour,
    Function,
    LetBlock,
    Match,
    Tuple,
    TupleGet,
    TuplePattern,
    Var,
    Wildcard,
)
from ...ir.op import Clash, Stuck
from ...ir.traverse import refresh
from ...ir.types import (
    AdtType,
    DTypeHole,
    DTypeKind,
    TensorType,
    TupleType,
    Type,
    TypeHole,
    is_float,
    show,
    substitution,
    subtypes,
)
from ...operators.host.failing import fail

if TYPE_CHECKING:
    from ...diagnostics.source import Span
    from ...ir.module import AdtDef

DIFFERENT: Final = "the trees have different structures"


def mapped(
    function: Expr, trees: Sequence[tuple[Expr, Type]], adts: Mapping[str, AdtDef], span: Span
) -> Expr:
    """Return the map of a function over trees: atoms, with their types as far as known.

    Raises Stuck while a type is not known, and Clash.
    """
    walk = _Walk(function, adts, span)
    types = [ty for _, ty in trees]
    for ty in types:
        for part in subtypes(ty):
            if isinstance(part, TypeHole):
                raise Stuck(part)
    body = walk.value([atom for atom, _ in trees], types)
    if not walk.functions:
        return body
    return LetBlock(tuple(walk.functions.values()), body, Flavour.REC, span=span)


@final
class _Walk:
    """One map."""

    def __init__(self, function: Expr, adts: Mapping[str, AdtDef], span: Span) -> None:
        self._function: Final = function
        self._adts: Final = adts
        self._span: Final = span
        self.functions: Final[dict[tuple[Type, ...], Binding]] = {}
        self._names: Final[dict[tuple[Type, ...], Var]] = {}

    def value(self, trees: Sequence[Expr], types: Sequence[Type]) -> Expr:
        """Return the map over atoms of types."""
        match types[0]:
            case TensorType(_, dtype) if _may_be_float(dtype):
                function = self._function
                callee = refresh(function) if isinstance(function, Function) else function
                return Call(callee, tuple(trees), span=self._span)
            case TupleType(fields):
                return self._tuple(trees, types, len(fields))
            case AdtType():
                return Call(self._named(tuple(types)), tuple(trees), span=self._span)
            case _:
                return trees[0]

    def _tuple(self, trees: Sequence[Expr], types: Sequence[Type], count: int) -> Expr:
        fields: list[Expr] = []
        for place in range(count):
            inside: list[Type] = []
            for ty in types:
                if not isinstance(ty, TupleType) or len(ty.fields) != count:
                    raise self._mismatch(types)
                inside.append(ty.fields[place])
            parts = [TupleGet(t, place, span=self._span) for t in trees]
            fields.append(self.value(parts, inside))
        return Tuple(tuple(fields), span=self._span)

    def _named(self, types: tuple[Type, ...]) -> Var:
        """Return the function that maps values of data types; the first call for them defines
        it."""
        first = types[0]
        assert isinstance(first, AdtType)
        if types not in self._names:
            for ty in types:
                if not isinstance(ty, AdtType) or ty.name != first.name:
                    raise self._mismatch(types)
            self._names[types] = Var(f"map_{first.name}", span=self._span)
            self.functions[types] = Binding(self._names[types], self._define(types, first))
        return self._names[types]

    def _define(self, types: tuple[Type, ...], first: AdtType) -> Function:
        span = self._span
        params = tuple(Var("tree", ty, span=span) for ty in types)
        definition = self._adts[first.name]
        clauses: list[Clause] = []
        for constructor in definition.constructors:
            opened = [tuple(Var("part", span=span) for _ in constructor.fields) for _ in types]
            patterns = tuple(
                ConstructorPattern(
                    first.name,
                    constructor.name,
                    tuple(BindPattern(v, span=span) for v in fields),
                    span=span,
                )
                for fields in opened
            )
            made: list[Expr] = []
            for place, field in enumerate(constructor.fields):
                inside = [_at(definition, field, ty) for ty in types]
                made.append(self.value([fields[place] for fields in opened], inside))
            callee = Constructor(first.name, constructor.name, span=span)
            clauses.append(
                Clause(TuplePattern(patterns, span=span), Call(callee, tuple(made), span=span))
            )
        if len(types) > 1 and len(definition.constructors) > 1:
            differ = Call(fail, (), {"message": DIFFERENT}, span=span)
            clauses.append(Clause(Wildcard(span=span), differ))
        # Of a type without constructors there is no value, and each parameter alone shows that.
        matched = Tuple(params, span=span) if clauses else params[0]
        body = Match(matched, tuple(clauses), span=span)
        return Function(params, body, first, name=f"map_{first.name}", span=span)

    def _mismatch(self, types: Sequence[Type]) -> Clash:
        shown = " and ".join(show(ty) for ty in types)
        return Clash(f"`tree_map` takes trees of one type, not {shown}")


def _at(definition: AdtDef, field: Type, ty: Type) -> Type:
    assert isinstance(ty, AdtType)
    return substitution(definition.type_params, ty.args)(field)


def _may_be_float(dtype: object) -> bool:
    if isinstance(dtype, DTypeHole):
        return dtype.weak is DTypeKind.FLOAT
    return is_float(dtype)  # pyright: ignore[reportArgumentType]  a dtype or a hole
