"""Programs written down as data: a builder for each form of the language.

    >>> from pyrelay.ir import builders as b
    >>> x = b.var("x", b.tensor("float32", "N"))
    >>> program = b.module({"main": b.function([x], b.call("add", x, b.call("tanh", x)))})
    >>> print(program.functions["main"].params[0].name)
    x

`relay.function(program)` gives a function to call. A module is built through its text, so that
mistakes found later show the place in it. Variables are objects: two of one name differ. A wrong
argument of a builder is a `TypeError` or a `KeyError` at the call.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from operator import index
from typing import Any, Final, TypeAlias

from ..diagnostics.misspelt import nearest
from ..diagnostics.source import NOWHERE
from ..operators.table import BY_NAME
from ..text.parser import parse_module
from ..text.printer import to_text
from . import expr as e
from .dims import Dim, DimVar
from .expr import Clause, Expr, Flavour, Pattern, Rule, Var
from .module import AdtDef, ConstructorDef, Module
from .op import Op
from .types import (
    DTYPES,
    STR,
    AdtType,
    DType,
    FnType,
    RefType,
    SizeType,
    TensorType,
    TupleType,
    Type,
    TypeParam,
    TypeVar,
    bool_,
    tensor_type,
)

Value: TypeAlias = "Expr | bool | int | float | str"
"""An expression, or a number or string that stands for itself."""
Callee: TypeAlias = "Expr | Op | str"
"""A callee: an expression, an operator, an operator's name, or `@` and a function's name."""

NAME: Final = "<built>"
"""The name of the text that messages about a built module show."""


# Types.


def type_var(name: str) -> TypeVar:
    """Return a type parameter."""
    return TypeVar(name)


def dim_var(name: str) -> DimVar:
    """Return a parameter that is a size."""
    return DimVar(name)


def tensor(dtype: str, *shape: Dim | int | str) -> TensorType:
    """Return the type of tensors, sizes as integers or names. Raises KeyError for another dtype."""
    return tensor_type(DTYPES[dtype], *shape)


def tuple_type(*fields: Type) -> TupleType:
    """Return the type of tuples."""
    return TupleType(fields)


def fn_type(params: Sequence[Type], result: Type) -> FnType:
    """Return the type of functions."""
    return FnType(tuple(params), result)


def ref_type(value: Type) -> RefType:
    """Return the type of cells."""
    return RefType(value)


def size_type(size: Dim | int | str) -> SizeType:
    """Return the type of an integer that is a size: `size_type("N")`."""
    return SizeType(Dim.of(size))


def string_type() -> Type:
    """Return the type of strings."""
    return STR


def data_type(definition: AdtDef | str, *args: Type | Dim) -> AdtType:
    """Return a data type at its arguments."""
    return AdtType(definition if isinstance(definition, str) else definition.name, args)


def data(name: str, params: Sequence[TypeParam] = (), /, **constructors: Sequence[Type]) -> AdtDef:
    """Return the definition of a data type; each constructor with the types of its fields."""
    made = tuple(ConstructorDef(c, tuple(fields)) for c, fields in constructors.items())
    return AdtDef(name, tuple(params), made, NOWHERE)


# Expressions.


def var(name: str, ty: Type | None = None) -> Var:
    """Return a new variable."""
    return Var(name, ty, span=NOWHERE)


def constant(value: bool | float | str | e.TensorData, dtype: str | None = None) -> Expr:
    """Return a constant; a number without a dtype takes the one it meets."""
    ty = None if dtype is None else TensorType((), DTYPES[dtype])
    return e.Constant(value, ty, span=NOWHERE)


def call(callee: Callee, *args: Value, **attrs: Any) -> Expr:
    """Return a call. Operands of an operator that are left out at the end are omitted.

    Attributes may be lists, and dtypes the names of them. Raises KeyError for an operator that does
    not exist, TypeError for what is no expression or no attribute.
    """
    given = tuple(map(_expr, args))
    if isinstance(callee, str) and callee.startswith("@"):
        return e.Call(e.GlobalVar(callee[1:], span=NOWHERE), given, span=NOWHERE)
    if isinstance(callee, Op | str):
        op = operator(callee) if isinstance(callee, str) else callee
        missing = len(op.operands) - len(given)
        given += (e.Tuple((), span=NOWHERE),) * missing
        found = {name: _attribute(op, name, value) for name, value in attrs.items()}
        return e.Call(op, given, found, span=NOWHERE)
    return e.Call(callee, given, span=NOWHERE)


def _attribute(op: Op, name: str, value: Any) -> Any:
    if isinstance(value, list | tuple):
        return tuple(_attribute(op, name, item) for item in value)
    if isinstance(value, str) and value in DTYPES and _is_dtype(op, name):
        return DTYPES[value]
    if value is None or isinstance(value, bool | int | float | str | Expr | Dim | DType | Type):
        return value
    if hasattr(value, "__index__"):
        return index(value)
    raise TypeError(f"the attribute `{name}` of `{op.name}` cannot be {value!r}")


def _is_dtype(op: Op, name: str) -> bool:
    """Return whether an attribute takes dtypes, which builders may name."""
    kind = next((p.convert for p in op.attributes if p.name == name), None)
    try:
        return kind is not None and kind(bool_) == bool_
    except TypeError:
        return False


def operator(name: str) -> Op:
    """Return an operator by name. Raises KeyError, which says what name is near."""
    if name in BY_NAME:
        return BY_NAME[name]
    near = nearest(name, BY_NAME)
    raise KeyError(f"there is no operator {name!r}" + (f"; did you mean {near!r}?" * bool(near)))


def global_function(name: str) -> Expr:
    """Return a mention of a function of the module."""
    return e.GlobalVar(name, span=NOWHERE)


def constructor(definition: AdtDef, name: str) -> Expr:
    """Return a constructor, as a function. Raises KeyError if the data type has none so named."""
    definition.constructor(name)
    return e.Constructor(definition.name, name, span=NOWHERE)


def tuple_(*fields: Value) -> Expr:
    """Return a tuple."""
    return e.Tuple(tuple(map(_expr, fields)), span=NOWHERE)


def field(value: Value, index: int) -> Expr:
    """Return a field of a tuple, from 0."""
    return e.TupleGet(_expr(value), index, span=NOWHERE)


def let(variable: Var, value: Value, body: Value) -> Expr:
    """Return `body` with a value named in it."""
    return _block(((variable, _expr(value)),), body, Flavour.PURE)


def lets(bindings: Sequence[tuple[Var, Value]], body: Value) -> Expr:
    """Return `body` with values named one after another; each sees those before it."""
    return _block([(v, _expr(value)) for v, value in bindings], body, Flavour.PURE)


def let_rec(functions: Mapping[Var, Expr], body: Value) -> Expr:
    """Return `body` with functions named that see each other."""
    return _block(tuple(functions.items()), body, Flavour.REC)


def _block(bindings: Sequence[tuple[Var, Expr]], body: Value, flavour: Flavour) -> Expr:
    made = tuple(e.Binding(v, value) for v, value in bindings)
    return e.LetBlock(made, _expr(body), flavour, span=NOWHERE)


def if_(condition: Value, then: Value, otherwise: Value) -> Expr:
    """Return a conditional."""
    return e.If(_expr(condition), _expr(then), _expr(otherwise), span=NOWHERE)


def function(
    params: Sequence[Var],
    body: Value,
    result: Type | None = None,
    type_params: Sequence[TypeParam] = (),
) -> e.Function:
    """Return a function."""
    return e.Function(tuple(params), _expr(body), result, tuple(type_params), span=NOWHERE)


def ref(value: Value) -> Expr:
    """Return a new cell."""
    return e.RefCreate(_expr(value), span=NOWHERE)


def read(cell: Expr) -> Expr:
    """Return the content of a cell."""
    return e.RefRead(cell, span=NOWHERE)


def write(cell: Expr, value: Value) -> Expr:
    """Return the write of a value to a cell."""
    return e.RefWrite(cell, _expr(value), span=NOWHERE)


def transform(
    rule: str,
    function: Callee,
    wrt: Sequence[int] | None = None,
    *,
    single: bool = True,
    has_aux: bool = False,
) -> Expr:
    """Return a function made from a function: `transform("grad", "@f")`. `wrt` are the numbers of
    parameters; with `single`, one gives a bare gradient. Raises ValueError for another rule."""
    made = function
    if isinstance(made, str):
        made = global_function(made.removeprefix("@"))
    if isinstance(made, Op):
        raise TypeError(f"{made.name} is an operator; differentiate a function that calls it")
    chosen = None if wrt is None else tuple(wrt)
    options = e.Differentiation(chosen, single, has_aux)
    return e.Transform(Rule(rule), made, options, span=NOWHERE)


def match(
    value: Value,
    *clauses: tuple[Pattern, Value] | tuple[Pattern, Value, Value],
    partial: bool = False,
) -> Expr:
    """Return a case analysis: patterns with bodies; the first that matches wins, if its guard,
    which may stand behind the body, holds. A `partial` one may lack cases."""
    made = (Clause(c[0], _expr(c[1]), _expr(c[2]) if len(c) == 3 else None) for c in clauses)
    return e.Match(_expr(value), tuple(made), partial, span=NOWHERE)


# Patterns.


def anything() -> Pattern:
    """Return the pattern that matches everything."""
    return e.Wildcard(span=NOWHERE)


def case(definition: AdtDef, name: str, *fields: Pattern | Var) -> Pattern:
    """Return the pattern of a constructor; a variable stands for what it binds.

    Raises KeyError if the data type has no constructor so named.
    """
    definition.constructor(name)
    return e.ConstructorPattern(definition.name, name, tuple(map(_pattern, fields)), span=NOWHERE)


def tuple_case(*fields: Pattern | Var) -> Pattern:
    """Return the pattern of a tuple."""
    return e.TuplePattern(tuple(map(_pattern, fields)), span=NOWHERE)


def literal(value: bool | float | str) -> Pattern:
    """Return the pattern that matches an equal number, bool or string."""
    return e.LiteralPattern(value, span=NOWHERE)


def bind(variable: Var, inner: Pattern | None = None) -> Pattern:
    """Return the pattern that matches what `inner` does, or everything, and names it."""
    return e.BindPattern(variable, inner, span=NOWHERE)


def _pattern(part: Pattern | Var) -> Pattern:
    return bind(part) if isinstance(part, Var) else part


# Modules.


def module(functions: Mapping[str, e.Function], *definitions: AdtDef) -> Module:
    """Return a module of functions and data types. Raises CheckError for one whose names are wrong:
    a variable that nothing binds, a function that it does not have."""
    built = Module(dict(functions), {d.name: d for d in definitions})
    return parse_module(to_text(built), NAME)


def _expr(value: object) -> Expr:
    if isinstance(value, bool | int | float | str):
        return constant(value)
    if isinstance(value, Expr):
        return value
    raise TypeError(
        f"{value!r} is no expression; () is `tuple_()`, and a tensor is passed to the function"
    )
