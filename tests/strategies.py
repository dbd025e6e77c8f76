"""Random programs that are typed and run: what the property tests feed to every stage.

    @given(programs(differentiable=True))
    def test_...(program): evaluate(program.module, "main", program.arguments())

A program is one global function `main` over a matrix, a vector, a number, an int and a bool whose
sizes are named, and the functions and data types it uses. It is built in A-normal form by
`operators.builder.Builder`; `as_trees` folds bindings back into operands. Every value is bounded
and every loop counts down, so all programs stop and none overflows. A program with an effect on
cells is made only where asked for.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import torch
from hypothesis import strategies as st

from pyrelay.diagnostics.source import NOWHERE as SPAN
from pyrelay.ir.dims import Dim, DimVar
from pyrelay.ir.expr import (
    Binding,
    BindPattern,
    Call,
    Clause,
    ConstructorPattern,
    Expr,
    Flavour,
    Function,
    If,
    LiteralPattern,
    Match,
    Var,
    Wildcard,
    type_of,
)
from pyrelay.ir.module import AdtDef, ConstructorDef, Module
from pyrelay.ir.names import Names
from pyrelay.ir.types import (
    BOOL,
    INT,
    AdtType,
    DType,
    FnType,
    RefType,
    TensorType,
    TupleType,
    Type,
    TypeParam,
    dims,
    float32,
    float64,
    int64,
    subtypes,
)
from pyrelay.operators.builder import Builder, Value
from pyrelay.operators.table import BY_NAME
from pyrelay.text.printer import to_text
from tests.cell_steps import CellSteps
from tests.data_steps import DataSteps
from tests.output_steps import OutputSteps
from tests.program_scopes import Scope

SIZES = ("N", "M")
SMOOTH = ("tanh", "sigmoid", "sin", "negative", "softplus")
BENT = ("relu", "abs")
CHAIN = AdtDef(
    "Chain",
    (DimVar("L"),),
    (
        ConstructorDef("End", ()),
        ConstructorDef(
            "Link",
            (TensorType((Dim.of("L"),), float32), AdtType("Chain", (Dim.of("L"),))),
            ("head", "rest"),
        ),
    ),
    SPAN,
)
Draw: TypeAlias = Callable[[st.SearchStrategy[Any]], Any]


@dataclass(frozen=True)
class Program:
    """A typed module, the sizes its named dims have, and a seed for its inputs."""

    module: Module
    sizes: dict[str, int]
    number: int
    flag: bool
    seed: int

    def __repr__(self) -> str:
        text = to_text(self.module)
        return f"{text}\n{self.sizes}, k={self.number}, flag={self.flag}, seed={self.seed}"

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        printer.text(repr(self))

    def arguments(self, *, requires_grad: bool = False) -> list[Any]:
        """Return inputs for `main`; the same ones every time."""
        generator = torch.Generator().manual_seed(self.seed)
        found: list[Any] = []
        for param in self.module.functions["main"].params:
            match param.ty:
                case TensorType(shape, DType(name)) if name.startswith("float"):
                    sizes = [d.evaluate(self.sizes) for d in shape]
                    data = torch.randn(sizes, generator=generator, dtype=torch.float64)
                    found.append(data.to(getattr(torch, name)).requires_grad_(requires_grad))
                case _:
                    found.append(self.flag if param.ty == BOOL else self.number)
        return found


@st.composite
def programs(
    draw: Draw,
    size: int = 8,
    *,
    allow_control: bool = True,
    differentiable: bool = False,
    effects: bool = False,
    output: bool = False,
) -> Program:
    """Draw a program of up to `size` statements, and as many in each function and branch inside.

    A differentiable one has float64 inputs, a scalar result and, almost everywhere, a derivative.
    One with output prints, and may stop.
    """
    dtype = float64 if differentiable else draw(st.sampled_from((float32, float64)))
    maker = _Maker(draw, dtype, control=allow_control, smooth=differentiable, effects=effects)
    if output:
        maker.steps += OutputSteps(maker).all
    module = maker.program(draw(st.integers(1, size)), scalar=differentiable)
    sizes = {name: draw(st.integers(1, 3)) for name in SIZES}
    return Program(
        module, sizes, draw(st.integers(-1, 4)), draw(st.booleans()), draw(st.integers(0, 2**16))
    )


Step: TypeAlias = Callable[[Scope], "Value | None"]


class _Maker:
    """Draws one program."""

    def __init__(
        self, draw: Draw, dtype: DType, *, control: bool, smooth: bool, effects: bool
    ) -> None:
        self._draw = draw
        self._dtype = dtype
        self._names = Names()
        self._functions: dict[str, Function] = {}
        self._adts: dict[str, AdtDef] = {}
        self._unary = SMOOTH if smooth else SMOOTH + BENT
        straight: list[Step] = [
            self._apply_unary,
            self._apply_binary,
            self._reduce,
            self._multiply_matrices,
            self._reshape,
            self._scale,
            self._count,
            self._compare,
            self._select,
            self._pack,
            self._project,
        ]
        control_steps: list[Step] = [
            self._branch,
            self._cases,
            self._closure,
            self._call,
            self._call_twice,
            self._loop,
            self._recursion,
            self._fold,
            *DataSteps(self, dtype, self._adts, self._functions).all,
        ]
        self.steps: list[Step] = straight + (control_steps if control else [])
        self._cells = CellSteps(self, dtype, self._adts) if effects else None
        self.steps += [] if self._cells is None else self._cells.all

    # Whole programs

    def program(self, size: int, *, scalar: bool) -> Module:
        """Return a module whose `main` has about `size` statements."""
        types = [self._tensor("N", "M"), self._tensor("M"), self._tensor(), INT, BOOL]
        params = [self._var(n, t) for n, t in zip("avskb", types, strict=True)]
        scope = self._scope((), 2)
        scope.values = [scope.builder.value(p) for p in params]
        if self._cells is not None:
            self._cells.start(scope)
        self._fill(scope, size)
        result = self._summary(scope) if scalar else self._sample(scope)
        main = self._function("main", params, scope.close(result), result.ty, SIZES)
        return Module({**self._functions, "main": main}, self._adts)

    def _summary(self, scope: Scope) -> Value:
        """Return a number that depends on the last floats, and on the first."""
        total = scope.builder.constant(0.0, self._dtype)
        held = [] if self._cells is None else self._cells.ends(scope)
        held = [v for v in held if self._is_float(v)]
        for value in (*scope.values[:3], *self.floats(scope)[-4:], *held):
            total = total + BY_NAME["tanh"](value.sum())
        return total

    def _sample(self, scope: Scope) -> Value:
        data = [v for v in scope.values if _is_plain(v.ty)]
        held = [] if self._cells is None else self._cells.ends(scope)
        return scope.builder.tuple([*data[-3:], *held])

    def _fill(self, scope: Scope, size: int) -> None:
        for _ in range(size):
            value = self.choose(self.steps)(scope)
            if value is not None:
                scope.values.append(value)

    # Parts

    def choose(self, options: Sequence[Any]) -> Any:
        """Draw one of several."""
        return self._draw(st.sampled_from(options))

    def number(self, low: int, high: int) -> int:
        """Draw a number."""
        return self._draw(st.integers(low, high))

    def _var(self, hint: str, ty: Type) -> Var:
        return Var(self._names.fresh(hint), ty, span=SPAN)

    def _tensor(self, *shape: str) -> TensorType:
        return TensorType(tuple(map(Dim.of, shape)), self._dtype)

    def _scope(self, values: Iterable[Value], depth: int) -> Scope:
        return Scope(self._names, values, depth)

    def _function(
        self, name: str, params: Sequence[Var], body: Expr, result: Type, sizes: Iterable[str] = ()
    ) -> Function:
        quantified: tuple[TypeParam, ...] = tuple(map(DimVar, sizes))
        ty = FnType(tuple(type_of(p) for p in params), result, quantified)
        return Function(tuple(params), body, result, quantified, name, (), ty, span=SPAN)

    def floats(self, scope: Scope) -> list[Value]:
        return [v for v in scope.values if isinstance(v.ty, TensorType) and self._is_float(v)]

    def _is_float(self, value: Value) -> bool:
        return value.dtype == self._dtype

    def _float(self, scope: Scope) -> Value:
        return self.choose(self.floats(scope))

    def of_type(self, scope: Scope, ty: Type) -> list[Value]:
        return [v for v in scope.values if v.ty == ty]

    def _arm(self, scope: Scope, params: Sequence[Var], result: Type, size: int = 2) -> Expr:
        """Return a body inside a scope that ends in some value of a type visible outside."""
        inner = self._scope(scope.values, scope.depth - 1)
        inner.values += [inner.builder.value(p) for p in params]
        if scope.depth > 0:
            self._fill(inner, self._draw(st.integers(0, size)))
        # The newest first, so that shrinking keeps what the arm computes.
        return inner.close(self.choose(self.of_type(inner, result)[::-1]))

    # Straight-line steps

    def _apply_unary(self, scope: Scope) -> Value:
        return BY_NAME[self.choose(self._unary)](self._float(scope))

    def _apply_binary(self, scope: Scope) -> Value:
        x = self._float(scope)
        y = self.choose([v for v in self.floats(scope) if _broadcast(x.shape, v.shape)])
        name = self.choose(("add", "subtract", "multiply", "maximum", "divide"))
        if name == "divide":
            y = y * y + 1.0
        return BY_NAME["tanh"](BY_NAME[name](x, y))

    def _reduce(self, scope: Scope) -> Value:
        x = self._float(scope)
        dims = self._draw(st.lists(st.integers(0, x.rank - 1), unique=True)) if x.rank else []
        op = BY_NAME[self.choose(("sum", "mean", "logsumexp"))]
        if op.name == "logsumexp" and not dims:
            op = BY_NAME["sum"]
        return op(x, dim=tuple(dims) or None, keepdim=bool(dims) and self._draw(st.booleans()))

    def _multiply_matrices(self, scope: Scope) -> Value | None:
        matrices = [v for v in self.floats(scope) if v.rank == 2]
        if not matrices:
            return None
        x = self.choose(matrices)
        fitting = [v for v in self.floats(scope) if v.rank and v.shape[0] == x.shape[1]]
        y = self.choose([x.transpose(0, 1), *fitting])
        return BY_NAME["tanh"](x @ y)

    def _reshape(self, scope: Scope) -> Value:
        x = self._float(scope)
        if x.rank == 2 and self._draw(st.booleans()):
            return x.transpose(0, 1)
        if x.rank == 2:
            return x.reshape(x.shape[0] * x.shape[1])
        return x.unsqueeze(0) if x.rank == 1 else x.reshape(1)

    def _scale(self, scope: Scope) -> Value:
        factor, offset = (self._draw(st.sampled_from((-1.5, -0.5, 0.25, 1.0))) for _ in range(2))
        return self._float(scope) * factor + offset

    def _count(self, scope: Scope) -> Value:
        ints = self.of_type(scope, INT)
        name = self.choose(("add", "subtract", "multiply", "floor_divide", "mod", "size"))
        if name == "size":
            size = scope.builder.size(Dim.of(self.choose(SIZES)) + 1)
            return BY_NAME["add"](size, self.choose(ints))
        return BY_NAME[name](self.choose(ints), self._draw(st.integers(1, 3)))

    def _compare(self, scope: Scope) -> Value:
        op = BY_NAME[self.choose(("less", "greater_equal", "equal"))]
        truths = self.of_type(scope, BOOL)
        if self._draw(st.booleans()):
            return op(self.choose(self.of_type(scope, INT)), self._draw(st.integers(0, 3)))
        return BY_NAME["logical_or"](self.choose(truths), self.choose(truths))

    def _select(self, scope: Scope) -> Value:
        x = self._float(scope)
        y = self.choose([v for v in self.floats(scope) if v.shape == x.shape])
        return BY_NAME["where"](BY_NAME["less"](x, y), x, y)

    def _pack(self, scope: Scope) -> Value:
        return scope.builder.tuple([self._float(scope), self._float(scope)])

    def _project(self, scope: Scope) -> Value | None:
        tuples = [v for v in scope.values if isinstance(v.ty, TupleType) and v.ty.fields]
        return self.choose(tuples)[self._draw(st.integers(0, 1))] if tuples else None

    # Control

    def _branch(self, scope: Scope) -> Value:
        condition = self.choose(self.of_type(scope, BOOL)).atom
        ty = self.choose([v.ty for v in scope.values if isinstance(v.ty, TensorType | TupleType)])
        then, otherwise = (self._arm(scope, (), ty) for _ in range(2))
        return scope.builder.bind(If(condition, then, otherwise, ty, span=SPAN), "chosen")

    def _cases(self, scope: Scope) -> Value:
        ty = self._float(scope).ty
        number = self.choose(self.of_type(scope, INT)).atom
        found = self._var("n", INT)
        guard = self._scope(scope.values, 0)
        guard.values = [guard.builder.value(found)]
        clauses = (
            Clause(LiteralPattern(0, span=SPAN), self._arm(scope, (), ty)),
            Clause(
                BindPattern(found, span=SPAN),
                self._arm(scope, (found,), ty),
                guard.close(BY_NAME["less"](guard.values[0], 2)),
            ),
            Clause(Wildcard(span=SPAN), self._arm(scope, (), ty)),
        )
        return scope.builder.bind(Match(number, clauses, ty=ty, span=SPAN), "found")

    def _closure(self, scope: Scope) -> Value:
        ty = self._float(scope).ty
        return self.closure_of(scope, ty, self.choose((ty, self._float(scope).ty)))

    def closure_of(self, scope: Scope, taken: Type, given: Type) -> Value:
        param = self._var("x", taken)
        body = self._arm(scope, (param,), given, 4)
        return scope.builder.bind(self._function("f", (param,), body, given), "f")

    def _call(self, scope: Scope) -> Value:
        functions = [v for v in scope.values if isinstance(v.ty, FnType)]
        function = self.choose(functions) if functions else self._closure(scope)
        args = self.of_type(scope, function.ty.params[0])
        return scope.builder.apply(function.atom, [self.choose(args)], function.ty.result)

    def _call_twice(self, scope: Scope) -> Value:
        """Pass a function to a global function that is polymorphic in sizes."""
        functions = [v for v in scope.values if isinstance(v.ty, FnType)]
        functions = [v for v in functions if v.ty.params == (v.ty.result,)]
        if not functions:
            ty = self._float(scope).ty
            functions = [self.closure_of(scope, ty, ty)]
        function = self.choose(functions)
        ty = function.ty.result
        sizes = list(dict.fromkeys(n for d in dims(ty) for n in sorted(d.names())))
        name = f"twice_{len(self._functions)}"
        params = [self._var("f", function.ty), self._var("x", ty)]
        inside = self._scope((), 0)
        once = inside.builder.apply(params[0], [inside.builder.value(params[1])], ty)
        body = inside.close(Call(params[0], (once.atom,), ty=ty, span=SPAN))
        self._functions[name] = self._function(name, params, body, ty, sizes)
        arg = self.choose(self.of_type(scope, ty))
        return scope.builder.apply(name, [function, arg], ty, tuple(map(Dim.of, sizes)))

    def _loop(self, scope: Scope) -> Value:
        """Count up to a bound in tail calls of a local function."""
        start = self._float(scope)
        loop = self._var("count_loop", FnType((INT, start.ty), start.ty))
        i, acc = self._var("i", INT), self._var("acc", start.ty)
        bound = BY_NAME["mod"](self.choose(self.of_type(scope, INT)), 4)
        head, step = self._scope((bound,), 0), self._scope(scope.values, scope.depth - 1)
        step.values += [step.builder.value(i), step.builder.value(acc)]
        if scope.depth > 0:
            self._fill(step, self._draw(st.integers(0, 3)))
        new = BY_NAME["tanh"](self.choose(self.of_type(step, start.ty)[::-1]))
        following = step.builder.value(i) + 1
        again = Call(loop, (following.atom, new.atom), ty=start.ty, span=SPAN)
        going = BY_NAME["less"](head.builder.value(i), head.values[0])
        body = head.close(If(going.atom, step.close(again), acc, start.ty, span=SPAN))
        function = self._function("count_loop", (i, acc), body, start.ty)
        scope.add_block(Flavour.REC, Binding(loop, function))
        zero = scope.builder.constant(0, int64)
        return scope.builder.apply(loop, [zero, start], start.ty)

    def _recursion(self, scope: Scope) -> Value:
        """Recurse on a number, with work to do after the call."""
        start = self._float(scope)
        name = self._var("descend", FnType((INT, start.ty), start.ty))
        n, x = self._var("n", INT), self._var("x", start.ty)
        head, step = self._scope((), 0), self._scope(scope.values, scope.depth - 1)
        below = step.builder.apply(
            name, [step.builder.value(n) - 1, BY_NAME["sin"](step.builder.value(x))], start.ty
        )
        step.values += [step.builder.value(x), below]
        if scope.depth > 0:
            self._fill(step, self._draw(st.integers(0, 2)))
        kept = self.choose(self.of_type(step, start.ty)[::-1])
        result = step.close(BY_NAME["tanh"](kept * 0.5 + below))
        done = BY_NAME["less_equal"](head.builder.value(n), 0)
        body = head.close(If(done.atom, x, result, start.ty, span=SPAN))
        function = self._function("descend", (n, x), body, start.ty)
        depth = BY_NAME["mod"](self.choose(self.of_type(scope, INT)), 4)
        scope.add_block(Flavour.REC, Binding(name, function))
        return scope.builder.apply(name, [depth, start], start.ty)

    def _fold(self, scope: Scope) -> Value | None:
        """Build a chain of vectors, and fold it with a recursive global function."""
        size = Dim.of(self.choose(SIZES))
        vectors = self.of_type(scope, TensorType((size,), self._dtype))
        if not vectors:
            return None
        adt = replace(CHAIN, constructors=(CHAIN.constructors[0], self._link()))
        self._adts["Chain"] = adt
        ty = AdtType("Chain", (size,))
        chain = scope.builder.construct("Chain", "End", (), ty)
        for _ in range(self._draw(st.integers(0, 3))):
            chain = scope.builder.construct("Chain", "Link", (self.choose(vectors), chain), ty)
        if "fold" not in self._functions:
            self._functions["fold"] = self._fold_function()
        return scope.builder.apply("fold", [chain], self._tensor(), (size,))

    def _link(self) -> ConstructorDef:
        link = CHAIN.constructors[1]
        return replace(link, fields=(self._tensor("L"), link.fields[1]))

    def _fold_function(self) -> Function:
        ty = AdtType("Chain", (Dim.of("L"),))
        chain = self._var("chain", ty)
        head, rest = self._var("head", self._tensor("L")), self._var("rest", ty)
        builder = Builder(SPAN, self._names)
        below = builder.apply("fold", [builder.value(rest)], self._tensor(), (Dim.of("L"),))
        link = builder.block(BY_NAME["tanh"](builder.value(head).sum() + below * 0.5))
        empty = Builder(SPAN, self._names).constant(0.25, self._dtype).atom
        fields = (BindPattern(head, span=SPAN), BindPattern(rest, span=SPAN))
        clauses = (
            Clause(ConstructorPattern("Chain", "Link", fields, span=SPAN), link),
            Clause(ConstructorPattern("Chain", "End", (), span=SPAN), empty),
        )
        body = Match(chain, clauses, ty=self._tensor(), span=SPAN)
        return self._function("fold", (chain,), body, self._tensor(), ("L",))


def _is_plain(ty: Type) -> bool:
    """Return whether a value may leave the program to be compared."""
    return not any(isinstance(part, FnType | RefType | AdtType) for part in subtypes(ty))


def _broadcast(left: tuple[Dim, ...], right: tuple[Dim, ...]) -> bool:
    """Return whether the right shape broadcasts into the left one, whatever the sizes."""
    if len(right) > len(left):
        return False
    pairs = zip(reversed(left), reversed(right), strict=False)
    return all(b in (a, Dim.of(1)) for a, b in pairs)
