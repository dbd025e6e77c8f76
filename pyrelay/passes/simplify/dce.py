"""Dead code: bindings whose value nothing uses, and functions that nothing reaches.

A binding stays if something later uses its variable, if evaluating it has an effect that something
may notice, or if it shows a size that something needs. Bodies are walked backwards, so one walk
finds all of it. A cell that is only ever written is as good as dead, and so are the writes.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, ClassVar, Final, final

from ...analysis.call_graph import callees
from ...analysis.dim_availability import needed, shown, uncovered
from ...dataclass import dataclass
from ...ir.dims import Dim
from ...ir.effect import Effects, effects_of
from ...ir.expr import (
    Binding,
    Clause,
    Expr,
    Flavour,
    Function,
    If,
    LetBlock,
    Match,
    RefCreate,
    RefRead,
    RefWrite,
    Tuple,
    Var,
    is_atom,
)
from ...ir.op import Effect
from ...ir.traverse import Steps, children, post_order, rebuild, run, spine
from ...ir.types import UNIT
from ...ir.verify import Stage
from ..base import Context, Pass

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ...ir.module import Module


def remove_dead(module: Module, entry: str | None = None) -> Module:
    """Return a module in A-normal form without dead code; itself if there is none.

    With `entry`, functions that it does not reach go too.
    """
    effects = effects_of(module)
    functions: dict[str, Function] = {}
    pending = list(module.functions) if entry is None else [entry]
    while pending:
        name = pending.pop()
        if name in functions or name not in module.functions:
            continue
        functions[name] = _Walk(effects, module.functions[name]).function()
        if entry is not None:
            pending += callees(functions[name])
    kept = {n: functions[n] for n in module.functions if n in functions}
    same = len(kept) == len(module.functions)
    if same and all(kept[n] is f for n, f in module.functions.items()):
        return module
    return replace(module, functions=kept)


@final
@dataclass(frozen=True, slots=True)
class RemoveDead(Pass):
    """Remove bindings that nothing uses and functions that nothing reaches."""

    name: ClassVar = "dce"
    needs: ClassVar = Stage.ANF

    def run(self, module: Module, context: Context) -> Module:
        """Return the module after the pass."""
        return remove_dead(module, context.entry)


@final
class _Walk:
    """One backward walk over a global function."""

    def __init__(self, effects: Effects, function: Function) -> None:
        self._effects: Final = effects
        self._function: Final = function
        self._live: Final[set[Var]] = set()
        self._needed: Final[set[Dim]] = set()
        self._shows: Final = _Showing(function)
        self._unread: Final = _cells_never_read(function)

    def function(self) -> Function:
        """Return the function without dead code."""
        body = run(self._body(self._function.body))
        rebuilt = rebuild(self._function, (body,))
        assert isinstance(rebuilt, Function)
        return rebuilt

    def _body(self, expr: Expr) -> Steps[Expr]:
        blocks, end = spine(expr)
        result = yield self._keep(end)
        for block in reversed(blocks):
            bindings = yield (
                self._recursive(block) if block.flavour is Flavour.REC else self._bindings(block)
            )
            if bindings == list(block.bindings):
                result = rebuild(block, (*(b.value for b in bindings), result))
            elif bindings:
                result = replace(block, bindings=tuple(bindings), body=result)
        return result

    def _bindings(self, block: LetBlock) -> Steps[list[Binding]]:
        kept: list[Binding] = []
        for binding in reversed(block.bindings):
            if self._is_live(binding):
                cleaned = yield self._kept(binding)
                kept.append(cleaned)
        kept.reverse()
        return kept

    def _recursive(self, block: LetBlock) -> Steps[list[Binding]]:
        kept: dict[Var, Binding] = {}
        while True:
            new = [b for b in block.bindings if b.var in self._live and b.var not in kept]
            if not new:
                return [kept[b.var] for b in block.bindings if b.var in kept]
            for binding in new:
                kept[binding.var] = yield self._kept(binding)

    def _kept(self, binding: Binding) -> Steps[Binding]:
        value = binding.value
        if isinstance(value, RefWrite) and value.ref in self._unread:
            return Binding(binding.var, Tuple((), UNIT, span=value.span))
        new = yield self._keep(value)
        return binding if new is value else Binding(binding.var, new)

    def _is_live(self, binding: Binding) -> bool:
        var, value = binding.var, binding.value
        if var in self._live or self._shows.is_needed(var):
            return True
        if isinstance(value, RefCreate | RefRead):
            return False
        if isinstance(value, RefWrite) and value.ref in self._unread:
            return False
        return self._effects.of(value) is not Effect.NONE

    def _keep(self, expr: Expr) -> Steps[Expr]:
        """Record the uses of a node that stays; return it with its branches cleaned."""
        self._shows.need(needed(expr))
        match expr:
            case Function(body=body):
                return rebuild(expr, ((yield self._body(body)),))
            case If(condition, then, otherwise):
                then = yield self._body(then)
                otherwise = yield self._body(otherwise)
                self._use(condition)
                return rebuild(expr, (condition, then, otherwise))
            case Match(value, clauses):
                inside: list[Expr] = [value]
                for clause in clauses:
                    inside += yield self._clause(clause)
                self._use(value)
                return rebuild(expr, inside)
            case _:
                self._use(expr)
                for child in children(expr):
                    self._use(child)
                return expr

    def _clause(self, clause: Clause) -> Steps[list[Expr]]:
        body = yield self._body(clause.body)
        if clause.guard is None:
            return [body]
        return [(yield self._body(clause.guard)), body]

    def _use(self, atom: Expr) -> None:
        if isinstance(atom, Var):
            self._live.add(atom)


@final
class _Showing:
    """Which bindings of a function show a size that is needed: in each body the first that does."""

    def __init__(self, function: Function) -> None:
        self._given: Final = frozenset(d for p in function.params for d in shown(p.ty))
        self._by_dim: Final[dict[Dim, list[Var]]] = {}
        self._needed: Final[set[Var]] = set()
        bodies = [function.body]
        while bodies:
            self._enter(bodies.pop(), bodies)

    def _enter(self, body: Expr, bodies: list[Expr]) -> None:
        blocks, end = spine(body)
        first: set[Dim] = set()
        for binding in (b for block in blocks for b in block.bindings):
            for dim in shown(binding.var.ty):
                if dim not in first:
                    first.add(dim)
                    self._by_dim.setdefault(dim, []).append(binding.var)
            bodies += _bodies(binding.value)
        bodies += _bodies(end)

    def need(self, dims: Iterable[Dim]) -> None:
        """Note dims that are needed."""
        for dim in dims:
            for part in (dim, *uncovered(dim, self._given)):
                if part not in self._given:
                    self._needed.update(self._by_dim.pop(part, ()))

    def is_needed(self, var: Var) -> bool:
        """Return whether a variable shows a dim that is needed and that no parameter shows."""
        return var in self._needed


def _bodies(node: Expr) -> tuple[Expr, ...]:
    """Return the bodies of scopes of their own directly inside a node."""
    match node:
        case Function() | Match():
            return children(node)
        case If(_, then, otherwise):
            return (then, otherwise)
        case _:
            return ()


def _cells_never_read(function: Function) -> frozenset[Expr]:
    """Return the variables bound to new cells that are used for nothing but writing to them."""
    cells: set[Expr] = set()
    used: set[Expr] = set()
    for node in post_order(function):
        if isinstance(node, LetBlock):
            cells.update(b.var for b in node.bindings if isinstance(b.value, RefCreate))
            used.update(v for b in node.bindings if is_atom(v := b.value))
            used.update(() if isinstance(node.body, LetBlock) else (node.body,))
        elif isinstance(node, RefWrite):
            used.add(node.value)
        else:
            used.update(children(node))
    return frozenset(cells - used)
