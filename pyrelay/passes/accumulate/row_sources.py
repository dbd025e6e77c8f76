"""Gradients of tables that calls give, in sight of the updates that take them as rows.

A program that adds the gradients of several batches up has them as results: of one function that is
called for each batch, or of a loop. Functions that add rows to a table are written out where a
gradient is wanted as rows, and a loop becomes a global function, whose sums are put off like those
of a recursion.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import replace
from typing import Final, TypeAlias, final

from ...analysis.bindings import definitions, uses
from ...analysis.call_graph import call_graph, reachable
from ...analysis.dim_availability import missing_sizes
from ...dataclass import dataclass
from ...ir.dims import Dim, DimVar
from ...ir.expr import (
    Binding,
    Call,
    Expr,
    Flavour,
    Function,
    GlobalVar,
    LetBlock,
    Tuple,
    Var,
    type_of,
)
from ...ir.module import Module
from ...ir.names import Names
from ...ir.traverse import children, free_globals, free_vars, post_order, rewrite, run
from ...ir.types import FnType, TensorType, TupleType, Type, dim_names, subtypes
from ...operators.builder import Builder
from ...operators.primitive.arithmetic import add
from ...operators.primitive.embedding import embedding_grad
from ...operators.primitive.gathering import scatter_add
from ...operators.primitive.index import index_accumulate
from ..deriving.copying import Copier
from ..rewrites.row_gradients import (
    Result,
    is_large,
    is_zero,
    result_of,
    results_of_sum,
    wanted_results,
)
from ..simplify.inline import inline_calls
from ..simplify.simplify import simplify

MOST_NODES: Final = 50_000
"""Functions are written out while the copies have at most so many nodes together."""

_ADDING: Final = (embedding_grad, index_accumulate, scatter_add)

Gradients: TypeAlias = tuple[int, ...] | None


def with_row_sources(
    module: Module, entry: str, gradients: Gradients, loops: frozenset[str]
) -> tuple[Module, frozenset[str]]:
    """Return the module with calls written out that give gradients of tables, and the names of the
    global functions that loops over such have become, with those of `loops`."""
    budget = MOST_NODES
    while True:
        found = _Sources(module, entry, gradients, loops)
        names = found.functions()
        budget -= sum(found.copied_nodes(name) for name in names)
        made = inline_calls(module, names) if names and budget >= 0 else module
        made = module if made is module else simplify(made, entry)
        if made is module:
            lifted = next(found.lifted(), None)
            if lifted is None:
                return module, loops
            made, name = lifted
            loops |= {name}
        module = made


@final
class _Sources:
    """The calls in a module that give what updates want as rows, or terms of it."""

    def __init__(
        self, module: Module, entry: str, gradients: Gradients, loops: AbstractSet[str]
    ) -> None:
        self._module: Final = module
        self._graph: Final = call_graph(module)
        self._entry: Final = entry
        self._wanted: Final[list[tuple[str, Result]]] = []
        for name, function in module.functions.items():
            path = gradients if name == entry else None
            pending = [*wanted_results(function, path), *results_in_loops(function, name, loops)]
            seen: set[Result] = set()
            while pending:
                result = pending.pop()
                if result not in seen:
                    seen.add(result)
                    self._wanted.append((name, result))
                    pending += _terms_in_loop(function, result)

    def functions(self) -> list[str]:
        """Return the functions whose calls are written out."""
        found: dict[str, None] = {}
        for owner, (var, path) in self._wanted:
            call = definitions(self._module.functions[owner])[var]
            assert isinstance(call, Call)
            if not isinstance(call.callee, GlobalVar):
                continue
            name = call.callee.name
            if name in self._graph.recursive or name == self._entry:
                continue
            if self._adds_rows(self._module.functions[name], _at(type_of(var), path)):
                found[name] = None
        return list(found)

    def _adds_rows(self, function: Function, table: Type) -> bool:
        """Return whether a function, or one that it calls, adds rows to such a table."""
        functions = self._module.functions
        called = [functions[name] for name in reachable(functions, free_globals(function))]
        return any(
            _adds_rows_to(node, table) for f in (function, *called) for node in post_order(f.body)
        )

    def copied_nodes(self, name: str) -> int:
        """Return how many nodes the copies of a function have."""
        count = sum(1 for _ in post_order(self._module.functions[name].body))
        return count * self._graph.mentions.calls[name]

    def lifted(self) -> Iterator[tuple[Module, str]]:
        """Yield the module with a loop as a global function, and its name, for each loop that adds
        rows up."""
        for owner, (var, path) in self._wanted:
            function = self._module.functions[owner]
            known = definitions(function)
            found = _local(known[var], known)
            table = _at(type_of(var), path)
            if found and self._adds_rows(found[1], table):
                lifted = _Loop(self._module, owner, *found).lifted()
                if lifted is not None:
                    yield lifted


def _local(call: Expr, known: Mapping[Expr, Expr]) -> tuple[Var, Function] | None:
    """Return the local function that a call is of."""
    callee = call.callee if isinstance(call, Call) else None
    function = known.get(callee) if isinstance(callee, Var) else None
    return (
        (callee, function) if isinstance(callee, Var) and isinstance(function, Function) else None
    )


def _terms_in_loop(function: Function, result: Result) -> Iterator[Result]:
    """Yield the results of calls that a loop adds to a sum that it gives."""
    var, path = result
    known = definitions(function)
    loop = _local(known[var], known)
    return _terms(function, loop[1], _at(type_of(var), path)) if loop else iter(())


def _terms(function: Function, loop: Function, table: Type | None = None) -> Iterator[Result]:
    """Yield the results of calls that a loop in a function, or the function itself, adds to sums;
    only to those of the type of a table if there is one."""
    known, counts = definitions(function), uses(function)
    for node in post_order(loop.body):
        if isinstance(node, Call) and node.callee is add and table in (None, node.ty):
            for term in node.args:
                yield from results_of_sum(term, known, counts)


def results_in_loops(function: Function, name: str, loops: AbstractSet[str]) -> Iterator[Result]:
    """Yield the results of calls that a function passes to loops, as the sums that these go on
    with, and for a loop the terms of its sums."""
    if name in loops:
        yield from _terms(function, function)
    known, counts = definitions(function), uses(function)
    for node in post_order(function.body):
        if not isinstance(node, Call) or not isinstance(node.callee, GlobalVar):
            continue
        pending = list(node.args) if node.callee.name in loops else []
        while pending:
            atom = pending.pop()
            made = known.get(atom)
            if isinstance(made, Tuple):
                pending += made.fields
            elif isinstance(atom.ty, TupleType):
                found = result_of(atom, known) if counts[atom] == 1 else None
                yield from () if found is None else _tables_in(atom.ty, found)
            elif is_large(atom.ty):
                yield from results_of_sum(atom, known, counts)


def _tables_in(ty: Type, result: Result) -> Iterator[Result]:
    """Yield the parts of a result that may be gradients of tables."""
    pending: list[tuple[Type, Result]] = [(ty, result)]
    while pending:
        part, (var, path) = pending.pop()
        if isinstance(part, TupleType):
            fields = enumerate(part.fields)
            pending += [(field, (var, (*path, place))) for place, field in fields]
        elif is_large(part):
            yield var, path


def _adds_rows_to(node: Expr, table: Type) -> bool:
    """Return whether a node adds rows to a table, as far as is known without the names of sizes."""
    if not isinstance(node, Call) or node.callee not in _ADDING:
        return False
    made = node.ty
    if not isinstance(made, TensorType) or not isinstance(table, TensorType):
        return False
    pairs = zip(made.shape, table.shape, strict=False)
    constants = ((a.constant, b.constant) for a, b in pairs)
    is_like = made.rank == table.rank and made.dtype == table.dtype
    return is_like and all(a == b or a is None or b is None for a, b in constants)


def _at(ty: Type, path: tuple[int, ...]) -> Type:
    for place in path:
        assert isinstance(ty, TupleType)
        ty = ty.fields[place]
    return ty


@final
@dataclass(frozen=True, slots=True)
class _Loop:
    """A local function that only calls itself and is called, in a global one, its owner."""

    module: Module
    owner: str
    var: Var
    function: Function

    def lifted(self) -> tuple[Module, str] | None:
        """Return the module with the loop as a global function, and its name; None if it cannot be
        one."""
        owner = self.module.functions[self.owner]
        block = next((n for n in post_order(owner.body) if _binds(n, self.var)), None)
        function = self._with_zeros(definitions(owner))
        captures = [v for v in free_vars(function) if v is not self.var]
        types = [type_of(v) for v in (*captures, *function.params)]
        parts = [part for ty in types for part in subtypes(ty)]
        is_used = any(
            child is self.var and not (isinstance(node, Call) and node.callee is self.var)
            for node in post_order(owner.body)
            for child in (node.args if isinstance(node, Call) else children(node))
        )
        if block is None or is_used or any(isinstance(part, FnType) for part in parts):
            return None
        builder = Builder(self.var.span, Names())
        sizes = [builder.size(d).atom for d in missing_sizes([function], captures)]
        types += [type_of(s) for s in sizes]
        dims = dict.fromkeys(n for ty in types for n in sorted(dim_names(ty)))
        result = function.result
        if result is None or not dim_names(result) <= dims.keys():
            return None
        name = Names(self.module.functions).fresh(f"{self.owner}.{self.var.name}")
        copier = Copier(Names())
        leading = [copier.fresh(c) for c in (*captures, *sizes) if isinstance(c, Var)]
        params = (*leading, *map(copier.fresh, function.params))
        if len(leading) != len(captures) + len(sizes):
            return None
        types = [type_of(p) for p in params]
        type_params = tuple(map(DimVar, dims))
        ty = FnType(tuple(types), result, type_params)
        call = _Calls(self.var, GlobalVar(name, ty, span=self.var.span), tuple(map(Dim.of, dims)))
        body = call.replaced(run(copier.copy(function.body)), leading)
        assumed = (a.left.names() | a.right.names() for a in owner.assumptions)
        pairs = zip(owner.assumptions, assumed, strict=True)
        assumptions = tuple(a for a, names in pairs if names <= dims.keys())
        made = replace(
            function,
            params=params,
            body=body,
            type_params=type_params,
            name=name,
            assumptions=assumptions,
            ty=ty,
        )
        outside = rewrite(owner.body, lambda n: _without(n, self.var, builder.bindings))
        around = replace(owner, body=call.replaced(outside, [*captures, *sizes]))
        return self.module.with_functions({self.owner: around, name: made}), name

    def _with_zeros(self, known: Mapping[Expr, Expr]) -> Function:
        """Return the function with the zeros that it captures made in it: that a sum begins with
        nothing is seen where it begins."""
        function = self.function
        captured = [(v, known.get(v)) for v in free_vars(function)]
        zeros = tuple(Binding(v, made) for v, made in captured if made and is_zero(made))
        if not zeros:
            return function
        block = LetBlock(
            zeros, function.body, Flavour.PURE, ty=type_of(function.body), span=function.span
        )
        return replace(function, body=block)


@final
@dataclass(frozen=True, slots=True)
class _Calls:
    """The calls of a local function as calls of a global one, which takes what that captured."""

    var: Var
    callee: GlobalVar
    sizes: tuple[Dim, ...]

    def replaced(self, body: Expr, captures: list[Expr] | list[Var]) -> Expr:
        """Return an expression with calls of the global function."""

        def change(node: Expr) -> Expr:
            if not isinstance(node, Call) or node.callee is not self.var:
                return node
            args = (*captures, *node.args)
            return replace(node, callee=self.callee, args=args, type_args=self.sizes)

        return rewrite(body, change)


def _binds(node: Expr, var: Var) -> bool:
    return isinstance(node, LetBlock) and [b.var for b in node.bindings] == [var]


def _without(node: Expr, var: Var, sizes: tuple[Binding, ...] | list[Binding]) -> Expr:
    """Return a node without the block that binds a loop, or with sizes that it needs instead."""
    if not _binds(node, var):
        return node
    assert isinstance(node, LetBlock)
    if not sizes:
        return node.body
    return LetBlock(tuple(sizes), node.body, Flavour.PURE, ty=node.ty, span=node.span)
