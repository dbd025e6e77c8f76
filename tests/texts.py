"""Random modules for the text form: every node, type, pattern and name, in scope but seldom typed.

Unlike `strategies.programs` these need not mean anything; they say what can be written down.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any, Final, TypeAlias

from hypothesis import strategies as st

from pyrelay.diagnostics.source import SourceFile, Span
from pyrelay.ir.bounds import maximum, minimum
from pyrelay.ir.dims import Dim, DimVar
from pyrelay.ir.expr import (
    Assumption,
    Binding,
    BindPattern,
    Call,
    Clause,
    Constant,
    Constructor,
    ConstructorPattern,
    Differentiation,
    Expr,
    Flavour,
    Function,
    GlobalVar,
    If,
    LetBlock,
    LiteralPattern,
    Match,
    Pattern,
    RefCreate,
    RefRead,
    RefWrite,
    Rule,
    TensorData,
    Transform,
    Tuple,
    TupleGet,
    TuplePattern,
    Var,
    Wildcard,
)
from pyrelay.ir.module import AdtDef, ConstructorDef, Module
from pyrelay.ir.transforms import OPTIONS, RULE_COUNTS, Batching, Options
from pyrelay.ir.traverse import pattern_vars
from pyrelay.ir.types import (
    DTYPES,
    STR,
    AdtType,
    FnType,
    RefType,
    SizeType,
    TensorType,
    TupleType,
    Type,
    TypeParam,
    TypeVar,
    bfloat16,
    float32,
    is_float,
)
from pyrelay.operators.table import BY_NAME

FILE: Final = SourceFile("some file.py", "x" * 1000)
NAMES: Final = st.sampled_from(
    (
        "x",
        "y",
        "x_1",
        "self",
        "match",
        "fn",
        "let",
        "a b",
        "`",
        "%",
        "λ",
        "1",
        "inf",
        "nan32",
        "float32",
        "Tensor",
        "max",
        "_",
        "ref",
        "@",
        'say "hi"',
        "\\",
        "\n",
        "None",
        "prelude.x",
    )
)
STRINGS: Final = st.text(max_size=6) | st.sampled_from(('"', "\\n", "\x00", "\u2028", "// no", "`"))
Draw: TypeAlias = Callable[[st.SearchStrategy[Any]], Any]


@st.composite
def modules(draw: Draw) -> Module:
    """Draw a module of a few data types and functions."""
    return _Maker(draw).module()


class _Maker:
    def __init__(self, draw: Draw) -> None:
        self._draw = draw
        self._adts: dict[str, AdtDef] = {}
        self._globals: list[str] = []
        self._vars: list[Var] = []
        self._params: list[TypeParam] = []

    def choose(self, *options: Any) -> Any:
        return self._draw(st.sampled_from(options))

    def number(self, high: int) -> int:
        return self._draw(st.integers(0, high))

    def names(self, high: int) -> list[str]:
        return self._draw(st.lists(NAMES, max_size=high, unique=True))

    def span(self) -> Span:
        start = self.number(500)
        because = self.choose("", "", "gradient of f", 'a "reason"\n')
        return Span(FILE, start, start + self.number(9), because)

    def module(self) -> Module:
        names = self.names(3)
        arities = {n: self.params() for n in names}
        for name, params in arities.items():
            self._adts[name] = AdtDef(name, params, (), self.span())
        for name, params in arities.items():
            self._params = list(params)
            self._adts[name] = AdtDef(name, params, self.constructors(), self.span())
        self._params = []
        self._globals = self._draw(st.lists(NAMES, min_size=1, max_size=3, unique=True))
        functions = {n: self.function(n) for n in self._globals}
        return Module(functions, dict(self._adts), self._draw(st.booleans()))

    def params(self) -> tuple[TypeParam, ...]:
        return tuple(DimVar(n) if self._draw(st.booleans()) else TypeVar(n) for n in self.names(2))

    def constructors(self) -> tuple[ConstructorDef, ...]:
        found: list[ConstructorDef] = []
        for name in self.names(3):
            fields = tuple(self.type(2) for _ in range(self.number(2)))
            named = self._draw(st.booleans())
            labels = self._draw(
                st.lists(NAMES, min_size=len(fields), max_size=len(fields), unique=True)
            )
            found.append(ConstructorDef(name, fields, tuple(labels) if named else ()))
        return tuple(found)

    # Types.

    def dim(self, depth: int = 2) -> Dim:
        if depth == 0 or self.number(2) == 0:
            bound = [p.name for p in self._params if isinstance(p, DimVar)]
            return Dim.of(self.choose(0, 1, 7, "N", "M", *bound))
        left, right = self.dim(depth - 1), self.dim(depth - 1)
        match self.number(6):
            case 0:
                return left + right
            case 1:
                return left - right
            case 2:
                return left * right
            case 3:
                return left // (right if right.constant != 0 else Dim.of(7))
            case 4:
                return left % (right if right.constant != 0 else Dim.of(7))
            case 5:
                return minimum(left, right)
            case _:
                return maximum(left, right)

    def type(self, depth: int = 3) -> Type:
        if depth == 0:
            return self.choose(STR, TensorType((), float32), SizeType(self.dim()))
        inner = depth - 1
        match self.number(7):
            case 0 | 1:
                dtype = self.choose(*DTYPES.values())
                return TensorType(tuple(self.dim() for _ in range(self.number(3))), dtype)
            case 2:
                return TupleType(tuple(self.type(inner) for _ in range(self.number(3))))
            case 3:
                own = self.params()
                self._params += own
                params = tuple(self.type(inner) for _ in range(self.number(2)))
                found = FnType(params, self.type(inner), own)
                del self._params[len(self._params) - len(own) :]
                return found
            case 4:
                return RefType(self.type(inner))
            case 5 if self._adts:
                adt = self.choose(*self._adts.values())
                args = (
                    self.dim() if isinstance(p, DimVar) else self.type(inner)
                    for p in adt.type_params
                )
                return AdtType(adt.name, tuple(args))
            case 6:
                return TypeVar(self._draw(NAMES))
            case _:
                return self.type(0)

    def maybe_type(self) -> Type | None:
        return self.type() if self._draw(st.booleans()) else None

    # Expressions.

    def var(self) -> Var:
        return Var(self._draw(NAMES), self.maybe_type(), span=self.span())

    def variables(self, count: int) -> tuple[Var, ...]:
        return tuple(self.var() for _ in range(count))

    def inside(self, variables: tuple[Var, ...], depth: int) -> Expr:
        """Return an expression that sees variables."""
        self._vars += variables
        found = self.expr(depth)
        if variables:
            del self._vars[-len(variables) :]
        return found

    def function(self, name: str = "", depth: int = 3) -> Function:
        own = self.params()
        self._params += own
        params = self.variables(self.number(2))
        assumptions = tuple(
            Assumption(self.dim(), self.dim(), span=self.span()) for _ in range(self.number(1))
        )
        body = self.inside(params, depth)
        result = self.maybe_type()
        if own:
            del self._params[-len(own) :]
        return Function(params, body, result, own, name, assumptions, span=self.span())

    def atom(self) -> Expr:
        options: list[Callable[[], Expr]] = [self.constant, self.constant]
        options.append(lambda: Tuple((), span=self.span()))
        options.append(lambda: GlobalVar(self.choose(*self._globals), span=self.span()))
        if self._vars:
            options += [lambda: self.choose(*self._vars)] * 3
        made = [(a.name, c.name) for a in self._adts.values() for c in a.constructors]
        if made:
            options.append(lambda: Constructor(*self.choose(*made), span=self.span()))
        return self.choose(*options)()

    def constant(self) -> Constant:
        span = self.span()
        match self.number(5):
            case 0:
                return Constant(self._draw(st.booleans()), span=span)
            case 1:
                return Constant(self._draw(STRINGS), span=span)
            case 2:
                return Constant(self._draw(st.integers(-(2**70), 2**70)), span=span)
            case 3:
                dtype = self.choose(None, *(d for d in DTYPES.values() if is_float(d)))
                ty = None if dtype is None else TensorType((), dtype)
                return Constant(self._draw(st.floats()), ty, span=span)
            case 4:
                value = self.number(9)
                return Constant(value, SizeType(Dim.of(value)), span=span)
            case _:
                return self.tensor()

    def tensor(self) -> Constant:
        shape = self.choose((), (0,), (2,), (2, 2), (20,))
        count = 1
        for size in shape:
            count *= size
        values = self._draw(st.lists(st.floats(width=32), min_size=count, max_size=count))
        dtype, data = float32, struct.pack(f"<{count}f", *values)
        if self._draw(st.booleans()):
            dtype, data = bfloat16, data[: 2 * count]
        ty = TensorType(tuple(map(Dim.of, shape)), dtype)
        return Constant(TensorData(dtype, shape, data), ty, span=self.span())

    def expr(self, depth: int) -> Expr:  # noqa: C901  one case a node
        if depth == 0:
            return self.atom()
        inner, span = depth - 1, self.span()
        match self.number(13):
            case 0:
                return Tuple(self.exprs(inner), span=span)
            case 1:
                return TupleGet(self.expr(inner), self.number(3), span=span)
            case 2 | 3:
                op = self.choose(*BY_NAME.values())
                args = tuple(self.expr(inner) for _ in op.operands)
                return Call(op, args, self.attrs(inner), span=span)
            case 4:
                types = tuple(
                    self.type(1) if self._draw(st.booleans()) else self.dim()
                    for _ in range(self.number(2))
                )
                return Call(self.expr(inner), self.exprs(inner), type_args=types, span=span)
            case 5:
                return If(self.expr(inner), self.expr(inner), self.expr(inner), span=span)
            case 6:
                return self.function(depth=inner)
            case 7:
                return RefCreate(self.expr(inner), span=span)
            case 8:
                return RefRead(self.expr(inner), span=span)
            case 9:
                return RefWrite(self.expr(inner), self.expr(inner), span=span)
            case 10:
                clauses = tuple(self.clause(inner) for _ in range(self.number(3)))
                return Match(self.expr(inner), clauses, self._draw(st.booleans()), span=span)
            case 11 | 12:
                return self.let(inner)
            case _:
                return self.transform(inner)

    def transform(self, depth: int) -> Transform:
        rule, captures = self.choose(*Rule), self.number(3)
        options: Options
        if OPTIONS[rule] is Batching:
            options = Batching(self.choose(0, None, -1, (0, None), ((1, 0), 2)), self.choose(0, 1))
        else:
            flags = self._draw(st.booleans()), self._draw(st.booleans())
            options = Differentiation(self.choose(None, (0,), (0, 2), ()), *flags)
        function = self.expr(depth)
        rules = tuple(self.expr(depth) for _ in range(RULE_COUNTS.get(rule, 0)))
        span = self.span()
        return Transform(rule, function, options, captures, rules=rules, span=span)

    def exprs(self, depth: int) -> tuple[Expr, ...]:
        return tuple(self.expr(depth) for _ in range(self.number(3)))

    def attrs(self, depth: int) -> dict[str, Any]:
        return {name: self.attribute(depth) for name in self.names(2)}

    def attribute(self, depth: int) -> Any:
        match self.number(6):
            case 0:
                return self.choose(None, True, False, 3, -4, 0.5, float("-inf"))
            case 1:
                return self._draw(STRINGS)
            case 2:
                return self.dim()
            case 3:
                return self.choose(*DTYPES.values())
            case 4:
                return tuple(self.attribute(depth) for _ in range(self.number(2)))
            case 5:
                return self.expr(depth)
            case _:
                return self.type(1)

    def let(self, depth: int) -> LetBlock:
        flavour = self.choose(*Flavour)
        variables = self.variables(1 + self.number(2))
        if flavour is Flavour.REC:
            names: set[str] = set()
            variables = tuple(v for v in variables if not (v.name in names or names.add(v.name)))
        before = len(self._vars)
        bindings: list[Binding] = []
        if flavour is Flavour.REC:
            self._vars += variables
            bindings = [Binding(v, self.function(v.name, depth=depth)) for v in variables]
        else:
            for var in variables:
                bindings.append(Binding(var, self.expr(depth)))
                self._vars.append(var)
        body = self.expr(depth)
        del self._vars[before:]
        return LetBlock(tuple(bindings), body, flavour, span=self.span())

    def clause(self, depth: int) -> Clause:
        pattern = self.pattern(2)
        variables = tuple(pattern_vars(pattern))
        self._vars += variables
        guard = self.expr(0) if self.number(3) == 0 else None
        body = self.expr(depth)
        if variables:
            del self._vars[-len(variables) :]
        return Clause(pattern, body, guard)

    def pattern(self, depth: int) -> Pattern:
        span = self.span()
        made = [(a.name, c) for a in self._adts.values() for c in a.constructors]
        match self.number(5):
            case 0:
                return BindPattern(self.var(), span=span)
            case 1 if depth:
                return BindPattern(self.var(), self.pattern(depth - 1), span=span)
            case 2 if depth and made:
                adt, constructor = self.choose(*made)
                fields = tuple(self.pattern(depth - 1) for _ in constructor.fields)
                return ConstructorPattern(adt, constructor.name, fields, span=span)
            case 3 if depth:
                fields = tuple(self.pattern(depth - 1) for _ in range(self.number(3)))
                return TuplePattern(fields, span=span)
            case 4:
                value = self.choose(True, False, 0, -3, 1.5, -0.0, "", 'a"b')
                return LiteralPattern(value, span=span)
            case _:
                return Wildcard(span=span)
