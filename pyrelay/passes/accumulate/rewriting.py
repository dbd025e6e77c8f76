"""Sums of recursive functions are put off: terms are kept, and added up when the recursion ends.

A node of a tree or a step of a loop adds a term to the gradient of each weight, which is a product
as large as the weight. Kept as a list of its factors, the whole sum is one product of matrices at
the end (deferred weight gradients; TensorFlow Fold and DyNet batch them likewise). The list lives
as long as the residuals do, which are of the same size.

This is for programs that have been simplified, and is an optimisation only: the types of what the
program gives do not change.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import replace
from functools import partial
from typing import ClassVar, Final, final

from ...analysis.bindings import definitions
from ...analysis.call_graph import call_graph, callees, reachable
from ...analysis.dim_availability import shown, sizes_in, uncovered
from ...dataclass import dataclass
from ...ir.block_builder import BlockBuilder
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
    Match,
    Tuple,
    TupleGet,
    Var,
    type_of,
)
from ...ir.module import AdtDef, ConstructorDef, Module
from ...ir.names import Names
from ...ir.own_sizes import definition
from ...ir.rewriter import Rewriter
from ...ir.traverse import Steps, run, spine
from ...ir.types import AdtType, FnType, Substitution, TupleType, Type, TypeVar, substitution
from ...ir.verify import Stage
from ...operators.builder import Builder, Value
from ...operators.primitive.collect import collected
from ...operators.primitive.create import full
from ..base import Context, Opaque, Pass, nothing_opaque
from ..rewrites.row_gradients import JOINED, wanted_results, with_terms_as_rows
from ..simplify.dce import remove_dead
from .accumulators import Accumulator, accumulators_of, worth_it
from .flow import Holder, Path
from .row_sources import results_in_loops, with_row_sources

MOST: Final = 200
"""How many functions are looked at together at most."""


def accumulate_sums(
    module: Module,
    entry: str,
    gradients: tuple[int, ...] | None = None,
    opaque: Opaque = nothing_opaque,
) -> Module:
    """Return the module, in A-normal form, with sums of recursive functions put off; itself if
    there are none. Where an operator that sums are made with is `opaque`, nothing changes.

    `gradients` leads to the gradients in the result of the entry that may be rows of tables."""
    loops: frozenset[str] = frozenset()
    while True:
        if not any(map(opaque, JOINED)):
            module, loops = with_row_sources(module, entry, gradients, loops)
        rows = {name: with_terms_as_rows(module.functions[name]) for name in loops}
        before = module.with_functions(rows) if rows else module
        module = _put_off(before, entry, gradients, opaque, loops)
        # What a recursion gives as rows may be a term of a loop's sum.
        if module is before or not loops:
            return remove_dead(module, entry) if loops else module


def _put_off(
    module: Module,
    entry: str,
    gradients: tuple[int, ...] | None,
    opaque: Opaque,
    loops: AbstractSet[str],
) -> Module:
    """Return the module with the sums put off that are seen; itself if there are none. `loops` are
    the functions of which only rows are put off."""
    graph = call_graph(module)
    # Callers first: a sum may go through loops inside a recursion, on the way.
    for names in reversed(graph.groups):
        if not graph.is_cyclic(names):
            continue
        reached = reachable(module.functions, names)
        group = {n: module.functions[n] for n in (reached if len(reached) <= MOST else names)}
        wants_rows = _wants_rows(module, group, entry, gradients, loops)
        accumulators = accumulators_of(group, graph.escaping, opaque, wants_rows)
        # A loop of the program adds up products as it goes: to keep them takes memory.
        accumulators = worth_it(accumulators, of_loop=not loops.isdisjoint(names))
        if accumulators:
            module = _Deferral(module, group, accumulators).module()
    return module


def _wants_rows(
    module: Module,
    group: Mapping[str, Function],
    entry: str,
    gradients: tuple[int, ...] | None,
    loops: AbstractSet[str],
) -> Callable[[str, Path], bool]:
    """Return whether all that call a function of the group from outside take a part of its result
    as rows of a table, given the function and the path to the part."""
    found: dict[str, list[frozenset[Path]]] = {}
    for name, function in module.functions.items():
        if name in group or not any(g in group for g in callees(function)):
            continue
        results = wanted_results(function, gradients if name == entry else None)
        results = results.union(results_in_loops(function, name, loops))
        for var, value in definitions(function).items():
            if isinstance(value, Call) and isinstance(value.callee, GlobalVar):
                paths = frozenset(path for result, path in results if result is var)
                found.setdefault(value.callee.name, []).append(paths)
    return lambda name, path: all(path in paths for paths in found.get(name, ()))


@final
@dataclass(frozen=True, slots=True)
class Accumulate(Pass):
    """Keep the terms of sums that recursive functions collect, and add them up at the end."""

    name: ClassVar = "accumulate"
    needs: ClassVar = Stage.DERIVED
    gradients: tuple[int, ...] | None = None
    """Where gradients are in the result of the entry that may be rows of tables."""

    def run(self, module: Module, context: Context) -> Module:
        """Return the module after the pass."""
        return accumulate_sums(module, context.entry, self.gradients, context.opaque)


@final
class _Deferral:
    """The change of one group of functions, and of those that call them."""

    def __init__(
        self, module: Module, group: Mapping[str, Function], accumulators: Sequence[Accumulator]
    ) -> None:
        self._module: Final = module
        self.group: Final = group
        self._accumulators: Final = accumulators
        self.adt: Final = Names(module.adts).fresh("addends")
        self._paths: Final = self._found_paths()
        self._totals: Final = {
            total: accumulator for accumulator in accumulators for total in accumulator.terms
        }
        self._new: Final[dict[Var, Var]] = {}
        self._names = Names()

    def module(self) -> Module:
        """Return the module after the change."""
        element = TypeVar("A")
        rest = AdtType(self.adt, (element,))
        constructors = (ConstructorDef("addend", (element, rest)), ConstructorDef("no_addends", ()))
        span = next(iter(self.group.values())).span
        fields = {f for a in self._accumulators for f in a.kind.fields}
        own = sorted({f.name for f in fields if isinstance(f, AdtType)} - self._module.adts.keys())
        adts = {self.adt: AdtDef(self.adt, (element,), constructors, span)}
        module = self._module.with_adts(adts | {name: definition(name, span) for name in own})
        functions = {
            name: self._inside(name, function)
            for name, function in self.group.items()
            if any(self.accumulators_in(holder) for holder in (name, *function.params))
        }
        for name, function in self._module.functions.items():
            if name not in self.group and any(g in self.group for g in callees(function)):
                functions[name] = _Entrance(module, function, self).walked(function)
        return module.with_functions(functions)

    def accumulators_in(self, holder: Holder) -> Mapping[Path, Accumulator]:
        """Return the accumulators that go through a variable, or the result of a function."""
        return self._paths.get(holder, {})

    # Types.

    def _found_paths(self) -> dict[Holder, dict[Path, Accumulator]]:
        found: dict[Holder, dict[Path, Accumulator]] = {}
        for accumulator in self._accumulators:
            for holder, path in accumulator.leaves:
                found.setdefault(holder, {})[path] = accumulator
        return found

    def list(self, accumulator: Accumulator) -> AdtType:
        """Return the type of the lists of an accumulator's terms."""
        return AdtType(self.adt, (TupleType(accumulator.kind.fields),))

    def type(self, ty: Type, accumulators: Mapping[Path, Accumulator]) -> Type:
        """Return a type with lists at the places of accumulators."""
        if () in accumulators:
            return self.list(accumulators[()])
        if not accumulators:
            return ty
        assert isinstance(ty, TupleType)
        fields = list(ty.fields)
        for place in {path[0] for path in accumulators}:
            fields[place] = self.type(fields[place], _inside(accumulators, place))
        return TupleType(tuple(fields))

    # Inside of the group.

    def _inside(self, name: str, function: Function) -> Function:
        params = tuple(self._var(p) for p in function.params)
        self._names = Names(sizes_in(function))
        result = self.type(type_of(function.body), self.accumulators_in(name))
        body = run(self._body(function.body, result))
        assert isinstance(function.ty, FnType)
        ty = replace(function.ty, params=tuple(type_of(p) for p in params), result=result)
        return replace(function, params=params, body=body, result=result, ty=ty)

    def _var(self, var: Var) -> Var:
        """Return the new variable of a variable."""
        accumulators = self._paths.get(var)
        if accumulators is None:
            return var
        if var not in self._new:
            self._new[var] = replace(var, ty=self.type(type_of(var), accumulators))
        return self._new[var]

    def _body(self, body: Expr, ty: Type) -> Steps[Expr]:
        code = BlockBuilder()
        blocks, end = spine(body)
        for block in blocks:
            code.flavour = block.flavour
            for binding in block.bindings:
                yield self._binding(binding, code)
        return code.close((yield self._value(end, ty)))

    def _binding(self, binding: Binding, code: BlockBuilder) -> Steps[None]:
        var = self._var(binding.var)
        accumulator = self._totals.get(binding.var)
        if accumulator is None:
            code.bind(var, (yield self._value(binding.value, type_of(var))))
            return
        span = binding.value.span
        before, term = accumulator.terms[binding.var]
        builder = Builder(span, self._names)
        fields = accumulator.kind.packed(term, builder)
        for made in builder.bindings:
            code.bind(made.var, made.value)
        pack = Var("term", TupleType(accumulator.kind.fields), span=span)
        code.bind(pack, Tuple(tuple(f.atom for f in fields), pack.ty, span=span))
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
class _Entrance(Rewriter):
    """The change of one function that calls the group from outside: its accumulators start as empty
    lists, and the results are the sums of the lists' terms."""

    def __init__(self, module: Module, function: Function, deferral: _Deferral) -> None:
        super().__init__(module)
        self._deferral: Final = deferral
        self._names: Final = Names(sizes_in(function))
        self._shown: Final = frozenset(dim for p in function.params for dim in shown(p.ty))
        self._defined: Final = definitions(function)

    def node(self, expr: Expr, code: BlockBuilder) -> Steps[Expr]:
        """Return the replacement of a call of the group; anything else is walked through."""
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
        starts: dict[Accumulator, Expr] = {}
        for place, param in enumerate(function.params):
            empty: dict[Path, Value] = {}
            for path, accumulator in deferral.accumulators_in(param).items():
                starts[accumulator] = self._part_of(args[place], path, builder).atom
                ty = sizes(deferral.list(accumulator))
                empty[path] = builder.construct(deferral.adt, "no_addends", (), ty)
            given = partial(self._part_of, args[place], builder=builder)
            args[place] = _with_parts(given, type_of(args[place]), empty).atom
        accumulators = deferral.accumulators_in(name)
        ty = sizes(deferral.type(type_of(function.body), accumulators))
        result = builder.bind(replace(call, args=tuple(args), ty=ty), "r")
        lists = {a: result.at(path) for path, a in accumulators.items()}
        totals = self._totals(lists, starts, sizes)
        summed = {path: totals[a] for path, a in accumulators.items()}
        return _with_parts(result.at, type_of(call), summed)

    def _part_of(self, atom: Expr, path: Path, builder: Builder) -> Value:
        """Return the part of an argument at a path; a part of a tuple that the function makes is
        what it is made of."""
        while path:
            made = self._defined.get(atom)
            if not isinstance(made, Tuple):
                break
            atom, path = self.atom(made.fields[path[0]]), path[1:]
        return builder.value(atom).at(path)

    def _totals(
        self,
        lists: Mapping[Accumulator, Value],
        starts: Mapping[Accumulator, Expr],
        sizes: Substitution,
    ) -> dict[Accumulator, Value]:
        """Return the sums of the terms in lists and what their accumulators were entered with."""
        if not lists:
            return {}
        types = {a: a.kind.under(sizes).types for a in lists}
        shapes: list[list[tuple[Dim, ...]]] = []
        for accumulator, own in types.items():
            shown_here = self._shown.union(shown(type_of(starts[accumulator])))
            shapes.append([tuple(_or_nothing(d, shown_here) for d in t.shape) for t in own])
        fields = collected(list(lists.values()), list(types.values()), shapes)
        found: dict[Accumulator, Value] = {}
        for (accumulator, terms), own in zip(lists.items(), fields, strict=True):
            start, total = starts[accumulator], accumulator.kind.under(sizes).total(own)
            defined = self._defined.get(start)
            is_zero = (
                isinstance(defined, Call)
                and defined.callee is full
                and defined.attrs["fill_value"] == 0
            )
            found[accumulator] = total if is_zero else terms.builder.value(start) + total
        return found


def _inside(accumulators: Mapping[Path, Accumulator], place: int) -> Mapping[Path, Accumulator]:
    """Return the accumulators in one field of a tuple, by their paths in it."""
    return {path[1:]: a for path, a in accumulators.items() if path[0] == place}


def _with_parts(part: Callable[[Path], Value], ty: Type, new: Mapping[Path, Value]) -> Value:
    """Return a value of a type, or a tuple of nested tuples, with new parts at some paths. `part`
    returns the parts of the old value."""

    def made(ty: Type, path: Path) -> Value:
        if path in new:
            return new[path]
        if not isinstance(ty, TupleType) or all(p[: len(path)] != path for p in new):
            return part(path)
        fields = [made(field, (*path, place)) for place, field in enumerate(ty.fields)]
        return fields[0].builder.tuple(fields)

    return made(ty, ())


def _or_nothing(dim: Dim, shown_here: AbstractSet[Dim]) -> Dim:
    """Return a dim of terms, or 0 where nothing but the terms shows it: where there are none, no
    size of them is in their sum."""
    return ZERO if any(uncovered(dim, shown_here)) else dim
