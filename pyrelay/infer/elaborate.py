"""The second walk of inference: the program rebuilt with the types that were found.

Every node gets its type; casts become explicit; number literals take the dtype they are used at;
attributes become static; hyper-parameters, which have done their work, go. A wanted type is pushed
down through tuples, branches and blocks to where a cast can stand.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final, assert_never, final

from ..ir.calls.attributes import bind_attrs
from ..ir.dims import ONE, Dim, DimHole
from ..ir.expr import (
    Assumption,
    Atom,
    Binding,
    BindPattern,
    Call,
    Clause,
    Composite,
    Constant,
    Constructor,
    ConstructorPattern,
    Expr,
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
    Transform,
    Tuple,
    TupleGet,
    TuplePattern,
    Var,
    Wildcard,
)
from ..ir.nested import map_nested
from ..ir.op import Op, Pointwise, Promotion
from ..ir.traverse import Steps, attr_exprs, let
from ..ir.types import (
    DEFAULT_DTYPE,
    UNIT,
    AnyDType,
    DType,
    DTypeHole,
    DTypeKind,
    FnType,
    RefType,
    SizeType,
    TensorType,
    TupleType,
    Type,
    TypeHole,
    TypeVar,
    float64,
    map_type,
)
from ..operators.captured import CAPTURED
from ..operators.composite.model import initial
from ..operators.host.sizes import as_bound, as_size
from ..operators.matrices.products import matmul
from ..operators.primitive.create import tril, triu
from ..operators.primitive.index import SLICING
from ..operators.primitive.stretch import stretch
from ..operators.primitive.view import roll
from ..prelude.library import OPTION, inner_of
from .coercions.conversions import Narrowed, converted, number, to_dtype
from .coercions.optional import as_optional
from .dim_scoping.size_checks import after_operands, after_value, comparisons, must_run
from .generate import Generator
from .operators import OperatorCall, with_dtype
from .overloads.overloads import Reading
from .solver import CheckSite, is_closed

if TYPE_CHECKING:
    from ..diagnostics.source import Span

_SIGNED: Final = (*SLICING, roll, tril, triu)
"""Operators whose integer attributes may be negative where they are found while running."""


@final
class Elaborator:
    """Rebuilds the functions of one solved group."""

    def __init__(self, generator: Generator) -> None:
        self._found: Final = generator
        self._solver: Final = generator.solver
        self._vars: Final[dict[Var, Var]] = {}
        self._dim_names: Final[dict[int, Dim]] = {}
        self._type_names: Final[dict[int, TypeVar]] = {}

    # Final types.

    def final(self, ty: Type) -> Type:
        """Return a type with its open parts chosen: weak numbers take their default dtype."""
        ty = self._solver.resolve(ty)
        return ty if is_closed(ty) else map_type(ty, self._final_part, self.final_dim)

    def _final_part(self, ty: Type) -> Type | None:
        match ty:
            case TypeHole(number):
                return self._type_names.get(number, UNIT)
            case TensorType(shape, dtype, layout):
                dims = tuple(self.final_dim(d) for d in shape)
                return TensorType(dims, self._final_dtype(dtype), layout)
            case _:
                return None

    def _final_dtype(self, dtype: AnyDType) -> DType:
        dtype = self._solver.resolve_dtype(dtype)
        if isinstance(dtype, DType):
            return dtype
        if dtype.number in self._wide_numbers:
            return float64
        return DEFAULT_DTYPE[DTypeKind.FLOAT if dtype.weak is None else dtype.weak]

    @cached_property
    def _wide_numbers(self) -> frozenset[int]:
        found = map(self._solver.resolve_dtype, self._solver.wide_numbers)
        return frozenset(d.number for d in found if isinstance(d, DTypeHole))

    def final_dim(self, dim: Dim) -> Dim:
        """Return a dim with open sizes named."""
        dim = self._solver.resolve_dim(dim)
        return dim.substitute(lambda a: self._name_dim(a) if isinstance(a, DimHole) else None)

    def _name_dim(self, hole: DimHole) -> Dim:
        known = self._dim_names.get(hole.number)
        if known is None:
            known = Dim.of(f"d{len(self._dim_names) + 1}")
            self._dim_names[hole.number] = known
        return known

    def name_open_types(self, ty: Type) -> None:
        """Make the holes left in a signature type parameters of the function."""

        def visit(part: Type) -> Type | None:
            if isinstance(part, TypeHole):
                name = f"T{len(self._type_names) + 1}"
                self._type_names.setdefault(part.number, TypeVar(name))
            return None

        map_type(self._solver.resolve(ty), visit, lambda d: d)

    def assumption(self, found: Assumption) -> Assumption:
        """Return an assumption with open sizes named."""
        return replace(found, left=self.final_dim(found.left), right=self.final_dim(found.right))

    # Expressions. `wanted` is the type at which the value is used, or None if any will do.

    def walk(self, expr: Expr, wanted: Type | None = None) -> Steps[Expr]:
        """Return the typed expression, converted to `wanted` where that takes a cast."""
        inner = None if wanted is None else inner_of(wanted)
        if inner is not None:
            own = self.final(self._found.types[expr])
            if inner_of(own) is None:
                built = yield self.walk(expr, None if own == UNIT else inner)
                return as_optional(built, inner, expr.span)
        if isinstance(expr, Atom):
            built = self._atom(expr, wanted)
        else:
            built = converted((yield self._inner(expr, wanted)), wanted)
        self._check_width(expr, wanted)
        return after_value(built, self._comparisons(expr, is_after=True))

    def _check_width(self, expr: Expr, wanted: Type | None) -> None:
        """Check that a number of a known dtype is used at no other of its kind. Raises Narrowed.

        Its dtype was weak when the use was typed, and another use has made it known since.
        """
        is_literal = isinstance(expr, Constant) or expr in self._found.literals
        if is_literal or not isinstance(wanted, TensorType) or wanted.rank:
            return
        own, dtype = self._solver.resolve(self._found.types[expr]), self._final_dtype(wanted.dtype)
        if not isinstance(own, TensorType) or not isinstance(own.dtype, DType):
            return
        if own.dtype != dtype and own.dtype.kind is dtype.kind:
            raise Narrowed(expr, own.dtype, dtype)

    def _comparisons(self, expr: Expr, *, is_after: bool) -> list[Binding]:
        if not self._solver.checks:
            return []
        found = self._solver.checks.get(CheckSite(expr, is_after=is_after), ())
        return comparisons([(self.final_dim(a), self.final_dim(b)) for a, b in found], expr.span)

    def _atom(self, expr: Atom, wanted: Type | None) -> Expr:
        match expr:
            case Var():
                literal = self._found.literals.get(expr)
                if literal is not None and isinstance(wanted, TensorType | SizeType):
                    return self._literal(literal, wanted)
                return converted(self._var(expr), wanted)
            case Constant():
                return self._literal(expr, wanted)
            case GlobalVar() | Constructor():
                own = self.final(self._found.types[expr])
                return converted(replace(expr, ty=own), wanted)
            case _:
                assert_never(expr)

    def _var(self, var: Var) -> Var:
        built = self._vars.get(var)
        if built is None:
            built = replace(var, ty=self.final(self._found.vars[var]))
            self._vars[var] = built
        return built

    def _literal(self, expr: Constant, wanted: Type | None) -> Expr:
        found = self._literal_at(expr, wanted)
        value = expr.value
        if isinstance(value, CAPTURED) and isinstance(found.ty, TensorType):
            attrs = {"dtype": found.ty.dtype}
            return Call(value.op, (), attrs, ty=found.ty, span=expr.span)
        return found

    def _literal_at(self, expr: Constant, wanted: Type | None) -> Expr:
        own = self.final(self._found.types[expr])
        if expr.ty is not None or isinstance(expr.value, str | bool):
            return converted(replace(expr, ty=own), wanted)
        if isinstance(wanted, TensorType) and wanted.rank == 0:
            return number(replace(expr, ty=own), wanted)
        return replace(expr, ty=own)

    def _inner(self, expr: Composite, wanted: Type | None) -> Steps[Expr]:
        match expr:
            case Call():
                return self._call(expr, wanted)
            case LetBlock():
                return self._let(expr, wanted)
            case If():
                return self._if(expr, wanted)
            case Tuple():
                return self._tuple(expr, wanted)
            case TupleGet():
                return self._field(expr)
            case Function():
                return self._local(expr)
            case Match():
                return self._match(expr, wanted)
            case RefCreate() | RefRead() | RefWrite():
                return self._ref(expr)
            case Transform():
                return self._transform(expr)
            case _:
                assert_never(expr)

    def _call(self, expr: Call, wanted: Type | None) -> Steps[Expr]:
        found = self._found.calls.get(expr)
        if found is not None and found.reading is not None:
            return (yield self._read(found.reading, wanted))
        if found is not None:
            return (yield self._operator(found))
        assert not isinstance(expr.callee, Op)
        callee = yield self.walk(expr.callee)
        assert isinstance(callee.ty, FnType)
        args: list[Expr] = []
        adapted = self._found.applied[expr].adapted
        for place, (arg, ty) in enumerate(zip(expr.args, callee.ty.params, strict=True)):
            if place in adapted:
                args.append((yield self._read(adapted[place], ty)))
            else:
                args.append((yield self.walk(arg, ty)))
        type_args = tuple(
            self.final_dim(a) if isinstance(a, Dim) else self.final(a)
            for a in self._found.instances.get(expr.callee, ())
        )
        built = replace(
            expr, callee=callee, args=tuple(args), type_args=type_args, ty=callee.ty.result
        )
        return after_operands(built, self._comparisons(expr, is_after=False))

    def _operator(self, found: OperatorCall) -> Steps[Expr]:
        call, op = found.call, found.op
        ty = self.final(found.result)
        if found.projection is not None:
            value = yield self.walk(call.args[0])
            return TupleGet(value, found.projection, ty, span=call.span)
        common = None if found.common is None else self._final_dtype(found.common)
        args: list[Expr] = []
        for param, arg in zip(op.operands, call.args, strict=True):
            promoted = param.promote and op.promotion is not Promotion.NONE
            at = common if promoted and not isinstance(ty, SizeType) else None
            args.append((yield self._operand(arg, at)))
        if self._solver.stretches and (op is matmul or isinstance(op.lowering, Pointwise)):
            args = [_stretched(arg, ty, call.span, own=2 * (op is matmul)) for arg in args]
        attrs = {k: map_nested(v, self._final_attr) for k, v in found.attrs.items()}
        if isinstance(ty, SizeType) and not found.attrs:
            attrs = bind_attrs(op, {})
        if op is initial and attrs["size"] is None and isinstance(ty, TensorType):
            attrs |= {"size": ty.shape, "dtype": ty.dtype}
        built = replace(call, callee=op, args=tuple(args), attrs=attrs, ty=ty)
        return (yield self._with_sizes(found, built))

    def _read(self, found: Reading, wanted: Type | None) -> Steps[Expr]:
        """Return the expression of an overloaded call, with its operands bound in front."""
        if [*found.operands] == [found.body]:  # it is its operand
            (operand,) = found.operands.values()
            return (yield self.walk(operand, wanted))
        bindings: list[Binding] = []
        for var, operand in found.operands.items():
            ty = self.final(self._found.vars[var])
            built = yield self.walk(operand, ty)
            if isinstance(built, Var):
                self._vars[var] = built
            else:
                bindings.append(Binding(self._var(var), built))
        body = yield self.walk(found.body, wanted)
        return let(bindings, body)

    def _final_attr(self, value: Any) -> Any:
        return self.final_dim(value) if isinstance(value, Dim) else value

    def _operand(self, arg: Expr, dtype: DType | None) -> Steps[Expr]:
        """Return an operand, brought to the promoted dtype if there is one."""
        if dtype is None:
            return (yield self.walk(arg))
        own = self.final(self._found.types[arg])
        if isinstance(own, TupleType):
            return (yield self.walk(arg, with_dtype(own, dtype)))
        wanted = TensorType((), dtype)
        built = yield self.walk(arg, wanted)
        if isinstance(built.ty, TensorType) and built.ty.dtype != dtype:
            return to_dtype(built, wanted)
        return built

    def _with_sizes(self, found: OperatorCall, built: Call) -> Steps[Expr]:
        """Bind the integers that became sizes of this call in front of it."""
        bindings: list[Binding] = []
        for expr, dim in found.sizes.items():
            value = yield self.walk(expr)
            ty = SizeType(dim)
            # A variable's use has no span of its own.
            span = built.span if isinstance(expr, Var) else expr.span
            var = Var("size", ty, span=span)
            convert = as_bound if found.op in _SIGNED else as_size
            bindings.append(Binding(var, Call(convert, (value,), ty=ty, span=span)))
        for expr in attr_exprs(found.call):
            if expr not in found.sizes and must_run(expr, self._found.types, self._solver):
                value = yield self.walk(expr)
                bindings.append(Binding(Var("size", value.ty, span=expr.span), value))
        compared = self._comparisons(found.call, is_after=False)
        return let(bindings, after_operands(built, compared))

    def _let(self, expr: LetBlock, wanted: Type | None) -> Steps[Expr]:
        blocks: list[tuple[LetBlock, tuple[Binding, ...]]] = []
        body: Expr = expr
        while isinstance(body, LetBlock):
            bindings: list[Binding] = []
            for binding in body.bindings:
                var = self._var(binding.var)
                value = yield self._arriving(binding.var, binding.value, var.ty)
                bindings.append(Binding(var, value))
            blocks.append((body, tuple(bindings)))
            body = body.body
        built = yield self.walk(body, wanted)
        for block, bound in reversed(blocks):
            built = replace(block, bindings=bound, body=built, ty=built.ty)
        return built

    def _arriving(self, at: Function | Var, value: Expr, wanted: Type | None) -> Steps[Expr]:
        """Return a value that arrives as a result or at a name, brought to another type where that
        takes a step of its own."""
        found = self._found.arrived.get(at)
        return (yield self.walk(value, wanted) if found is None else self._read(found, wanted))

    def _if(self, expr: If, wanted: Type | None) -> Steps[Expr]:
        ty = self.final(self._found.types[expr])
        target = ty if wanted is None else _merge(ty, wanted)
        condition = yield self.walk(expr.condition)
        then = yield self.walk(expr.then, target)
        otherwise = yield self.walk(expr.otherwise, target)
        return replace(expr, condition=condition, then=then, otherwise=otherwise, ty=target)

    def _tuple(self, expr: Tuple, wanted: Type | None) -> Steps[Expr]:
        targets = wanted.fields if isinstance(wanted, TupleType) else (None,) * len(expr.fields)
        fields: list[Expr] = []
        for field, target in zip(expr.fields, targets, strict=True):
            fields.append((yield self.walk(field, target)))
        types = tuple(f.ty for f in fields if f.ty is not None)
        return replace(expr, fields=tuple(fields), ty=TupleType(types))

    def _field(self, expr: TupleGet) -> Steps[Expr]:
        value = yield self.walk(expr.value)
        assert isinstance(value.ty, TupleType)
        return replace(expr, value=value, ty=value.ty.fields[expr.index])

    def function(self, expr: Function) -> Steps[Expr]:
        """Return the typed function."""
        ty = self.final(self._found.types[expr])
        assert isinstance(ty, FnType)
        params = tuple(self._var(p) for p in expr.params)
        body = yield self._arriving(expr, expr.body, ty.result)
        return replace(expr, params=params, body=body, result=ty.result, ty=ty)

    def _local(self, expr: Function) -> Steps[Expr]:
        """Return a local function typed: it has one type, whatever it was written with."""
        typed = yield self.function(expr)
        return replace(typed, type_params=())

    def _ref(self, expr: RefCreate | RefRead | RefWrite) -> Steps[Expr]:
        ty = self.final(self._found.types[expr])
        if isinstance(expr, RefCreate):
            assert isinstance(ty, RefType)
            value = yield self.walk(expr.value, ty.value)
            return replace(expr, value=value, ty=ty)
        ref = yield self.walk(expr.ref)
        assert isinstance(ref.ty, RefType)
        if isinstance(expr, RefRead):
            return replace(expr, ref=ref, ty=ref.ty.value)
        value = yield self.walk(expr.value, ref.ty.value)
        return replace(expr, ref=ref, value=value, ty=UNIT)

    def _transform(self, expr: Transform) -> Steps[Expr]:
        found = self._found.transforms[expr]
        function = yield self.walk(expr.function)
        rules: list[Expr] = []
        for rule in expr.rules:
            rules += ((yield self.walk(rule)),)
        made = replace(expr, function=function, rules=tuple(rules), ty=self.final(found.result))
        return replace(made, options=found.options)

    def _match(self, expr: Match, wanted: Type | None) -> Steps[Expr]:
        ty = self.final(self._found.types[expr])
        target = ty if wanted is None else _merge(ty, wanted)
        value = yield self.walk(expr.value)
        clauses: list[Clause] = []
        for clause in expr.clauses:
            pattern = yield self._pattern(clause.pattern)
            guard = None if clause.guard is None else (yield self.walk(clause.guard))
            clauses.append(Clause(pattern, (yield self.walk(clause.body, target)), guard))
        return replace(expr, value=value, clauses=tuple(clauses), ty=target)

    def _pattern(self, pattern: Pattern) -> Steps[Pattern]:
        built = pattern
        match pattern:
            case BindPattern(var, inner):
                new = None if inner is None else (yield self._pattern(inner))
                built = replace(pattern, var=self._var(var), inner=new)
            case ConstructorPattern(fields=fields) | TuplePattern(fields):
                inside: list[Pattern] = []
                for field in fields:
                    inside += ((yield self._pattern(field)),)
                built = replace(pattern, fields=tuple(inside))
                batch = self._found.patterns.batches.get(pattern)
                if batch is not None and isinstance(built, ConstructorPattern):
                    built = replace(built, adt=batch)
            case Wildcard() | LiteralPattern():
                pass
        content = self._found.patterns.contents.get(pattern)
        if content is None or not content.is_inside:
            return built
        return ConstructorPattern(OPTION, "Some", (built,), span=pattern.span)


def _merge(own: Type, wanted: Type) -> Type:
    """Return the type that the arms of a branch take: `wanted` where it only changes a number."""
    match own, wanted:
        case TupleType(a), TupleType(b) if len(a) == len(b):
            return TupleType(tuple(_merge(x, y) for x, y in zip(a, b, strict=True)))
        case ((SizeType() | TensorType(())), TensorType(())):
            return wanted
        case _:
            return own


def _stretched(arg: Expr, result: Type, span: Span, own: int) -> Expr:
    """Return an operand with the sizes of the result where its own may turn out to be 1; its last
    `own` dims stay."""
    if not isinstance(arg.ty, TensorType) or not isinstance(result, TensorType):
        return arg
    shape = arg.ty.shape
    lead, kept = max(result.rank - arg.ty.rank, 0), max(arg.ty.rank - own, 0)
    pairs = zip(shape[:kept], result.shape[lead : lead + kept], strict=True)
    size = (*(have if have == ONE else want for have, want in pairs), *shape[kept:])
    if size == shape:
        return arg
    ty = replace(arg.ty, shape=size)
    return Call(stretch, (arg,), {"size": size}, ty=ty, span=span)
