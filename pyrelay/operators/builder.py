"""Building typed A-normal form: what gradient rules and passes write their code with.

A `Builder` collects bindings; a `Value` is an atom with its type that belongs to a builder.
Arithmetic on values emits calls, so a rule reads like the mathematics: `g * (1 - out * out)`.
Operators live on `Value`, never on expression nodes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Final, final

from ..dataclass import dataclass
from ..ir.calls.attributes import bind_attrs
from ..ir.calls.closed_solver import ClosedSolver
from ..ir.dims import Dim
from ..ir.expr import (
    NO_ATTRS,
    Binding,
    Call,
    Constant,
    Constructor,
    Expr,
    Flavour,
    GlobalVar,
    LetBlock,
    Tuple,
    TupleGet,
    Var,
    is_atom,
    type_of,
)
from ..ir.layouts import result_type
from ..ir.names import Names
from ..ir.op import Op, Promotion, Role, RuleCall, Solver
from ..ir.types import (
    DEFAULT_DTYPE,
    UNIT,
    DType,
    DTypeKind,
    SizeType,
    TensorType,
    TupleType,
    Type,
    float32,
    int64,
    known_dtype,
)

if TYPE_CHECKING:
    from ..diagnostics.source import Span


@final
@dataclass(frozen=True, slots=True)
class ValueOperators:
    """The operators that builders and the methods of values emit."""

    add: Op
    subtract: Op
    multiply: Op
    divide: Op
    power: Op
    negative: Op
    matmul: Op
    sum_: Op
    sum_to: Op
    reshape: Op
    expand: Op
    transpose: Op
    unsqueeze: Op
    cast: Op
    full: Op
    size: Op


@final
class Builder:
    """A sequence of bindings under construction. `span` is given to every node it makes.

    Type rules ask `solver`, by default one that takes open equations between dims for granted.
    """

    def __init__(
        self, span: Span, names: Names | None = None, solver: Solver | None = None
    ) -> None:
        self.span: Span = span
        self.names: Final = Names() if names is None else names
        self.solver: Final = ClosedSolver(self.names) if solver is None else solver
        self.bindings: Final[list[Binding]] = []
        self._zeros: Final[set[Expr]] = set()

    def value(self, atom: Expr) -> Value:
        """Return an atom that is in scope as a value of this builder."""
        assert is_atom(atom), "only atoms are operands"
        return Value(self, atom)

    def bind(self, expr: Expr, hint: str = "t") -> Value:
        """Return the value of a typed expression, bound to a new variable unless it is an atom."""
        if is_atom(expr):
            return Value(self, expr)
        var = Var(self.names.fresh(hint), type_of(expr), span=expr.span)
        self.bindings.append(Binding(var, expr))
        return Value(self, var)

    def constant(self, number: float | bool, dtype: DType) -> Value:
        """Return a rank-0 constant."""
        kind = {DTypeKind.FLOAT: float, DTypeKind.INT: int, DTypeKind.BOOL: bool}[dtype.kind]
        return Value(self, Constant(kind(number), TensorType((), dtype), span=self.span))

    def size(self, dim: Dim | int) -> Value:
        """Return the integer value of a dim, which must be known where the code stands."""
        dim = Dim.of(dim)
        if dim.constant is not None:
            return Value(self, Constant(dim.constant, SizeType(dim), span=self.span))
        return self.call(Value.operators.size, (), {"dim": dim})

    def unit(self) -> Value:
        """Return the empty tuple."""
        return Value(self, Tuple((), UNIT, span=self.span))

    def tuple(self, values: Sequence[Value]) -> Value:
        """Return a tuple of values."""
        if not values:
            return self.unit()
        ty = TupleType(tuple(v.ty for v in values))
        return self.bind(Tuple(tuple(v.atom for v in values), ty, span=self.span))

    def zeros(self, ty: Type) -> Value:
        """Return the zero of a tensor type."""
        assert isinstance(ty, TensorType)
        assert isinstance(ty.dtype, DType)
        attrs = {"size": ty.shape, "fill_value": 0, "dtype": ty.dtype}
        zero = self.call(Value.operators.full, (), attrs)
        self._zeros.add(zero.atom)
        return zero

    def known_zero(self, atom: Expr) -> Value:
        """Return an atom in scope that is known to be zero, as `zeros` makes one, as a value."""
        self._zeros.add(atom)
        return self.value(atom)

    def is_zero(self, value: Value) -> bool:
        """Return whether a value was made by `zeros`, so that a rule can leave a term out."""
        return value.atom in self._zeros

    def call(
        self, op: Op, operands: Sequence[Value | float | None], attrs: Mapping[str, Any] = NO_ATTRS
    ) -> Value:
        """Return the value of an operator call; its type rule gives the type."""
        bound = bind_attrs(op, attrs)
        values = _promote(self, op, _operand_values(self, op, operands))
        ty = self.result_type(op, values, bound)
        return self.bind(
            Call(op, tuple(v.atom for v in values), bound, ty=ty, span=self.span), op.name
        )

    def result_type(self, op: Op, values: Sequence[Value], attrs: Mapping[str, Any]) -> Type:
        """Return the type of an operator call with promoted operands and all attributes."""
        return result_type(RuleCall(op, tuple(v.ty for v in values), attrs, self.solver))

    def construct(self, adt: str, name: str, values: Sequence[Value], ty: Type) -> Value:
        """Return a value made by a constructor; `ty` is its data type."""
        callee = Constructor(adt, name, span=self.span)
        return self.bind(
            Call(callee, tuple(v.atom for v in values), ty=ty, span=self.span), name.lower()
        )

    def apply(
        self,
        function: str | Var,
        values: Sequence[Value],
        result: Type,
        type_args: tuple[Type | Dim, ...] = (),
    ) -> Value:
        """Return the result of calling a global function by name, or a local function."""
        callee = GlobalVar(function, span=self.span) if isinstance(function, str) else function
        atoms = tuple(v.atom for v in values)
        return self.bind(Call(callee, atoms, type_args=type_args, ty=result, span=self.span), "r")

    def block(self, result: Value) -> Expr:
        """Return everything built so far, ending in `result`."""
        if not self.bindings:
            return result.atom
        return LetBlock(
            tuple(self.bindings), result.atom, Flavour.PURE, ty=result.ty, span=self.span
        )


@final
class Value:
    """An atom under construction. `+ - * / ** @ -x` and the methods emit calls."""

    __slots__ = ("atom", "builder")

    operators: ClassVar[ValueOperators]
    """Set by `values.py`: the operators are declared with derivatives, which are written in values.
    """

    def __init__(self, builder: Builder, atom: Expr) -> None:
        self.builder: Final = builder
        self.atom: Final = atom

    def __repr__(self) -> str:
        return f"<value of {self.ty}>"

    @property
    def ty(self) -> Type:
        """The type."""
        return type_of(self.atom)

    @property
    def shape(self) -> tuple[Dim, ...]:
        """The shape of a tensor."""
        return self.tensor.shape

    @property
    def rank(self) -> int:
        """The number of dimensions of a tensor."""
        return len(self.tensor.shape)

    @property
    def dtype(self) -> DType:
        """The element type of a tensor."""
        return known_dtype(self.tensor)

    @property
    def tensor(self) -> TensorType:
        """The type, which must be a tensor's."""
        ty = TensorType((), int64) if isinstance(self.ty, SizeType) else self.ty
        assert isinstance(ty, TensorType)
        return ty

    def at(self, path: Sequence[int]) -> Value:
        """Return the part of a tuple, or of a tuple in it, at a path."""
        value = self
        for place in path:
            value = value[place]
        return value

    def __getitem__(self, index: int) -> Value:
        """Return field `index` of a tuple."""
        ty = self.ty
        assert isinstance(ty, TupleType)
        if isinstance(self.atom, Tuple):
            return Value(self.builder, self.atom.fields[index])
        return self.builder.bind(
            TupleGet(self.atom, index, ty.fields[index], span=self.builder.span)
        )

    def __add__(self, other: Value | float) -> Value:
        return self.operators.add(self, other)

    def __radd__(self, other: float) -> Value:
        return self.operators.add(other, self)

    def __sub__(self, other: Value | float) -> Value:
        return self.operators.subtract(self, other)

    def __rsub__(self, other: float) -> Value:
        return self.operators.subtract(other, self)

    def __mul__(self, other: Value | float) -> Value:
        return self.operators.multiply(self, other)

    def __rmul__(self, other: float) -> Value:
        return self.operators.multiply(other, self)

    def __truediv__(self, other: Value | float) -> Value:
        return self.operators.divide(self, other)

    def __rtruediv__(self, other: float) -> Value:
        return self.operators.divide(other, self)

    def __pow__(self, other: Value | float) -> Value:
        return self.operators.power(self, other)

    def __neg__(self) -> Value:
        return self.operators.negative(self)

    def __matmul__(self, other: Value) -> Value:
        return self.operators.matmul(self, other)

    def sum(self, dim: tuple[int, ...] | None = None, *, keepdim: bool = False) -> Value:
        """Return the sum over dims, over all for None; over no dims it is the value itself."""
        return self if dim == () else self.operators.sum_(self, dim=dim, keepdim=keepdim)

    def sum_to(self, shape: tuple[Dim, ...]) -> Value:
        """Return the sum over the dims that were broadcast from `shape`; undoes `expand`."""
        return self if self.shape == shape else self.operators.sum_to(self, size=shape)

    def reshape(self, *shape: Dim | int) -> Value:
        """Return the same elements in another shape."""
        wanted = tuple(Dim.of(d) for d in shape)
        return self if self.shape == wanted else self.operators.reshape(self, shape=wanted)

    def expand(self, shape: tuple[Dim, ...]) -> Value:
        """Return the value broadcast to a shape."""
        return self if self.shape == shape else self.operators.expand(self, size=shape)

    def transpose(self, first: int, second: int) -> Value:
        """Return the tensor with two dims swapped."""
        return self.operators.transpose(self, dim0=first, dim1=second)

    def unsqueeze(self, dim: int) -> Value:
        """Return the tensor with a dim of size 1 inserted."""
        return self.operators.unsqueeze(self, dim=dim)

    def cast(self, dtype: DType) -> Value:
        """Return the elements in another dtype."""
        return self if self.dtype == dtype else self.operators.cast(self, dtype=dtype)


def result_shape(
    op: Op, operands: Sequence[Value | None], attrs: Mapping[str, Any]
) -> tuple[Dim, ...]:
    """Return the shape of the tensor that a call would give."""
    builder = next(v for v in operands if v is not None).builder
    values = [builder.unit() if v is None else v for v in operands]
    ty = builder.result_type(op, values, attrs)
    assert isinstance(ty, TensorType)
    return ty.shape


def promoted_dtype(op: Op, dtypes: Sequence[DType]) -> DType:
    """Return the dtype to which an operator brings its promoted operands.

    An int or bool beside a float takes the float's dtype; of one kind the wider wins here (two
    widths of one kind are refused before, by inference).
    """
    widest = max(dtypes, key=lambda d: (d.kind.value, d.bits))
    if op.promotion is Promotion.FLOAT and widest.kind is not DTypeKind.FLOAT:
        return float32
    return widest


def _operand_values(
    builder: Builder, op: Op, operands: Sequence[Value | float | None]
) -> list[Value | float]:
    found: list[Value | float] = []
    for index in range(len(op.operands)):
        item = operands[index] if index < len(operands) else None
        found.append(builder.unit() if item is None else item)
    return found


def _promote(builder: Builder, op: Op, operands: list[Value | float]) -> list[Value]:
    """Bring the promoted operands to one dtype."""
    dtype = _common_dtype(op, operands)
    found: list[Value] = []
    for value, param in zip(operands, op.operands, strict=True):
        promoted = param.promote and op.promotion is not Promotion.NONE
        if not isinstance(value, Value):
            own = DEFAULT_DTYPE[_number_kind(value)]
            found.append(builder.constant(value, dtype if promoted else own))
        else:
            found.append(_to_dtype(value, dtype) if promoted else value)
    return found


def _common_dtype(op: Op, operands: Sequence[Value | float]) -> DType:
    """Return the dtype of the promoted operands. Numbers and sizes are weak: they take the dtype
    they meet, unless theirs is of a higher kind."""
    fixed: list[DType] = []
    weak: list[DTypeKind] = []
    for value, param in zip(operands, op.operands, strict=True):
        if not param.promote:
            continue
        if isinstance(value, Value):
            _collect_dtypes(value.ty, fixed, weak)
        else:
            weak.append(_number_kind(value))
    highest = max((d.kind.value for d in fixed), default=-1)
    found = [*fixed, *(DEFAULT_DTYPE[k] for k in weak if k.value > highest)]
    return promoted_dtype(op, found) if found else float32


def _collect_dtypes(ty: Type, fixed: list[DType], weak: list[DTypeKind]) -> None:
    for part in ty.fields if isinstance(ty, TupleType) else (ty,):
        if isinstance(part, SizeType):
            weak.append(DTypeKind.INT)
        elif isinstance(part, TensorType) and isinstance(part.dtype, DType):
            fixed.append(part.dtype)


def _number_kind(number: float) -> DTypeKind:
    if isinstance(number, bool):
        return DTypeKind.BOOL
    return DTypeKind.FLOAT if isinstance(number, float) else DTypeKind.INT


def _to_dtype(value: Value, dtype: DType) -> Value:
    if isinstance(value.ty, TupleType):
        fields = [_to_dtype(value[i], dtype) for i in range(len(value.ty.fields))]
        return value.builder.tuple(fields)
    if isinstance(value.atom, Constant) and isinstance(value.atom.value, bool | int | float):
        return value.builder.constant(value.atom.value, dtype)
    if isinstance(value.ty, SizeType) and dtype == int64:
        return value
    return value.cast(dtype)


__all__ = ["Builder", "Names", "Role", "Value", "promoted_dtype", "result_shape"]
