"""Functions of the prelude called from a script: a small program is made for the types of the
arguments, and kept.

Lists and numbers become arguments of the program, relay functions, models' definitions excepted,
and operators become part of it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final, cast, final

import torch

from ...dataclass import dataclass
from ...diagnostics.catalogue.call import WrongArgument, WrongCall
from ...diagnostics.diagnostic import RunError
from ...diagnostics.source import NOWHERE, Span
from ...ir.expr import Call, Constructor, Expr, Function, GlobalVar, Var
from ...ir.module import EMPTY
from ...ir.names import Names
from ...ir.op import Op
from ...ir.types import BOOL, FLOAT, INT, PRELUDE, AdtType, TupleType, Type
from ...prelude.library import LIST, NAT, TREE, library, link
from ...prelude.names import LibraryConstructor, LibraryFunction, library_value
from ...prelude.values import List, Nat, Rose
from ...translate.program.guards import Check
from ...translate.source.definition import Definition, DerivedFunction, meaning
from ...translate.source.optimizers import OptimizerGuard
from ...translate.source.residual import Residual
from ...translate.source.scope import Guard
from ..border.places import Parameter
from ..compile.program import Program
from ..entries.entry import Entry
from ..values.representation import NO_DATA
from ..values.text import describe
from ..values.values import tensor_type
from .passed import linked_in

_NUMBERS: Final[dict[type, Type]] = {bool: BOOL, int: INT, float: FLOAT}


@final
@dataclass(frozen=True, slots=True)
class _Compiled:
    """The program of a call, which holds while `is_valid()`."""

    entry: Entry
    is_valid: Callable[[], bool]


_entries: Final[dict[Any, _Compiled]] = {}


def call(function: LibraryFunction, args: tuple[Any, ...]) -> Any:
    """Return the value of a function of the prelude at a script's values.

    Raises CheckError and RunError.
    """
    name = function.name.removeprefix(PRELUDE)
    in_python = _IN_PYTHON.get(name)
    params = [p.name for p in library().functions[function.name].params]
    if len(args) != len(params):
        takes = f"takes {len(params)} arguments ({', '.join(params)}), not {len(args)}"
        raise RunError(WrongCall(name, NOWHERE, takes))
    if in_python is not None:
        return in_python(*args)
    types = [_type(a, name, p) for a, p in zip(args, params, strict=True)]
    key = (name, *(t if t is not None else meaning(a) for t, a in zip(types, args, strict=True)))
    known = _entries.get(key)
    if known is None or not known.is_valid():
        known = _entries[key] = _compiled(function.name, args, types)
    return known.entry([a for a, t in zip(args, types, strict=True) if t is not None])


def _type(value: Any, function: str, name: str) -> Type | None:
    """Return the type of an argument, None for a function. Raises RunError for what has none."""
    if isinstance(value, torch.Tensor):
        return tensor_type(value, f"relay.{function}")
    if type(value) in _NUMBERS:
        return _NUMBERS[type(value)]
    if isinstance(value, list | List):
        items = cast("Sequence[Any]", value)
        element = _type(items[0], function, f"{name}[0]") if len(items) else FLOAT
        return None if element is None else AdtType(LIST, (element,))
    if isinstance(value, tuple):
        parts = cast("tuple[Any, ...]", value)
        fields = [_type(v, function, f"{name}[{i}]") for i, v in enumerate(parts)]
        return TupleType(tuple(f for f in fields if f is not None))
    if isinstance(value, Rose):
        inside = _type(cast("Any", value.value), function, f"{name}.value")
        return None if inside is None else AdtType(TREE, (inside,))
    if isinstance(value, Nat):
        return AdtType(NAT)
    if isinstance(meaning(value), Op | Definition | DerivedFunction | Residual) or library_value(
        value
    ):
        return None
    way = "decorate the function with @relay" if callable(value) else None
    wanted = "a relay function" if callable(value) else "a tensor, a number, a list or a tuple"
    raise RunError(WrongArgument(function, name, NOWHERE, wanted, describe(value), way))


def _compiled(function: str, args: Sequence[Any], types: Sequence[Type | None]) -> _Compiled:
    span = NOWHERE
    names, module, data = Names(), EMPTY, NO_DATA
    given: list[Var] = []
    operands: list[Expr] = []
    guards: list[Guard | OptimizerGuard] = []
    for param, arg, ty in zip(library().functions[function].params, args, types, strict=True):
        own = _library_function(arg, span) if ty is None else None
        if ty is not None:
            given.append(Var(names.fresh(param.name), ty, span=span))
            operands.append(given[-1])
        elif own is not None:
            operands.append(own)
        else:
            module, data, linked, found = linked_in(module, data, [(arg, param.ty)], span)
            operands += linked
            guards += found
    body = Call(GlobalVar(function, span=span), tuple(operands), span=span)
    entry = f"call.{function}"
    main = Function(tuple(given), body, name=function.removeprefix(PRELUDE), span=span)
    program = Program(link(module.with_functions({entry: main})), entry, data)
    parameters = tuple(
        Parameter(v.name, v.ty, v.span) for v in program.function.params if v.ty is not None
    )
    made = Entry(main.name, program, parameters, None, joins=True)
    return _Compiled(made, Check(guards))


def _library_function(value: Any, span: Span) -> Expr | None:
    """Return a function or a constructor of the prelude as an operand; None for other functions."""
    match library_value(value):
        case LibraryFunction(name):
            return GlobalVar(name, span=span)
        case LibraryConstructor(adt, name):
            return Constructor(adt, name, span=span)
        case None:
            return None


def _compose(f: Callable[..., Any], g: Callable[..., Any]) -> Callable[..., Any]:
    return lambda x: f(g(x))


def _flip(f: Callable[..., Any]) -> Callable[..., Any]:
    return lambda b, a: f(a, b)


def _iterate(f: Callable[..., Any], n: int) -> Callable[..., Any]:
    def apply(x: Any) -> Any:
        for _ in range(n):
            x = f(x)
        return x

    return apply


_IN_PYTHON: Final[dict[str, Callable[..., Any]]] = {
    "compose": _compose,
    "flip": _flip,
    "id": lambda x: x,
    "iterate": _iterate,
    "nat_iterate": lambda f, n: _iterate(f, int(n)),
}
"""The functions that return functions: each of these is compiled where it is called."""
