"""Equality by structure: the same program up to the names of its bound variables.

Both questions read one canonical stream of tokens. In it variables are numbered in the order they
are bound, type parameters by how many enclose them; spans and name hints leave no trace. Two
things are equal when their streams are, and the hash is taken over the stream's text, so it is
the same in every process. The walk keeps its own stack.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import fields
from enum import Enum
from itertools import zip_longest
from typing import Any, Final, TypeAlias, assert_never, final, get_args

from ..dataclass import dataclass
from .dims import Dim
from .expr import (
    Binding,
    BindPattern,
    Call,
    Callee,
    Clause,
    Constructor,
    ConstructorPattern,
    Expr,
    Flavour,
    Function,
    GlobalVar,
    LetBlock,
    LiteralPattern,
    Pattern,
    TensorData,
    TuplePattern,
    Var,
    Wildcard,
)
from .module import AdtDef, Module
from .op import Op
from .transforms import Batching, Differentiation
from .types import DType, FnType, Type, TypeParam, TypeVar, map_type


def alpha_equal(left: Expr | Module, right: Expr | Module) -> bool:
    """Return whether two programs differ at most in spans and in the names of bound variables.

    Flavours, attributes, types and constants count; a number equals only one of its own type and
    bits. A free variable is equal only to itself.
    """
    end = object()
    pairs = zip_longest(_Stream().tokens(left), _Stream().tokens(right), fillvalue=end)
    return all(a is b or a == b for a, b in pairs)


def structural_hash(program: Expr | Module) -> str:
    """Return a hexadecimal digest that is equal for alpha-equal programs, in every process."""
    digest = hashlib.sha256()
    texts: dict[Token, bytes] = {}
    for token in _Stream().tokens(program):
        text = texts.get(token)
        if text is None:
            text = texts[token] = _text(token).encode()
        digest.update(b"%d " % len(text))
        digest.update(text)
    return digest.hexdigest()


@final
@dataclass(frozen=True, slots=True)
class _Free:
    """A variable that the program does not bind."""

    var: Var


Token: TypeAlias = "str | _Free | Op | Type | TensorData | None"
_Work: TypeAlias = "Expr | Pattern | Binding | Clause | _Bound | _Scope | Token"
"""An item of the stack: a part to walk, a scope to restore, or a token to yield."""
_OWN: Final = {
    node: tuple(f.name for f in fields(node) if f.name not in ("ty", "span"))
    for node in get_args(Expr)
}
"""The fields of a node that determine its value, in order."""


def _text(token: Token) -> str:
    match token:
        case str():
            return token
        case _Free(var):
            return f"free {var.name}"
        case Op(name=name):
            return f"operator {name}"
        case TensorData(dtype, shape, data):
            return f"{dtype} {shape} {hashlib.sha256(data).hexdigest()}"
        case _:
            return repr(token)


@final
@dataclass(frozen=True, slots=True)
class _Scope:
    """The type parameters in scope with their canonical names; `types` caches renamed types."""

    names: Mapping[str, str]
    types: dict[Type, Type]

    def enter(self, params: tuple[TypeParam, ...]) -> _Scope:
        """Return the scope inside a binder of type parameters."""
        if not params:
            return self
        depth = len(self.names)
        # A name that is bound again keeps its old place taken, so that depths stay distinct.
        outer = {f"{name}'": canonical for name, canonical in self.names.items()}
        inner = {p.name: f"'{depth + i}" for i, p in enumerate(params)}
        kept = {n: c for n, c in self.names.items() if n not in inner}
        hidden = {n: c for n, c in outer.items() if n[:-1] in inner}
        return _Scope({**kept, **hidden, **inner}, {})

    def dim(self, dim: Dim) -> Dim:
        """Return a dim under canonical names."""
        names = self.names
        return dim.rename({n: Dim.of(names[n]) for n in dim.names() if n in names})

    def type(self, ty: Type | None) -> Type | None:
        """Return a type under canonical names."""
        if ty is None:
            return None
        found = self.types.get(ty)
        if found is None:
            found = self.types[ty] = map_type(ty, self._rename, self.dim)
        return found

    def params(self, params: tuple[TypeParam, ...]) -> tuple[TypeParam, ...]:
        """Return type parameters that this scope binds under their canonical names."""
        return tuple(type(p)(self.names[p.name]) for p in params)

    def _rename(self, ty: Type) -> Type | None:
        if isinstance(ty, TypeVar):
            return TypeVar(self.names.get(ty.name, ty.name))
        if isinstance(ty, FnType) and ty.type_params:
            inner = self.enter(ty.type_params)
            body = inner.type(FnType(ty.params, ty.result))
            assert isinstance(body, FnType)
            return FnType(body.params, body.result, inner.params(ty.type_params))
        return None


@final
@dataclass(frozen=True, slots=True)
class _Bound:
    """The place where a variable is bound."""

    var: Var


@final
class _Stream:
    """One walk over a program; `tokens` may be used once."""

    def __init__(self) -> None:
        self._numbers: Final[dict[Var, int]] = {}
        self._scope = _Scope({}, {})

    def tokens(self, program: Expr | Module) -> Iterator[Token]:
        """Return the canonical tokens of a program."""
        stack: list[_Work] = []
        if isinstance(program, Module):
            yield f"module {program.strict_dtypes}"
            for name in sorted(program.adts):
                yield from self._adt(program.adts[name])
            for name in sorted(program.functions, reverse=True):
                stack += (program.functions[name], f"function {name}")
        else:
            stack.append(program)
        while stack:
            item = stack.pop()
            if isinstance(item, _Scope):
                self._scope = item
            elif isinstance(item, Expr | Pattern | Binding | Clause | _Bound):
                stack += reversed(self._parts(item))
            else:
                yield item

    def _adt(self, adt: AdtDef) -> Iterator[Token]:
        scope = self._scope.enter(adt.type_params)
        yield f"data {adt.name} {scope.params(adt.type_params)!r}"
        for constructor in adt.constructors:
            yield f"{constructor.name} {constructor.field_names!r} {len(constructor.fields)}"
            yield from (scope.type(field) for field in constructor.fields)

    def _parts(self, item: Expr | Pattern | Binding | Clause | _Bound) -> tuple[_Work, ...]:
        """Return the parts of an item, in order; the type of an expression comes last."""
        if isinstance(item, Var):
            number = self._numbers.get(item)
            return (_Free(item),) if number is None else (f"var {number}",)
        if isinstance(item, Function):
            return self._function(item)
        if isinstance(item, _Bound):
            self._numbers[item.var] = len(self._numbers)
            return (self._scope.type(item.var.ty),)
        if isinstance(item, Binding):
            return (_Bound(item.var), item.value)
        if isinstance(item, Clause):
            guarded = () if item.guard is None else ("guard", item.guard)
            return (item.pattern, *guarded, item.body)
        if isinstance(item, Pattern):
            return _pattern_parts(item)
        return (*self._node(item), self._scope.type(item.ty))

    def _function(self, function: Function) -> tuple[_Work, ...]:
        outer, inner = self._scope, self._scope.enter(function.type_params)
        params = inner.params(function.type_params)
        assumptions = [
            (inner.dim(a.left), inner.dim(a.right), a.is_inside) for a in function.assumptions
        ]
        return (
            outer.type(function.ty),
            f"fn {params!r} {len(function.params)} {assumptions!r}",
            inner,
            inner.type(function.result),
            *(_Bound(p) for p in function.params),
            function.body,
            outer,
        )

    def _node(self, expr: Expr) -> tuple[_Work, ...]:
        match expr:
            case Call(callee, args):
                return (f"call {len(args)}", *_callee(callee), *args, *self._static(expr))
            case LetBlock(bindings, body, flavour) if flavour is Flavour.REC:
                bound = (_Bound(b.var) for b in bindings)
                values = (b.value for b in bindings)
                return (f"rec {len(bindings)}", *bound, *values, body)
            case _:
                own = tuple(getattr(expr, name) for name in _OWN[type(expr)])
                return (type(expr).__name__, *self._data(own))

    def _static(self, call: Call) -> tuple[_Work, ...]:
        """Return the attributes, by name, and the type arguments of a call."""
        found: list[_Work] = [f"attrs {sorted(call.attrs)!r}"]
        for name in sorted(call.attrs):
            found += self._data(call.attrs[name])
        for arg in call.type_args:
            found.append(f"dim {self._scope.dim(arg)}" if isinstance(arg, Dim) else None)
            found += () if isinstance(arg, Dim) else (self._scope.type(arg),)
        return tuple(found)

    def _data(self, value: Any) -> Iterator[_Work]:
        """Return the parts of an attribute or a field, nested tuples opened."""
        pending: list[Any] = [value]
        while pending:
            item = pending.pop()
            match item:
                case tuple():
                    yield f"({len(item)}"
                    pending += reversed(item)
                case Dim():
                    yield f"dim {self._scope.dim(item)}"
                case DType():
                    yield f"dtype {item.name}"
                case bool() | int() | float() | str() | None:
                    yield _literal(item)
                case Enum() | Differentiation() | Batching():
                    yield repr(item)
                case _ if isinstance(item, Expr | Binding | Clause | TensorData):
                    yield item
                case _:
                    yield self._scope.type(item)


def _callee(callee: Callee) -> tuple[_Work, ...]:
    """Return the callee. The type of a global or of a constructor follows there from its definition
    and the type arguments, so a pass need not write it."""
    match callee:
        case GlobalVar(name):
            return (f"global {name}",)
        case Constructor(adt, name):
            return (f"constructor {adt} {name}",)
        case _:
            return (callee,)


def _pattern_parts(pattern: Pattern) -> tuple[_Work, ...]:
    match pattern:
        case Wildcard():
            return ("_",)
        case BindPattern(var, inner):
            return (_Bound(var),) if inner is None else ("as", _Bound(var), inner)
        case ConstructorPattern(adt, name, fields):
            return (f"constructor {adt} {name} {len(fields)}", *fields)
        case TuplePattern(fields):
            return (f"tuple {len(fields)}", *fields)
        case LiteralPattern(value):
            return (_literal(value),)
        case other:
            assert_never(other)


def _literal(value: bool | float | str | None) -> str:
    # `repr` of a float is exact, and distinguishes -0.0 from 0.0 and True from 1 from 1.0.
    return f"{type(value).__name__} {value!r}"
