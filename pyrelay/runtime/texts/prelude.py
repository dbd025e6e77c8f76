"""Functions of the prelude called from a script: a small program is made for the types of the
arguments, and kept.

Lists and numbers become arguments of the program, relay functions, models' definitions excepted,
and operators become part of it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final, cast

import torch

from ...diagnostics.catalogue.call import WrongArgument, WrongCall
from ...diagnostics.diagnostic import RunError
from ...diagnostics.source import NOWHERE, Span
from ...ir.expr import Call, Constructor, Expr, Function, GlobalVar, Var
from ...ir.module import EMPTY, Module
from ...ir.names import Names
from ...ir.op import Op
from ...ir.types import BOOL, FLOAT, INT, PRELUDE, AdtType, TupleType, Type
from ...prelude.library import LIST, NAT, TREE, library, link
from ...prelude.names import LibraryConstructor, LibraryFunction, library_value
from ...prelude.values import List, Nat, Rose
from ...translate.calls.mentions import operator_function
from ...translate.source.definition import Definition, DerivedFunction, meaning
from ...translate.translator import translate
from ..border.places import Parameter
from ..compile.derived import pullback_of
from ..compile.program import Program
from ..entries.entry import Entry
from ..values.text import describe
from ..values.values import tensor_type

_NUMBERS: Final[dict[type, Type]] = {bool: BOOL, int: INT, float: FLOAT}
_entries: Final[dict[Any, Entry]] = {}


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
    entry = _entries.get(key)
    if entry is None:
        entry = _entries[key] = _entry(function.name, params, args, types)
    return entry([a for a, t in zip(args, types, strict=True) if t is not None])


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
    if isinstance(meaning(value), Op | Definition | DerivedFunction) or library_value(value):
        return None
    way = "decorate the function with @relay" if callable(value) else None
    wanted = "a relay function" if callable(value) else "a tensor, a number, a list or a tuple"
    raise RunError(WrongArgument(function, name, NOWHERE, wanted, describe(value), way))


def _entry(
    function: str, params: Sequence[str], args: Sequence[Any], types: Sequence[Type | None]
) -> Entry:
    span = NOWHERE
    names, module = Names(), EMPTY
    given: list[Var] = []
    operands: list[Expr] = []
    for name, arg, ty in zip(params, args, types, strict=True):
        if ty is None:
            operand, module = _function(arg, module, span)
        else:
            operand = Var(names.fresh(name), ty, span=span)
            given.append(operand)
        operands.append(operand)
    body = Call(GlobalVar(function, span=span), tuple(operands), span=span)
    entry = f"call.{function}"
    main = Function(tuple(given), body, name=function.removeprefix(PRELUDE), span=span)
    linked = link(module.with_functions({entry: main}))
    program = Program(linked, entry)
    parameters = tuple(
        Parameter(v.name, v.ty, v.span) for v in program.function.params if v.ty is not None
    )
    return Entry(main.name, program, parameters, None, pullback_of(program))


def _function(value: Any, module: Module, span: Span) -> tuple[Expr, Module]:
    """Return a function as an operand, and the module with what it needs."""
    found = library_value(value) or meaning(value)
    match found:
        case LibraryFunction(name):
            return GlobalVar(name, span=span), module
        case LibraryConstructor(adt, name):
            return Constructor(adt, name, span=span), module
        case Op():
            return operator_function(found, span), module
        case _:
            made = translate(found)
            if made.implicit:
                way = "call it in a @relay function, and differentiate or bind that"
                wanted, actual = "a function without parameters of its own", describe(value)
                raise RunError(WrongArgument("the prelude", "f", span, wanted, actual, way))
            both = module.with_functions(made.module.functions).with_adts(made.module.adts)
            return GlobalVar(made.entry, span=span), both


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
