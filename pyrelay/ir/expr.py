"""Expressions: the functional language that everything is translated to.

    expr    ::= var | global | constant | (expr, ...) | expr.i
              | callee(expr, ...){attrs}[type args]
              | fn [type params] (var, ...) -> type { expr }
              | if (expr) { expr } else { expr }
              | match (expr) { pattern => expr, ... }        match? when it may fail
              | Constructor | ref(expr) | ref_read(expr) | ref_write(expr, expr)
              | transform(expr){options}
              | flavour { var = expr; ... } expr              a let block
    callee  ::= expr | operator
    pattern ::= _ | var | Constructor(pattern, ...) | (pattern, ...) | constant

Nodes are frozen and compared by identity; `equality.alpha_equal` compares by structure. Before
A-normal form a body is a tree: each node has one parent. In A-normal form operands are atoms
(`Atom`), the value of a binding is never itself a let block, and sharing is always by name.
Every node has a span. `ty` is None until inference has run.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from enum import Enum
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, TypeAlias, final

from ..dataclass import dataclass
from .bounds import relation
from .dims import Dim
from .transforms import Batching as Batching
from .transforms import Differentiation as Differentiation
from .transforms import Options as Options
from .transforms import Rule as Rule
from .types import DType, FnType, Type, TypeParam

if TYPE_CHECKING:
    from ..diagnostics.source import Span
    from .op import Op

Attrs: TypeAlias = Mapping[str, Any]
"""Static arguments: Python scalars, `None`, `Dim`, `DType`, types, and tuples of these. An `Expr`
stands here only until inference reads the dim off its type."""
NO_ATTRS: Final[Attrs] = MappingProxyType({})


class Flavour(Enum):
    """The effects that the bindings of a let block may have; the effect analysis decides."""

    PURE = "pure"
    IMPURE = "impure"
    REC = "rec"


@final
@dataclass(frozen=True, slots=True)
class TensorData:
    """The elements of a constant tensor: little-endian, row-major. Never a live array."""

    dtype: DType
    shape: tuple[int, ...]
    data: bytes = field(repr=False)


@final
@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Var:
    """A local variable. Identity is the name; `name` is a hint for printing."""

    name: str
    ty: Type | None = None
    span: Span = field(kw_only=True)


@final
@dataclass(frozen=True, slots=True, eq=False, repr=False)
class GlobalVar:
    """A mention of a function of the module, by its name there."""

    name: str
    ty: Type | None = None
    span: Span = field(kw_only=True)


@final
@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Constant:
    """A literal: a Python number or string, or the data of a tensor.

    A number with `ty` None is weak: inference gives it the dtype it meets.
    """

    value: bool | int | float | str | TensorData
    ty: Type | None = None
    span: Span = field(kw_only=True)


@final
@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Tuple:
    """A tuple; the empty one is unit, which also stands for an omitted operand."""

    fields: tuple[Expr, ...]
    ty: Type | None = None
    span: Span = field(kw_only=True)


@final
@dataclass(frozen=True, slots=True, eq=False, repr=False)
class TupleGet:
    """Field `index`, from 0, of a tuple."""

    value: Expr
    index: int
    ty: Type | None = None
    span: Span = field(kw_only=True)


@final
@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Call:
    """A call of an operator, a constructor, or any expression that is a function.

    `attrs` are an operator's static arguments; `type_args` instantiate the type parameters of a
    polymorphic callee, in order, and are filled in by inference.
    """

    callee: Callee
    args: tuple[Expr, ...]
    attrs: Attrs = field(default_factory=lambda: NO_ATTRS)
    type_args: tuple[Type | Dim, ...] = ()
    ty: Type | None = None
    span: Span = field(kw_only=True)


@final
@dataclass(frozen=True, slots=True, eq=False, repr=False, weakref_slot=True)
class Function:
    """A function. `result` is its annotated or inferred result type; `name` a hint for printing."""

    params: tuple[Var, ...]
    body: Expr
    result: Type | None = None
    type_params: tuple[TypeParam, ...] = ()
    name: str = ""
    assumptions: tuple[Assumption, ...] = ()
    ty: Type | None = None
    span: Span = field(kw_only=True)


@final
@dataclass(frozen=True, slots=True, eq=False, repr=False)
class If:
    """A conditional on a rank-0 bool."""

    condition: Expr
    then: Expr
    otherwise: Expr
    ty: Type | None = None
    span: Span = field(kw_only=True)


@final
@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Match:
    """Case analysis; the first clause that matches wins. A partial one (`match?`) may fail."""

    value: Expr
    clauses: tuple[Clause, ...]
    partial: bool = False
    ty: Type | None = None
    span: Span = field(kw_only=True)


@final
@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Constructor:
    """A constructor of an algebraic data type, as a function."""

    adt: str
    name: str
    ty: Type | None = None
    span: Span = field(kw_only=True)


@final
@dataclass(frozen=True, slots=True, eq=False, repr=False)
class RefCreate:
    """A new mutable cell."""

    value: Expr
    ty: Type | None = None
    span: Span = field(kw_only=True)


@final
@dataclass(frozen=True, slots=True, eq=False, repr=False)
class RefRead:
    """The content of a cell."""

    ref: Expr
    ty: Type | None = None
    span: Span = field(kw_only=True)


@final
@dataclass(frozen=True, slots=True, eq=False, repr=False)
class RefWrite:
    """A write to a cell; its value is unit."""

    ref: Expr
    value: Expr
    ty: Type | None = None
    span: Span = field(kw_only=True)


@final
@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Transform:
    """A function made from a function, such as its gradient; expanded before anything runs.

    With `f: (A1, ..., An) -> B`, and `Awrt` the types of the parameters that `options` names: grad
    gives `(A...) -> Awrt` (a tuple if there are several), value_and_grad `(A...) -> (B, Awrt)`, vjp
    `(A...) -> (B, fn(B) -> Awrt)`. jvp gives `((A...), (Awrt...)) -> (B, B)`, of two tuples. With
    `has_aux`, `B` is `(loss, aux)`, and jvp gives `(loss, tangent, aux)`. custom_vjp gives `f`
    itself, with a derivative that the user writes: `rules` are a forward function `(A...) -> (B,
    R)` and a backward function `(R, B) -> Awrt`; custom_jvp likewise, with one rule of the type of
    `jvp(f)`. checkpoint gives `f`, whose backward pass computes again what `policy` does not name;
    stop_gradient gives `f`, whose result is a constant of differentiation. autocast gives `f` with
    products in the dtype that `policy` names.

    The first `captures` parameters of `f` are the values that a closure has captured. They also
    come first in the derived function and in `rules`, unchanged, and options do not count them.
    """

    rule: Rule
    function: Expr
    options: Options
    captures: int = 0
    ty: Type | None = None
    rules: tuple[Expr, ...] = ()
    policy: tuple[str, ...] = ()
    span: Span = field(kw_only=True)


@final
@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Binding:
    """One `var = value` of a let block."""

    var: Var
    value: Expr


@final
@dataclass(frozen=True, slots=True, eq=False, repr=False)
class LetBlock:
    """A sequence of bindings and a body. In a `rec` block all values are functions in each
    other's scope; else each binding is in scope of what follows it."""

    bindings: tuple[Binding, ...]
    body: Expr
    flavour: Flavour
    ty: Type | None = None
    span: Span = field(kw_only=True)


@final
@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Wildcard:
    """Matches anything."""

    span: Span = field(kw_only=True)


@final
@dataclass(frozen=True, slots=True, eq=False, repr=False)
class BindPattern:
    """Matches what `inner` matches and binds it."""

    var: Var
    inner: Pattern | None = None
    span: Span = field(kw_only=True)


@final
@dataclass(frozen=True, slots=True, eq=False, repr=False)
class ConstructorPattern:
    """Matches a value made by a constructor."""

    adt: str
    name: str
    fields: tuple[Pattern, ...]
    span: Span = field(kw_only=True)


@final
@dataclass(frozen=True, slots=True, eq=False, repr=False)
class TuplePattern:
    """Matches a tuple."""

    fields: tuple[Pattern, ...]
    span: Span = field(kw_only=True)


@final
@dataclass(frozen=True, slots=True, eq=False, repr=False)
class LiteralPattern:
    """Matches an equal number, bool or string."""

    value: bool | int | float | str
    span: Span = field(kw_only=True)


@final
@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Clause:
    """One arm of a match; `guard`, if there is one, must also hold."""

    pattern: Pattern
    body: Expr
    guard: Expr | None = None

    @property
    def scopes(self) -> tuple[Expr, ...]:
        """The expressions that see what the pattern binds, in order of evaluation."""
        return (self.body,) if self.guard is None else (self.guard, self.body)


@final
@dataclass(frozen=True, slots=True)
class Assumption:
    """`left == right`, needed by the program, not decided by its types, checked at entry; or, if it
    `is_inside`, needed by a part of the function, which compares the sizes when it runs."""

    left: Dim
    right: Dim
    span: Span = field(compare=False)
    is_inside: bool = False

    def __str__(self) -> str:
        return "{} {} {}".format(*relation(self.left, self.right))


Pattern: TypeAlias = Wildcard | BindPattern | ConstructorPattern | TuplePattern | LiteralPattern
Atom: TypeAlias = Var | GlobalVar | Constant | Constructor
Composite: TypeAlias = (
    Call
    | Tuple
    | TupleGet
    | LetBlock
    | If
    | Function
    | Match
    | RefCreate
    | RefRead
    | RefWrite
    | Transform
)
Expr: TypeAlias = Atom | Composite
Callee: TypeAlias = "Expr | Op"


def use_of(operand: Expr, within: Span, *, is_result: bool = False) -> Span | None:
    """Return where an operand of a node at a span is written, or a result of its branches; None
    where that is not known.

    The span of a variable is where it is bound, unless it holds a part of the node.
    """
    if not isinstance(operand, Var):
        return operand.span
    is_part = within.start <= operand.span.start < within.end
    return within.use(operand.name, last=is_result) or (operand.span if is_part else None)


def is_atom(expr: Expr) -> bool:
    """Return whether the expression may stand as an operand in A-normal form."""
    return isinstance(expr, Atom) or is_unit(expr)


def is_tail(expr: Expr) -> bool:
    """Return whether the expression may end a body in A-normal form."""
    if isinstance(expr, Call):
        return isinstance(expr.callee, Expr) and not isinstance(expr.callee, Constructor)
    return is_atom(expr) or isinstance(expr, If | Match)


def is_unit(expr: Expr) -> bool:
    """Return whether the expression is the empty tuple."""
    return isinstance(expr, Tuple) and not expr.fields


def type_of(expr: Expr) -> Type:
    """Return the type of a checked expression."""
    assert expr.ty is not None, "the expression has not been through inference"
    return expr.ty


def function_type(expr: Expr) -> FnType:
    """Return the type of a checked expression that is a function."""
    assert isinstance(expr.ty, FnType)
    return expr.ty
