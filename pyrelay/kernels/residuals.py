"""Residuals of gradients: the bytes between a forward function and its backward function.

Read off the program as the gradients left it. A value that a forward function saves counts once,
however often it is saved; arguments, and views of what is saved anyway, count nothing. What
recursions and branches save is data whose size only the run knows: its types are counted, not its
bytes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final, TypeAlias, final

from ..dataclass import dataclass
from ..diagnostics.wording import counted
from ..ir.dims import ZERO, Dim
from ..ir.expr import Call, Constant, Expr, Function, GlobalVar, Tuple, TupleGet, Var, type_of
from ..ir.module import Module
from ..ir.op import Op, View
from ..ir.traverse import post_order, spine
from ..ir.types import Substitution, TensorType, TupleType, Type, substitution
from ..operators.primitive.activation import recomputed
from .cost import size_of

MAX_CALLS: Final = 10_000
"""How many calls are followed for one function; what is beyond them counts as made anew."""


@final
@dataclass(frozen=True, eq=False)
class _Made:
    """A value that is no tuple, by identity; `is_given` says that the caller has it anyway."""

    ty: Type
    is_given: bool = False


_Value: TypeAlias = "_Made | tuple[_Value, ...]"


def explain_saved(module: Module) -> list[str]:
    """Return a line for each forward function that the program calls outside of others."""
    forward = {n for n, f in module.functions.items() if _is_forward(f)}
    lines: list[str] = []
    for name, function in module.functions.items():
        if name in forward:
            continue
        again = any(isinstance(n, Call) and n.callee is recomputed for n in post_order(function))
        called = (n.callee.name for n in _calls(function) if isinstance(n.callee, GlobalVar))
        found = dict.fromkeys(c for c in called if c in forward)
        lines += [_line(module, callee, again=again) for callee in found]
    return list(dict.fromkeys(lines))


def _line(module: Module, name: str, *, again: bool) -> str:
    function = module.functions[name]
    what = function.span.because.removeprefix("forward pass of ").rpartition(".")[2]
    size, data = _saved(module, name)
    more = f" and {counted(data, 'value')} of data" if data else ""
    when = ", when it is computed again" if again else ""
    return f"  {what}: {size} B{more}{when}"


def _is_forward(function: Function) -> bool:
    return function.span.because.startswith("forward pass of ")


def _calls(function: Function) -> Iterator[Call]:
    return (n for n in post_order(function) if isinstance(n, Call))


def _saved(module: Module, name: str) -> tuple[Dim, int]:
    """Return the bytes that a forward function saves, and how many values of other data."""
    function = module.functions[name]
    args = tuple(_of_type(type_of(p), is_given=True) for p in function.params)
    whole = _SavedValues(module).call(function, args, Substitution({}, {}), frozenset((name,)))
    assert isinstance(whole, tuple)
    size, data = ZERO, 0
    for leaf in dict.fromkeys(_leaves(whole[1])):
        if isinstance(leaf.ty, TensorType) and not leaf.is_given:
            size += size_of(leaf.ty)
        else:
            data += not leaf.is_given and not isinstance(leaf.ty, TensorType)
    return size, data


def _leaves(value: _Value) -> Iterator[_Made]:
    pending = [value]
    while pending:
        part = pending.pop()
        if isinstance(part, _Made):
            yield part
        else:
            pending += reversed(part)


def _of_type(ty: Type, *, is_given: bool = False) -> _Value:
    if isinstance(ty, TupleType):
        return tuple(_of_type(f, is_given=is_given) for f in ty.fields)
    return _Made(ty, is_given)


@final
@dataclass(frozen=True, slots=True, eq=False)
class _Scope:
    """The values of the variables and type parameters of a function in one call of it."""

    known: dict[Expr, _Value]
    types: Substitution
    around: frozenset[str]

    def made(self, expr: Expr) -> _Value:
        """Return a value that the expression makes."""
        return _of_type(self.types(type_of(expr)))


@final
class _SavedValues:
    """Follows values through functions that are not recursive."""

    def __init__(self, module: Module) -> None:
        self._module: Final = module
        self._left = MAX_CALLS

    def call(
        self,
        function: Function,
        args: Sequence[_Value],
        types: Substitution,
        around: frozenset[str],
    ) -> _Value:
        """Return the result of a function at types; `around` are the functions that call it."""
        scope = _Scope(dict(zip(function.params, args, strict=True)), types, around)
        blocks, end = spine(function.body)
        for binding in (b for block in blocks for b in block.bindings):
            scope.known[binding.var] = self._value(binding.value, scope)
        return self._value(end, scope)

    def _value(self, expr: Expr, scope: _Scope) -> _Value:
        match expr:
            case Var() if expr in scope.known:
                return scope.known[expr]
            case Constant():
                return _Made(type_of(expr), is_given=True)
            case Tuple(fields):
                return tuple(self._value(f, scope) for f in fields)
            case TupleGet(Var() as var, index):
                whole = scope.known.get(var)
                return whole[index] if isinstance(whole, tuple) else scope.made(expr)
            case Call(Op() as op, (Var() as viewed, *_)) if _is_view(op):
                found = scope.known.get(viewed)
                is_one = isinstance(found, _Made) and isinstance(expr.ty, TensorType)
                return found if is_one and found is not None else scope.made(expr)
            case Call(GlobalVar(name)):
                return self._called(name, expr, scope)
            case _:
                return scope.made(expr)

    def _called(self, name: str, call: Call, scope: _Scope) -> _Value:
        self._left -= 1
        function = self._module.functions[name]
        if name in scope.around or self._left < 0:
            return scope.made(call)
        if len(call.type_args) != len(function.type_params):
            return scope.made(call)
        given = tuple(
            scope.types.dim(a) if isinstance(a, Dim) else scope.types(a) for a in call.type_args
        )
        types = substitution(function.type_params, given)
        args = [self._value(a, scope) for a in call.args]
        return self.call(function, args, types, scope.around | {name})


def _is_view(op: Op) -> bool:
    return isinstance(op.lowering, View) or op is recomputed
