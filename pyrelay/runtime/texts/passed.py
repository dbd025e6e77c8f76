"""Relay functions that a script passes to functions of texts.

A transform looks into the functions that are passed, so it is made of an entry that calls the
function with these in place: their programs become part of its module.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeAlias, final

from ...dataclass import dataclass
from ...diagnostics.catalogue.sites import UnknownModel
from ...diagnostics.diagnostic import CheckError
from ...diagnostics.source import Span
from ...ir.dims import DimVar
from ...ir.expr import Call, Constant, Expr, Function, GlobalVar, Var
from ...ir.module import Module
from ...ir.names import Names
from ...ir.op import Missing, Op
from ...ir.rename import rename
from ...ir.types import UNKNOWN, FnType, Substitution, Type, TypeVar, map_type, subtypes
from ...translate.calls.mentions import operator_function
from ...translate.program.derived import derived_signature
from ...translate.program.guards import Check
from ...translate.source.definition import (
    Definition,
    DerivedFunction,
    LeftOut,
    bottom,
    function_of,
)
from ...translate.source.optimizers import OptimizerGuard
from ...translate.source.residual import Residual
from ...translate.source.scope import MISSING, Guard
from ...translate.types.annotation import type_names
from ..calls.parameters import signature_of
from ..calls.programs import translated
from ..values.representation import Instances, UserData, representation

Passed: TypeAlias = Mapping[int, Any]
"""Relay functions among the arguments of a call, by the place of their parameter."""


def passed_in(params: Sequence[Var], values: Sequence[Any]) -> Passed:
    """Return the arguments for parameters that are functions whose programs are known."""
    each = enumerate(zip(params, values, strict=False))
    return {i: v for i, (p, v) in each if isinstance(p.ty, FnType) and _is_known(v)}


def _is_known(value: Any) -> bool:
    found = function_of(value)
    if isinstance(found, Op):
        return not any(p.default is Missing.REQUIRED for p in found.attributes)
    return found is not None


@final
@dataclass(frozen=True, slots=True)
class Instance:
    """An entry that calls a function of a text at types for its type parameters, with functions in
    the place of parameters. It holds while `is_valid()`."""

    module: Module
    entry: str
    data: UserData
    is_valid: Callable[[], bool]


def instance(
    module: Module, entry: str, data: UserData, types: Mapping[str, Type], passed: Passed
) -> Instance:
    """Return the entry. A program takes values of a type parameter whatever they are, and functions
    that it does not know; a transform has to look into them. Sizes stay open."""
    base = module.functions[entry]
    wanted = [(value, base.params[i].ty) for i, value in passed.items()]
    module, data, linked, guards = linked_in(module, data, wanted, base.span)
    functions = dict(zip(passed, linked, strict=True))
    name = Names(module.functions).fresh(entry)
    taken = [p.ty for i, p in enumerate(base.params) if i in passed and p.ty is not None]
    decided = {s for ty in taken for s in subtypes(ty) if isinstance(s, TypeVar)}
    at = Substitution({}, dict(types))

    def typed(param: Var) -> Var:
        ty = None if param.ty is None else at(param.ty)
        return replace(param, ty=None if ty is None else _opened(ty, decided))

    params = {i: typed(p) for i, p in enumerate(base.params) if i not in passed}
    args = tuple(functions[i] if i in passed else params[i] for i in range(len(base.params)))
    body = Call(GlobalVar(entry, span=base.span), args, span=base.span)
    mentioned = type_names(p.ty for p in params.values() if p.ty is not None)
    kept = tuple(p for p in base.type_params if p in mentioned or isinstance(p, DimVar))
    own = (*kept, *(p for p in mentioned if p not in kept))
    made = Function(tuple(params.values()), body, None, own, base.name, span=base.span)
    return Instance(module.with_functions({name: made}), name, data, Check(guards))


def linked_in(
    module: Module, data: UserData, values: Iterable[tuple[Any, Type | None]], span: Span
) -> tuple[Module, UserData, tuple[Expr, ...], Sequence[Guard | OptimizerGuard]]:
    """Return a module and its data types with the programs of relay functions in it, the functions
    there, and the guards of these programs. Beside each function stands the type of what takes it:
    one of fewer parameters gets it without those that have defaults. Raises CheckError."""
    functions: list[Expr] = []
    guards: list[Guard | OptimizerGuard] = []
    for value, ty in values:
        found = _program(value, ty, span)
        module, data, function = found.linked_into(module, data)
        functions.append(function)
        guards += found.guards
    return module, data, tuple(functions), guards


def _opened(ty: Type, params: set[TypeVar]) -> Type:
    """Return a type with the type parameters left open that functions passed beside it decide."""
    return map_type(ty, lambda t: UNKNOWN if t in params else None, lambda d: d)


@final
@dataclass(frozen=True, slots=True)
class _Program:
    """The program of a function that is passed; an operator has none but its call."""

    call: Function | None
    module: Module
    entry: str
    data: UserData
    fixed: Sequence[Constant]
    """The arguments for the last parameters."""
    names: Sequence[str]
    """The names of the others."""
    guards: Sequence[Guard | OptimizerGuard] = ()

    def linked_into(self, module: Module, data: UserData) -> tuple[Module, UserData, Expr]:
        """Return a module and its data types with this program in it, and the function there."""
        if self.call is not None:
            return module, data, self.call
        functions, types = Names(module.functions), Names(module.adts)
        names = {n: functions.fresh(n) for n in self.module.functions}
        for adt in self.module.adts:
            names[adt] = self._same(adt, module, data) or types.fresh(adt)
        whole = rename(self.module, names.__getitem__)
        added = {n: a for n, a in whole.adts.items() if n not in module.adts}
        looks = {names[n]: r for n, r in self.data.representations.items() if n in names}
        numbers = {names[n]: v for n, v in self.data.numbers.items() if n in names}
        merged = UserData({**looks, **data.representations}, {**numbers, **data.numbers})
        module = module.with_functions(dict(whole.functions)).with_adts(added)
        callee = GlobalVar(names[self.entry], span=whole.functions[names[self.entry]].span)
        if not self.fixed:
            return module, merged, callee
        params = tuple(Var(name, span=callee.span) for name in self.names)
        call = Call(callee, (*params, *self.fixed), span=callee.span)
        return module, merged, Function(params, call, span=callee.span)

    def _same(self, adt: str, module: Module, data: UserData) -> str | None:
        """Return the data type of a module with the classes of one of this program; for data types
        without classes, the one with the same definition."""
        look = representation(self.data.representations, adt)
        if not isinstance(look, Instances):
            return adt if module.adts.get(adt) == self.module.adts[adt] else None
        known = ((n, representation(data.representations, n)) for n in module.adts)
        alike = (n for n, r in known if isinstance(r, Instances) and r.classes == look.classes)
        return next(alike, None)


def _program(value: Any, ty: Type | None, span: Span) -> _Program:
    """Return the program of a function that is passed. Raises CheckError."""
    found = function_of(value)
    match found:
        case Op():
            made = operator_function(found, span)
            return _Program(made, Module({}, {}), "", UserData({}, {}), (), ())
        case Residual(fixed=fixed):
            constants = [c for c in fixed if c is not None]
            return _Program(None, found.module, found.entry, value.data, constants, found.names)
        case Definition() | DerivedFunction():
            made = translated(found, _left_out(found, ty), [], [])
            if made.implicit:
                raise CheckError(UnknownModel(span))
            data = UserData.of(made.data)
            return _Program(None, made.module, made.entry, data, (), (), made.guards)
        case None:
            raise AssertionError("only functions with programs are passed")


def _left_out(function: Definition | DerivedFunction, ty: Type | None) -> Mapping[str, LeftOut]:
    """Return the parameters of a function that follow those of a type, where all have defaults."""
    declared = derived_signature(function, signature_of(bottom(function))).explicit
    rest = declared[len(ty.params) :] if isinstance(ty, FnType) else ()
    return {} if any(p.default is MISSING for p in rest) else {p.name: LeftOut() for p in rest}
