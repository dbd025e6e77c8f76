"""Sums of recursive functions are put off: terms are kept, and added up when the recursion ends.

A node of a tree or a step of a loop adds a term to the gradient of each weight, which is a product
as large as the weight. Kept as a list of its factors, the whole sum is one product of matrices at
the end (deferred weight gradients; TensorFlow Fold and DyNet batch them likewise). The list lives
as long as the residuals do, which are of the same size.

This is for programs that have been simplified, and is an optimisation only: the types of what the
program gives do not change.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import replace
from typing import Final, final

from ...ir.build import Builder, Names, Value
from ...ir.components import components
from ...ir.dims import ZERO, Dim
from ...ir.expr import (
    Binding,
    Call,
    Clause,
    Constructor,
    Expr,
    Function,
    GlobalVar,
    If,
    LetBlock,
    Match,
    Tuple,
    TupleGet,
    Var,
    type_of,
)
from ...ir.module import AdtDef, ConstructorDef, Module
from ...ir.ops.collect import collected
from ...ir.ops.create import full
from ...ir.traverse import Steps, post_order, run, spine
from ...ir.types import (
    AdtType,
    FnType,
    Substitution,
    TupleType,
    Type,
    TypeVar,
    substitution,
)
from ..code import Code
from ..fixed import Fixed, nothing_fixed
from ..sizes import shown, sizes_in, uncovered
from ..splice import Splicer
from .flow import Holder, Path
from .lanes import Lane, lanes_of

MOST: Final = 200
"""How many functions are looked at together at most."""


def defer_sums(module: Module, fixed: Fixed = nothing_fixed) -> Module:
    """Give the module, in A-normal form, with sums of recursive functions put off; itself if there
    are none. Where an operator that sums are made with is `fixed`, nothing changes."""
    escaping = _escaping(module)
    graph = {
        name: [g for g in _mentions(f) if g in module.functions]
        for name, f in module.functions.items()
    }
    # Callers first: a sum may go through loops inside a recursion, on the way.
    for names in reversed(components(graph)):
        if not any(callee in names for name in names for callee in graph[name]):
            continue
        group = {name: module.functions[name] for name in _reached(graph, names)}
        if lanes := lanes_of(group, escaping, fixed):
            module = _Deferral(module, group, lanes).module()
    return module


def _reached(graph: Mapping[str, Sequence[str]], names: Sequence[str]) -> list[str]:
    """Give functions and all that they call, the functions alone where that is very many."""
    found = dict.fromkeys(names)
    pending = list(names)
    while pending:
        for callee in graph[pending.pop()]:
            if callee not in found:
                found[callee] = None
                pending.append(callee)
    return list(found) if len(found) <= MOST else list(names)


def _mentions(function: Function) -> dict[str, None]:
    return {n.name: None for n in post_order(function.body) if isinstance(n, GlobalVar)}


def _escaping(module: Module) -> set[str]:
    """Give the functions that are used as values."""
    mentions: Counter[str] = Counter()
    for function in module.functions.values():
        for node in post_order(function.body):
            if isinstance(node, GlobalVar):
                mentions[node.name] += 1
            elif isinstance(node, Call) and isinstance(node.callee, GlobalVar):
                mentions[node.callee.name] -= 1
    return {name for name, count in mentions.items() if count}


@final
class _Deferral:
    """The change of one group of functions, and of those that call them."""

    def __init__(
        self, module: Module, group: Mapping[str, Function], lanes: Sequence[Lane]
    ) -> None:
        self._module: Final = module
        self.group: Final = group
        self._lanes: Final = lanes
        self.adt: Final = Names(module.adts).fresh("addends")
        self._paths: Final = self._found_paths()
        self._totals: Final = {total: lane for lane in lanes for total in lane.terms}
        self._new: Final[dict[Var, Var]] = {}

    def module(self) -> Module:
        """Give the module after the change."""
        element = TypeVar("A")
        rest = AdtType(self.adt, (element,))
        constructors = (ConstructorDef("addend", (element, rest)), ConstructorDef("no_addends", ()))
        span = next(iter(self.group.values())).span
        module = self._module.with_adts(
            {self.adt: AdtDef(self.adt, (element,), constructors, span)}
        )
        functions = {
            name: self._inside(name, function)
            for name, function in self.group.items()
            if any(self.lanes_in(holder) for holder in (name, *function.params))
        }
        for name, function in self._module.functions.items():
            if name not in self.group and any(g in self.group for g in _mentions(function)):
                functions[name] = _Entrance(module, function, self).walked(function)
        return module.with_functions(functions)

    def lanes_in(self, holder: Holder) -> Mapping[Path, Lane]:
        """Give the lanes that go through a variable, or the result of a function."""
        return self._paths.get(holder, {})

    # Types.

    def _found_paths(self) -> dict[Holder, dict[Path, Lane]]:
        found: dict[Holder, dict[Path, Lane]] = {}
        for lane in self._lanes:
            for holder, path in lane.leaves:
                found.setdefault(holder, {})[path] = lane
        return found

    def list(self, lane: Lane) -> AdtType:
        """Give the type of the lists of a lane's terms."""
        return AdtType(self.adt, (TupleType(lane.kind.types),))

    def type(self, ty: Type, lanes: Mapping[Path, Lane]) -> Type:
        """Give a type with lists at the places of lanes."""
        if () in lanes:
            return self.list(lanes[()])
        if not lanes:
            return ty
        assert isinstance(ty, TupleType)
        fields = list(ty.fields)
        for place in {path[0] for path in lanes}:
            inside = {path[1:]: lane for path, lane in lanes.items() if path[0] == place}
            fields[place] = self.type(fields[place], inside)
        return TupleType(tuple(fields))

    # Inside of the group.

    def _inside(self, name: str, function: Function) -> Function:
        params = tuple(self._var(p) for p in function.params)
        result = self.type(type_of(function.body), self.lanes_in(name))
        body = run(self._body(function.body, result))
        assert isinstance(function.ty, FnType)
        ty = replace(function.ty, params=tuple(type_of(p) for p in params), result=result)
        return replace(function, params=params, body=body, result=result, ty=ty)

    def _var(self, var: Var) -> Var:
        """Give what a variable is then."""
        lanes = self._paths.get(var)
        if lanes is None:
            return var
        if var not in self._new:
            self._new[var] = replace(var, ty=self.type(type_of(var), lanes))
        return self._new[var]

    def _body(self, body: Expr, ty: Type) -> Steps[Expr]:
        code = Code()
        blocks, end = spine(body)
        for block in blocks:
            code.flavour = block.flavour
            for binding in block.bindings:
                yield self._binding(binding, code)
        return code.close((yield self._value(end, ty)))

    def _binding(self, binding: Binding, code: Code) -> Steps[None]:
        var = self._var(binding.var)
        lane = self._totals.get(binding.var)
        if lane is None:
            code.bind(var, (yield self._value(binding.value, type_of(var))))
            return
        span = binding.value.span
        before, parts = lane.terms[binding.var]
        pack = Var("term", TupleType(lane.kind.types), span=span)
        code.bind(pack, Tuple(parts, pack.ty, span=span))
        callee = Constructor(self.adt, "addend", span=span)
        code.bind(var, Call(callee, (pack, self._var(before)), ty=var.ty, span=span))

    def _value(self, value: Expr, ty: Type) -> Steps[Expr]:
        match value:
            case Var():
                return self._var(value)
            case If(condition, then, otherwise):
                then = yield self._body(then, ty)
                otherwise = yield self._body(otherwise, ty)
                return replace(value, condition=condition, then=then, otherwise=otherwise, ty=ty)
            case Match(clauses=clauses):
                new: list[Clause] = []
                for clause in clauses:
                    new += [replace(clause, body=(yield self._body(clause.body, ty)))]
                return replace(value, clauses=tuple(new), ty=ty)
            case Tuple(fields):
                atoms = tuple(self._var(f) if isinstance(f, Var) else f for f in fields)
                return replace(value, fields=atoms, ty=ty)
            case TupleGet(Var() as source):
                return replace(value, value=self._var(source), ty=ty)
            case Call(GlobalVar(name), args) if name in self.group:
                atoms = tuple(self._var(a) if isinstance(a, Var) else a for a in args)
                return replace(value, args=atoms, ty=ty)
            case _:
                return value


@final
class _Entrance(Splicer):
    """The change of one function that calls the group from outside: what is added to starts as
    empty lists, and what comes back are the sums of the lists' terms."""

    def __init__(self, module: Module, function: Function, deferral: _Deferral) -> None:
        super().__init__(module)
        self._deferral: Final = deferral
        self._names: Final = Names(sizes_in(function))
        self._told: Final = frozenset(dim for p in function.params for dim in shown(p.ty))
        self._defined: Final[dict[Var, Expr]] = {}
        for node in post_order(function):
            if isinstance(node, LetBlock):
                self._defined.update((b.var, b.value) for b in node.bindings)

    def node(self, expr: Expr, code: Code) -> Steps[Expr]:
        """Give what becomes of a call of the group; anything else is walked through."""
        if not isinstance(expr, Call) or not isinstance(expr.callee, GlobalVar):
            return (yield from super().node(expr, code))
        function = self._deferral.group.get(expr.callee.name)
        if function is None:
            return (yield from super().node(expr, code))
        builder = Builder(expr.span, self._names)
        result = self._called(expr, expr.callee.name, function, builder)
        for binding in builder.bindings:
            code.bind(binding.var, binding.value)
        return result.atom

    def _called(self, call: Call, name: str, function: Function, builder: Builder) -> Value:
        deferral = self._deferral
        sizes = substitution(function.type_params, call.type_args)
        args = [self.atom(a) for a in call.args]
        starts: dict[Lane, Expr] = {}
        for place, param in enumerate(function.params):
            for lane in deferral.lanes_in(param).values():
                starts[lane] = args[place]
                empty = builder.construct(
                    deferral.adt, "no_addends", (), sizes(deferral.list(lane))
                )
                args[place] = empty.atom
        lanes = deferral.lanes_in(name)
        ty = sizes(deferral.type(type_of(function.body), lanes))
        given = builder.bind(replace(call, args=tuple(args), ty=ty), "r")

        def summed(value: Value, ty: Type, lanes: Mapping[Path, Lane]) -> Value:
            if () in lanes:
                return self._total(value, lanes[()], starts[lanes[()]], sizes)
            if not lanes:
                return value
            assert isinstance(ty, TupleType)
            fields: list[Value] = []
            for place, part in enumerate(ty.fields):
                inside = {path[1:]: lane for path, lane in lanes.items() if path[0] == place}
                fields.append(summed(value[place], part, inside))
            return builder.tuple(fields)

        return summed(given, type_of(call), lanes)

    def _total(self, terms: Value, lane: Lane, start: Expr, sizes: Substitution) -> Value:
        """Give the sum of the terms in a list and what the lane was entered with."""
        kind = lane.kind.under(sizes)
        told = self._told.union(shown(type_of(start)))
        shapes = [tuple(_or_nothing(d, told) for d in t.shape) for t in kind.types]
        total = kind.total(collected(terms, kind.types, shapes))
        defined = self._defined.get(start) if isinstance(start, Var) else None
        if isinstance(defined, Call) and defined.callee is full:
            is_zero = defined.attrs["fill_value"] == 0
        else:
            is_zero = False
        return total if is_zero else terms.builder.value(start) + total


def _or_nothing(dim: Dim, told: AbstractSet[Dim]) -> Dim:
    """Give a dim of terms, or 0 where nothing but the terms shows it: where there are none, no size
    of them is in their sum."""
    return ZERO if any(uncovered(dim, told)) else dim
