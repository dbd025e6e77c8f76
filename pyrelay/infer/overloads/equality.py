"""`relay.equal(a, b)` of data: code that compares values of the types that inference found.

For each pair of data types a local recursive function matches both values at once and compares
their fields, those that end first. Sizes are no part of the question: tensors of different sizes
are different. Whatever else two types must have in common is checked here. Data whose sizes only a
pattern around names can be no parameter of a local function, and is compared while it runs.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final, final

from ...ir.dims import Dim
from ...ir.expr import (
    Binding,
    BindPattern,
    Call,
    Clause,
    Constant,
    ConstructorPattern,
    Expr,
    Flavour,
    Function,
    If,
    LetBlock,
    Match,
    Tuple,
    TupleGet,
    TuplePattern,
    Var,
    Wildcard,
)
from ...ir.op import Clash, Stuck
from ...ir.types import (
    BOOL,
    UNIT,
    AdtType,
    FnType,
    RefType,
    SizeType,
    StrType,
    Substitution,
    TensorType,
    TupleType,
    Type,
    TypeHole,
    TypeVar,
    dim_names,
    show,
    substitution,
)
from ...operators.host.whole import same_values
from ...operators.primitive.compare import array_equal, equal
from ...prelude.library import inner_of

if TYPE_CHECKING:
    from ...diagnostics.source import Span
    from ...ir.module import AdtDef, ConstructorDef
    from ..solver import Solver

_PARTS: Final = "compare the parts that are tensors, numbers, strings or data"

_NESTED: Final = 8
"""How often a data type may stand inside itself at other arguments; those that grow never end."""


def is_data(ty: Type) -> bool:
    """Return whether values of a type are compared whole, not element by element."""
    return isinstance(ty, AdtType | TupleType | StrType | TypeVar)


def compared(
    pair: tuple[Expr, Expr],
    types: tuple[Type, Type],
    solver: Solver,
    adts: Mapping[str, AdtDef],
    span: Span,
) -> Expr:
    """Return the comparison of two atoms. Raises Stuck while a type is not known, and Clash."""
    walk = _Walk(solver, adts, span)
    body = walk.value(pair, types)
    if not walk.functions:
        return body
    return LetBlock(tuple(walk.functions.values()), body, Flavour.REC, span=span)


@final
class _Walk:
    """One comparison."""

    def __init__(
        self,
        solver: Solver,
        adts: Mapping[str, AdtDef],
        span: Span,
        checked: set[tuple[Type, Type]] | None = None,
    ) -> None:
        self._solver: Final = solver
        self._adts: Final = adts
        self._span: Final = span
        self.functions: Final[dict[tuple[Type, Type], Binding]] = {}
        self._names: Final[dict[tuple[Type, Type], Var]] = {}
        self._hidden: Final[set[str]] = set()
        self._checked: Final[set[tuple[Type, Type]]] = set() if checked is None else checked
        self._around: Final[list[AdtType]] = []

    def value(self, pair: tuple[Expr, Expr], types: tuple[Type, Type]) -> Expr:
        """Return whether two atoms of types are equal."""
        left, right = (self._solver.shallow(ty) for ty in types)
        if isinstance(left, TypeHole) or isinstance(right, TypeHole):
            left, right = self._settled(left, right)
        match left, right:
            case ((TensorType() | SizeType()), (TensorType() | SizeType())):
                is_number = not any(isinstance(t, TensorType) and t.shape for t in (left, right))
                return Call(equal if is_number else array_equal, pair, span=self._span)
            case StrType(), StrType():
                return Call(equal, pair, span=self._span)
            case TypeVar(name), TypeVar(other) if name == other:
                return Call(same_values, pair, span=self._span)
            case TupleType(a), TupleType(b) if len(a) == len(b):
                return self._tuple(pair, a, b)
            case AdtType(name), AdtType(other) if name == other:
                return self._data(pair, (left, right))
            case _ if inner_of(left) is not None:
                return self._optional(pair, left, right)
            case _ if inner_of(right) is not None:
                return self._optional((pair[1], pair[0]), right, left)
            case _:
                raise _refusal(left, right)

    def _data(self, pair: tuple[Expr, Expr], types: tuple[AdtType, AdtType]) -> Expr:
        if not any(map(self._is_hidden, types)):
            return Call(self._function(types), pair, span=self._span)
        if types not in self._checked:
            self._checked.add(types)
            _Walk(self._solver, self._adts, self._span, self._checked).value(pair, types)
        return Call(same_values, pair, span=self._span)

    def _is_hidden(self, ty: Type) -> bool:
        """Return whether the type mentions sizes that only a pattern around names."""
        names = dim_names(self._solver.resolve(ty))
        return any(n in self._hidden or self._solver.is_existential(n) for n in names)

    def _settled(self, left: Type, right: Type) -> tuple[Type, Type]:
        """Return types one of which determines the other, once nothing else does. Raises Stuck."""
        if not self._solver.settling or isinstance(left, TypeHole) is isinstance(right, TypeHole):
            raise Stuck(left if isinstance(left, TypeHole) else right)
        self._solver.unify(left, right)
        return self._solver.shallow(left), self._solver.shallow(right)

    def _tuple(
        self, pair: tuple[Expr, Expr], left: tuple[Type, ...], right: tuple[Type, ...]
    ) -> Expr:
        fields = [
            (self._field(pair[0], i), self._field(pair[1], i), a, b)
            for i, (a, b) in enumerate(zip(left, right, strict=True))
        ]
        return self._all(fields)

    def _field(self, value: Expr, index: int) -> Expr:
        return TupleGet(value, index, span=self._span)

    def _all(self, fields: list[tuple[Expr, Expr, Type, Type]]) -> Expr:
        """Return whether all pairs are equal; those of data come last, so a list is a loop."""
        shallow = self._solver.shallow
        ordered = sorted(fields, key=lambda f: isinstance(shallow(f[2]), AdtType))
        tests = [self.value((a, b), (s, t)) for a, b, s, t in ordered]
        found = tests.pop() if tests else self._bool(value=True)
        for test in reversed(tests):
            found = If(test, found, self._bool(value=False), span=self._span)
        return found

    def _bool(self, *, value: bool) -> Expr:
        return Constant(value, span=self._span)

    def _optional(self, pair: tuple[Expr, Expr], optional: Type, other: Type) -> Expr:
        """Return whether an optional has a value that is equal to another that is no optional."""
        assert isinstance(optional, AdtType)
        inner = inner_of(optional)
        assert inner is not None
        some, none = self._adts[optional.name].constructors
        var = Var("value", span=self._span)
        is_none = other == UNIT
        found = self._bool(value=False) if is_none else self.value((var, pair[1]), (inner, other))
        clauses = (
            Clause(self._pattern(optional, some, [var]), found),
            Clause(self._pattern(optional, none, []), self._bool(value=is_none)),
        )
        return Match(pair[0], clauses, span=self._span)

    def _pattern(
        self, ty: AdtType, constructor: ConstructorDef, fields: list[Var]
    ) -> ConstructorPattern:
        inside = tuple(BindPattern(v, span=self._span) for v in fields)
        return ConstructorPattern(ty.name, constructor.name, inside, span=self._span)

    def _function(self, types: tuple[AdtType, AdtType]) -> Var:
        """Return the function that compares values of data types; the first call defines it."""
        resolved = (self._solver.resolve(types[0]), self._solver.resolve(types[1]))
        if resolved not in self._names:
            name = f"equal_{types[0].name.removeprefix('prelude.')}"
            self._names[resolved] = Var(name, span=self._span)
            self.functions[resolved] = Binding(self._names[resolved], self._define(name, types))
        return self._names[resolved]

    def _define(self, name: str, types: tuple[AdtType, AdtType]) -> Function:
        span = self._span
        params = (Var("left", types[0], span=span), Var("right", types[1], span=span))
        definition = self._adts[types[0].name]
        same = [ty for ty in self._around if ty.name == types[0].name]
        if len(same) == _NESTED:
            what = f"{show(self._solver.resolve(same[0]))} has other types of its kind inside"
            raise Clash(f"{what}, without end", help="write a @relay function that compares them")
        self._around.append(types[0])
        clauses = [self._clause(c, definition, types) for c in definition.constructors]
        self._around.pop()
        if len(clauses) > 1:
            clauses.append(Clause(Wildcard(span=span), self._bool(value=False)))
        # Of a type without constructors there is no value, and each parameter alone shows that.
        matched = Tuple(params, span=span) if clauses else params[0]
        body = Match(matched, tuple(clauses), span=span)
        return Function(params, body, BOOL, name=name, span=span)

    def _clause(
        self, constructor: ConstructorDef, definition: AdtDef, types: tuple[AdtType, AdtType]
    ) -> Clause:
        at = [self._inside(constructor, definition, ty) for ty in types]
        fields = [
            (Var("a", span=self._span), Var("b", span=self._span), at[0](field), at[1](field))
            for field in constructor.fields
        ]
        for name, (_, _, ty, _) in zip(constructor.field_names, fields, strict=False):
            if isinstance(ty, FnType | RefType):
                what = f"the field `{name}` of `{constructor.name}`"
                raise Clash(f"{what} is {show(ty)}, which is not compared", help=_PARTS)
        patterns = (
            self._pattern(types[0], constructor, [f[0] for f in fields]),
            self._pattern(types[1], constructor, [f[1] for f in fields]),
        )
        return Clause(TuplePattern(patterns, span=self._span), self._all([*fields]))

    def _inside(self, constructor: ConstructorDef, definition: AdtDef, ty: AdtType) -> Substitution:
        """Return the substitution of the parameters of a type, which also gives sizes of a
        constructor's own names that are in no other type."""
        found = substitution(definition.type_params, ty.args)
        for name in sorted(n for field in constructor.fields for n in dim_names(field)):
            if name not in found.dims:
                found.dims[name] = Dim.of(f"{name} in {constructor.name}")
                self._hidden.update(found.dims[name].names())
        return found


def _refusal(left: Type, right: Type) -> Clash:
    """Return why values of two types are not compared."""
    if type(left) is type(right) and not isinstance(left, AdtType | TupleType | TypeVar):
        return Clash(f"values of type {show(left)} are not compared", help=_PARTS)
    return Clash(
        f"only values of one type are compared, not {show(left)} and {show(right)}",
        help="values of these types are never equal: compare a part of one with the other",
    )
