"""Modules under other names: functions and data types renamed wherever they are mentioned."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import final

from .dims import Dim
from .expr import (
    Binding,
    BindPattern,
    Call,
    Clause,
    Constructor,
    ConstructorPattern,
    Expr,
    Function,
    GlobalVar,
    LetBlock,
    Match,
    Pattern,
    TuplePattern,
    Var,
)
from .module import AdtDef, ConstructorDef, Module
from .traverse import bound_vars, post_order, rewrite
from .types import AdtType, Type, map_type


def rename(module: Module, change: Callable[[str], str]) -> Module:
    """Return the module with every global function and data type, mentioned or defined, renamed."""
    renaming = _Renaming(change)
    functions = {change(name): renaming.function(f) for name, f in module.functions.items()}
    adts = {change(name): renaming.adt(a) for name, a in module.adts.items()}
    return Module(functions, adts, module.strict_dtypes)


@final
class _Renaming:
    """One copy under other names."""

    def __init__(self, change: Callable[[str], str]) -> None:
        self._change = change
        self._vars: dict[Var, Var] = {}

    def adt(self, adt: AdtDef) -> AdtDef:
        constructors = tuple(
            ConstructorDef(c.name, tuple(map(self._type, c.fields)), c.field_names)
            for c in adt.constructors
        )
        return replace(adt, name=self._change(adt.name), constructors=constructors)

    def function(self, function: Function) -> Function:
        for node in post_order(function):
            for var in bound_vars(node):
                self._vars[var] = replace(var, ty=self._annotation(var.ty))
        renamed = rewrite(function, self._node)
        assert isinstance(renamed, Function)
        return renamed

    def _annotation(self, ty: Type | None) -> Type | None:
        return None if ty is None else self._type(ty)

    def _type(self, ty: Type) -> Type:
        return map_type(ty, self._data, lambda dim: dim)

    def _data(self, ty: Type) -> Type | None:
        if not isinstance(ty, AdtType):
            return None
        args = tuple(a if isinstance(a, Dim) else self._type(a) for a in ty.args)
        return AdtType(self._change(ty.name), args)

    def _node(self, node: Expr) -> Expr:
        if isinstance(node, Var):
            return self._vars[node]
        if node.ty is not None:
            node = replace(node, ty=self._type(node.ty))
        match node:
            case GlobalVar(name):
                return replace(node, name=self._change(name))
            case Constructor(adt):
                return replace(node, adt=self._change(adt))
            case Call(type_args=args) if args:
                named = tuple(a if isinstance(a, Dim) else self._type(a) for a in args)
                return replace(node, type_args=named)
            case Function(params, result=result):
                own = tuple(self._vars[p] for p in params)
                return replace(node, params=own, result=self._annotation(result))
            case LetBlock(bindings):
                bound = tuple(Binding(self._vars[b.var], b.value) for b in bindings)
                return replace(node, bindings=bound)
            case Match(clauses=clauses):
                changed = tuple(Clause(self._pattern(c.pattern), c.body, c.guard) for c in clauses)
                return replace(node, clauses=changed)
            case _:
                return node

    def _pattern(self, pattern: Pattern) -> Pattern:
        match pattern:
            case BindPattern(var, inner):
                inside = None if inner is None else self._pattern(inner)
                return replace(pattern, var=self._vars[var], inner=inside)
            case ConstructorPattern(adt=adt, fields=fields):
                inside = tuple(map(self._pattern, fields))
                return replace(pattern, adt=self._change(adt), fields=inside)
            case TuplePattern(fields):
                return replace(pattern, fields=tuple(map(self._pattern, fields)))
            case _:
                return pattern
