"""Typing one operator call: attributes, promotion, size arithmetic, then the operator's own rule.

`attempt` may be called again and again: it raises `Stuck` while it knows too little, and `Clash`
when the call can never be typed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import field, replace
from functools import partial
from typing import Any, Final, final

from ..dataclass import dataclass
from ..ir.bounds import maximum, minimum
from ..ir.calls.attributes import bind_attr, bind_attrs, check_names
from ..ir.dims import Dim
from ..ir.expr import Call, Constant, Expr, Var
from ..ir.layouts import result_type
from ..ir.nested import map_nested
from ..ir.op import Clash, Missing, Op, Param, Promotion, RuleCall, Stuck
from ..ir.types import (
    AnyDType,
    DType,
    DTypeHole,
    DTypeKind,
    SizeType,
    StrType,
    Substitution,
    TensorType,
    TupleType,
    Type,
    TypeHole,
    float32,
    show,
)
from ..operators.captured import CAPTURED, CapturedInteger
from ..operators.host.text import ON_TEXT
from ..operators.primitive.arithmetic import add, floor_divide, mod, multiply, negative, subtract
from ..operators.primitive.arithmetic import maximum as maximum_op
from ..operators.primitive.arithmetic import minimum as minimum_op
from ..operators.primitive.index import index
from .solver import Solver

SIZE_ARITHMETIC: Final[Mapping[Op, Callable[..., Dim]]] = {
    add: lambda a, b: a + b,
    subtract: lambda a, b: a - b,
    multiply: lambda a, b: a * b,
    floor_divide: lambda a, b: a // b,
    mod: lambda a, b: a % b,
    negative: lambda a: -a,
    maximum_op: maximum,
    minimum_op: minimum,
}
"""The action of each operator on integers that carry a dim."""


class StaticNeeded(Exception):  # noqa: N818  becomes a diagnostic at the call
    """An attribute is a value that only the running program knows."""

    def __init__(self, argument: str, expr: Expr, actual: Type) -> None:
        super().__init__(argument)
        self.argument = argument
        self.expr = expr
        self.actual = actual


class WidthsMixed(Exception):  # noqa: N818  becomes a diagnostic at the call
    """Promoted operands have different dtypes of one kind."""

    def __init__(self, dtypes: Mapping[int, DType]) -> None:
        super().__init__(dtypes)
        self.dtypes = dtypes


@final
@dataclass(frozen=True, slots=True)
class Reading:
    """The meaning of a call: an expression, with its operands as variables."""

    operands: Mapping[Var, Expr]
    body: Expr


@final
class ResultClash(Clash):
    """The result of an operator has another dtype than what uses it needs."""

    def __init__(self, message: str, actual: Type, wanted: TensorType) -> None:
        super().__init__(message)
        self.actual: Final = actual
        self.wanted: Final = wanted


@final
@dataclass(slots=True)
class OperatorCall:
    """An operator call under inference, with the facts found so far."""

    call: Call
    op: Op
    types: tuple[Type, ...]
    result: Type
    attr_types: Mapping[Expr, Type]
    own: Substitution
    """The type arguments of the local functions around."""
    common: AnyDType | None = None
    attrs: dict[str, Any] = field(default_factory=dict[str, Any])
    sizes: dict[Expr, Dim] = field(default_factory=dict[Expr, Dim])
    """Integers used as sizes whose value only the running program knows, with their dims."""
    reading: Reading | None = None
    """The meaning of the call, where the syntax has several."""
    projection: int | None = None
    """Set when `value[i]` turned out to be a field of a tuple."""
    on_text: bool = False
    """Set when an operand turned out to be a string; the operator is then that of strings."""

    def check_attributes(self) -> None:
        """Check the names of the attributes. Raises WrongAttribute."""
        check_names(self.op, self.call.attrs, (*self.op.attributes, *self.op.hyper))

    def attempt(self, solver: Solver) -> None:
        """Type the call as far as its operands are known. Raises Stuck, Clash, StaticNeeded and
        WrongAttribute."""
        self._on_text(solver)
        if self._project(solver) or self._size(solver):
            return
        attrs = {} if self.on_text else self.call.attrs
        given = {k: map_nested(v, partial(self._static, solver, k)) for k, v in attrs.items()}
        hyper = {p.name: p for p in self.op.hyper}
        self.attrs = bind_attrs(self.op, {k: v for k, v in given.items() if k not in hyper})
        self.common = self._common_dtype(solver)
        self._infer_attributes(solver)
        own = {n: bind_attr(self.op, p, given) for n, p in hyper.items() if is_given(p, given)}
        self._fill_hidden(solver, {**own, **self.attrs})
        rule = RuleCall(self.op, self._promoted(solver), self.attrs, solver)
        made = solver.fill_unknown(result_type(rule))
        try:
            solver.unify(self.result, made)
        except Clash as clash:
            wanted = solver.resolve(self.result)
            if not isinstance(made, TensorType) or not isinstance(wanted, TensorType):
                raise
            if made.dtype == wanted.dtype or not isinstance(wanted.dtype, DType):
                raise
            raise ResultClash(clash.message, solver.resolve(made), wanted) from clash

    def _infer_attributes(self, solver: Solver) -> None:
        """Find the attributes that the types of the operands determine. Raises Stuck."""
        for param in self.op.attributes:
            if param.infer is not None and self.attrs[param.name] is None:
                rule = RuleCall(self.op, self._promoted(solver), self.attrs, solver)
                self.attrs[param.name] = param.infer(rule)

    def _static(self, solver: Solver, name: str, value: Any) -> Any:
        if isinstance(value, Dim):
            return self.own.dim(value)
        if not isinstance(value, Expr):
            return value
        return self._static_of(solver, name, value, solver.resolve(self.attr_types[value]))

    def _static_of(self, solver: Solver, name: str, expr: Expr, ty: Type) -> Any:
        match ty:
            case SizeType(dim):
                if dim.has_holes():
                    raise Stuck(dim)
                return dim if dim.constant is None else dim.constant
            case TupleType(fields):
                return tuple(self._static_of(solver, name, expr, f) for f in fields)
            case TypeHole():
                raise Stuck(ty)
            case _ if isinstance(expr, Constant) and isinstance(expr.value, CapturedInteger):
                raise StaticNeeded(name, expr, ty)  # a size that changes is part of the program
            case TensorType((), DTypeHole(weak=DTypeKind.FLOAT)) if is_literal(expr):
                assert isinstance(expr, Constant)
                return expr.value
            case TensorType((), dtype) if _is_int(dtype) and not self._is_hyper(name):
                if expr not in self.sizes:
                    self.sizes[expr] = solver.fresh_dim("size")
                return self.sizes[expr]
            case _:
                raise StaticNeeded(name, expr, ty)

    def _is_hyper(self, name: str) -> bool:
        """Return whether an argument shapes parameters, which exist before the program runs."""
        return any(p.name == name for p in self.op.hyper)

    def _project(self, solver: Solver) -> bool:
        """Type `value[literal]` of a tuple, which the same syntax as indexing means."""
        if self.op is not index:
            return False
        value = solver.known(self.types[0])
        if not isinstance(value, TupleType):
            return False
        position = self._literal_index(solver)
        if position is None:
            raise Clash("a tuple is indexed with one literal, such as `pair[0]`")
        if not -len(value.fields) <= position < len(value.fields):
            shown = show(solver.resolve(value))
            raise Clash(f"there is no field {position} in {shown}", labels={0: f"this is {shown}"})
        self.projection = position % len(value.fields)
        solver.unify(self.result, value.fields[self.projection])
        return True

    def _on_text(self, solver: Solver) -> None:
        """Take the operator of strings where the same syntax stands for it."""
        if self.op in ON_TEXT and any(isinstance(solver.shallow(t), StrType) for t in self.types):
            self.op, self.on_text = ON_TEXT[self.op], True

    def _literal_index(self, solver: Solver) -> int | None:
        indices = solver.resolve(self.types[1])
        match indices, self.call.attrs["spec"]:
            case TupleType((SizeType(dim),)), (("int", 0),):
                return dim.constant
            case _:
                return None

    def _size(self, solver: Solver) -> bool:
        """Type arithmetic on sizes, which gives a size."""
        compute = SIZE_ARITHMETIC.get(self.op)
        if compute is None:
            return False
        dims: list[Dim] = []
        for ty in self.types:
            ty = solver.known(ty)
            if not isinstance(ty, SizeType):
                return False
            dims.append(solver.resolve_dim(ty.dim))
        if self.op in (floor_divide, mod) and dims[1].constant == 0:
            raise Clash("a size is divided by zero")
        dim = compute(*dims)
        if dim.constant is not None and not -(2**63) <= dim.constant < 2**63:
            raise Clash(f"{dim.constant} does not fit into the 64 bits of an integer")
        solver.unify(self.result, SizeType(dim))
        return True

    def _common_dtype(self, solver: Solver) -> AnyDType | None:
        if self.op.promotion is Promotion.NONE:
            return None
        known: dict[int, DType] = {}
        weak: list[DTypeHole] = []
        hidden = {h.name for h in self.op.hidden}
        for position, (ty, param) in enumerate(zip(self.types, self.op.operands, strict=True)):
            # A parameter that a model supplies has no type yet; it follows the other operands.
            waits = param.name in hidden and isinstance(solver.shallow(ty), TypeHole)
            if param.promote and not waits:
                _collect(solver, position, ty, known, weak)
        if len({d for d in known.values() if d.kind is _highest(known)}) > 1:
            raise WidthsMixed({i: d for i, d in known.items() if d.kind is _highest(known)})
        if solver.strict_dtypes:
            self._refuse_conversion(known)
        common = _common(solver, known, weak)
        is_float = self.op.promotion is not Promotion.FLOAT or _is_floating(common)
        if not is_float and isinstance(common, DTypeHole):
            common = solver.fresh_dtype(DTypeKind.FLOAT)  # `1 / 3` of literals is one, too
        elif not is_float:
            return float32
        for each in weak:
            if each.number and solver.resolve_dtype(each) != common:
                solver.carried.follow(each, common)
        return common

    def _refuse_conversion(self, known: Mapping[int, DType]) -> None:
        """Stop where operands would be converted. Raises Clash."""
        found = list(dict.fromkeys(known.values()))
        to_float = self.op.promotion is Promotion.FLOAT and not all(map(_is_floating, found))
        if len(found) < 2 and not to_float:
            return
        wanted = "a float" if len(found) < 2 else "operands of one dtype"
        raise Clash(
            f"`{self.op.name}` takes {wanted}, not {' and '.join(map(str, found))}",
            labels={i: f"this is {d}" for i, d in known.items()},
            help='Relay\'s text converts nothing by itself: write `cast(..., dtype="float32")`',
        )

    def _promoted(self, solver: Solver) -> tuple[Type, ...]:
        if self.common is None:
            return self.types
        return tuple(
            with_dtype(solver.shallow(ty), self.common) if param.promote else ty
            for ty, param in zip(self.types, self.op.operands, strict=True)
        )

    def _fill_hidden(self, solver: Solver, attrs: Mapping[str, Any]) -> None:
        if not self.op.hidden:
            return
        names = [p.name for p in self.op.operands]
        rule = RuleCall(self.op, self._promoted(solver), attrs, solver)
        says_all = all(p.name in attrs for p in self.op.hyper)
        says_weight = any(p.name in self.call.attrs for p in self.op.hyper)
        for hidden in self.op.hidden:
            position = names.index(hidden.name)
            found = solver.shallow(self.types[position])
            if isinstance(found, TypeHole) and not says_all:
                raise Stuck(found)
            if isinstance(found, TypeHole):
                solver.unify(found, hidden.type_rule(rule))
            elif says_weight and isinstance(found, TensorType):
                self._agree(solver, position, hidden.name, hidden.type_rule(rule))

    def _agree(self, solver: Solver, position: int, name: str, own: TensorType) -> None:
        """Make an operand that is given what its attributes say it is. Raises Clash."""
        try:
            solver.unify(self.types[position], own)
        except Clash:
            found = show(solver.resolve(self.types[position]))
            raise Clash(
                f"`{self.op.name}` has attributes for a `{name}` that is {show(own)}",
                labels={position: f"this is {found}"},
            ) from None


def is_given(hyper: Param, given: Mapping[str, Any]) -> bool:
    """Return whether a call determines a hyper-parameter, be it by its default."""
    return hyper.name in given or hyper.default is not Missing.REQUIRED


def _collect(
    solver: Solver, position: int, ty: Type, known: dict[int, DType], weak: list[DTypeHole]
) -> None:
    match solver.shallow(ty):
        case TypeHole() as hole:
            raise Stuck(hole)
        case SizeType():
            weak.append(DTypeHole(0, DTypeKind.INT))
        case TupleType(fields):
            for part in fields:
                _collect(solver, position, part, known, weak)
        case TensorType(_, dtype):
            dtype = solver.resolve_dtype(dtype)
            if isinstance(dtype, DType):
                if known.get(position, dtype) != dtype and known[position].kind is dtype.kind:
                    raise Clash(f"{known[position]} and {dtype} are mixed")
                if position not in known or known[position].kind.value < dtype.kind.value:
                    known[position] = dtype
            elif dtype.weak is None:
                raise Stuck(dtype)
            else:
                weak.append(dtype)
        case _:
            pass  # not a tensor: the operator's rule says so in its own words


def _highest(known: Mapping[int, DType]) -> DTypeKind | None:
    return max((d.kind for d in known.values()), key=lambda k: k.value, default=None)


def _common(solver: Solver, known: Mapping[int, DType], weak: list[DTypeHole]) -> AnyDType:
    highest = _highest(known)
    above = [w for w in weak if w.weak is not None and _above(w.weak, highest)]
    if highest is not None and not above:
        found = next(d for d in known.values() if d.kind is highest)
        for each in weak:
            solver.meet(each, found)
        return found
    if not above:
        return float32  # no operand is a tensor; the rule will refuse them
    top = max((w.weak for w in above if w.weak is not None), key=lambda k: k.value)
    leaders = [w for w in above if w.weak is top and w.number]
    if not leaders or (top is DTypeKind.INT and len(set(leaders)) > 1):
        return solver.fresh_dtype(top)
    for other in leaders[1:]:
        solver.unify_dtypes(leaders[0], other)
    return solver.resolve_dtype(leaders[0])


def _above(weak: DTypeKind, highest: DTypeKind | None) -> bool:
    return highest is None or weak.value > highest.value


def _is_floating(dtype: AnyDType) -> bool:
    kind = dtype.weak if isinstance(dtype, DTypeHole) else dtype.kind
    return kind is DTypeKind.FLOAT


def is_literal(expr: Expr) -> bool:
    """Return whether an expression is a number that the program states."""
    return isinstance(expr, Constant) and not isinstance(expr.value, CAPTURED)


def _is_int(dtype: AnyDType) -> bool:
    kind = dtype.weak if isinstance(dtype, DTypeHole) else dtype.kind
    return kind is DTypeKind.INT


def with_dtype(ty: Type, dtype: AnyDType) -> Type:
    """Return a type with a dtype in the place of that of each tensor and size in it."""
    match ty:
        case TensorType():
            return replace(ty, dtype=dtype)
        case SizeType():
            return TensorType((), dtype)
        case TupleType(fields):
            return TupleType(tuple(with_dtype(f, dtype) for f in fields))
        case _:
            return ty
