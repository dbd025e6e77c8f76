"""Inlining: the body of a function in place of a call of it.

Inlined are global functions that are small or mentioned once, and local functions that are only
called, once, or small. Functions that reach themselves are not. Bodies are spliced from the
outside in, so each is copied once for each place it ends up at; a budget bounds the growth.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import islice
from typing import TYPE_CHECKING, ClassVar, Final, final

from ...analysis.call_graph import call_graph
from ...analysis.callee import Callee
from ...analysis.dim_availability import shown
from ...analysis.free_names import names_in
from ...analysis.retype import Retyping, types_in
from ...dataclass import dataclass
from ...ir.block_builder import BlockBuilder
from ...ir.dims import Dim
from ...ir.expr import (
    Binding,
    Call,
    Expr,
    Flavour,
    Function,
    GlobalVar,
    LetBlock,
    Var,
    is_atom,
    type_of,
)
from ...ir.names import Names
from ...ir.rewriter import Rewriter
from ...ir.traverse import Steps, children, post_order, pre_order, rebuild
from ...ir.types import FnType, Substitution, Type
from ...ir.verify import Stage
from ..base import Context, Pass

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator

    from ...ir.module import Module

SMALL: Final = 12
"""Up to how many nodes, atoms not counted, a function is inlined wherever it is called."""
GROWTH: Final = 2000
"""By how many nodes a function may grow from small functions alone."""


def inline(module: Module, entry: str) -> Module:
    """Return a module in A-normal form with calls inlined; itself if there are none to inline.

    What is no longer called is left for `dce`.
    """
    plan = _InlinePlan(module)
    plan.choose(entry)
    absorbed = {name for name in plan.inlined if plan.graph.mentions.all[name] == 1}
    return _inlined(plan, [name for name in module.functions if name not in absorbed])


@final
@dataclass(frozen=True, slots=True)
class Inline(Pass):
    """Replace calls of functions by their bodies."""

    name: ClassVar = "inline"
    needs: ClassVar = Stage.ANF

    def run(self, module: Module, context: Context) -> Module:
        """Return the module after the pass."""
        return inline(module, context.entry)


def inline_calls(module: Module, names: Collection[str]) -> Module:
    """Return a module in A-normal form with all calls of the named functions, and of local ones
    that return functions, inlined, whatever their size, but for those where a size would be lost;
    itself if there are none. None of the named functions may reach itself."""
    plan = _InlinePlan(module, makers=True)
    for name in names:
        plan.inlined[name] = _Callee(name, module.functions[name], once=True)
    return _inlined(plan, module.functions)


def _inlined(plan: _InlinePlan, names: Iterable[str]) -> Module:
    module = plan.module
    functions = dict(module.functions)
    for name in names:
        functions[name] = _Inliner(plan, module.functions[name]).function()
    if all(functions[name] is old for name, old in module.functions.items()):
        return module
    return replace(module, functions=functions)


@final
class _InlinePlan:
    """Which global functions are inlined."""

    def __init__(self, module: Module, *, makers: bool = False) -> None:
        self.module: Final = module
        self.makers: Final = makers
        """Whether local functions that return functions are inlined, whatever their size."""
        self.graph: Final = call_graph(module)
        self.inlined: Final[dict[str, _Callee]] = {}

    def choose(self, entry: str) -> None:
        """Choose the functions that are small or mentioned once, and do not reach themselves."""
        mentions, recursive = self.graph.mentions, self.graph.recursive
        for name, function in self.module.functions.items():
            once = mentions.all[name] == mentions.calls[name] == 1
            if name not in recursive and name != entry and (once or _is_small(function)):
                self.inlined[name] = _Callee(name, function, once)


@final
class _Callee:
    """A global function to be inlined."""

    def __init__(self, name: str, function: Function, once: bool) -> None:
        self.name: Final = name
        self.once: Final = once
        self.at_calls: Final = Callee(function)


@final
@dataclass(slots=True)
class _Uses:
    """How a local function is used, and how large it is."""

    function: Function
    calls: int = 0
    others: int = 0

    @property
    def is_moved(self) -> bool:
        """Return whether the one call takes the function's place."""
        return self.calls == 1 and not self.others


@final
class _Inliner(Rewriter):
    """One walk over a function that stays."""

    def __init__(self, plan: _InlinePlan, function: Function) -> None:
        super().__init__(plan.module)
        self._plan: Final = plan
        self._function: Final = function
        self._budget = GROWTH
        self._local: Final[dict[Expr, _Uses]] = {}
        self._types: Final[set[Type | Dim]] = set()
        self._sizes: Final = Names()
        """The names of sizes in use."""
        self._shown: Final = frozenset(d for p in function.params for d in shown(p.ty))

    def function(self) -> Function:
        """Return the function with calls in it inlined."""
        self._look_at(self._function)
        return self.walked(self._function)

    def _look_at(self, expr: Expr) -> None:
        """Note the local functions in code that is about to be walked, and all uses of them."""
        nodes = list(_nodes(expr))
        for node in nodes:
            self._note_sizes(node)
            if isinstance(node, LetBlock) and node.flavour is not Flavour.REC:
                local = ((b.var, b.value) for b in node.bindings)
                self._local.update((v, _Uses(f)) for v, f in local if isinstance(f, Function))
        if not self._local:
            return
        for node in nodes:
            callee = node.callee if isinstance(node, Call) else None
            uses = self._local.get(callee) if isinstance(callee, Var) else None
            if uses is not None:
                uses.calls += 1
                uses.others -= 1  # it is counted among the children, too
            for child in children(node):
                if child in self._local:
                    self._local[child].others += 1

    def _note_sizes(self, node: Expr) -> None:
        for ty in types_in(node):
            if ty not in self._types:
                self._types.add(ty)
                self._sizes.take(names_in((ty,)))

    def binding(self, binding: Binding, code: BlockBuilder) -> Steps[None]:
        """Add a binding, unless its function has moved to where it is called."""
        uses = self._local.get(binding.var)
        if uses is not None and uses.is_moved:
            return
        value = yield self.node(binding.value, code)
        if is_atom(value) and not is_atom(binding.value):
            self.let(binding.var, value, code)
        else:
            code.bind(binding.var, value)

    def node(self, expr: Expr, code: BlockBuilder) -> Steps[Expr]:
        """Return a node, or, of a call of an inlined function, the end of the body in its place."""
        if not isinstance(expr, Call):
            return (yield super().node(expr, code))
        call = rebuild(expr, tuple(map(self.atom, children(expr))))
        assert isinstance(call, Call)
        function = self._taken(call)
        if function is None:
            return call
        for param, arg in zip(function.params, call.args, strict=True):
            self.let(param, arg, code)
        return (yield self.splice(function.body, code))

    def _taken(self, call: Call) -> Function | None:
        """Return the function whose body takes the place of a call, its variables free to bind."""
        match call.callee:
            case GlobalVar(name) if name in self._plan.inlined:
                return self._global(self._plan.inlined[name], call)
            case Var() as var if var in self._local:
                return self._of_local(self._local[var], var.name)
            case Function() as function:
                return function
            case _:
                return None

    def _of_local(self, uses: _Uses, name: str) -> Function | None:
        if uses.is_moved:
            return uses.function
        is_maker = self._plan.makers and isinstance(uses.function.result, FnType)
        is_copied = not uses.others and (is_maker or _is_small(uses.function))
        if not is_copied or self._introduces_sizes(uses.function):
            return None
        if any(isinstance(n, Call) and n.callee in self._local for n in _nodes(uses.function)):
            return None  # a function that has moved into the original would move into the copy
        return self._copied(uses.function, Substitution({}, {}), name)

    def _introduces_sizes(self, function: Function) -> bool:
        """Return whether a local function may find a size while it runs: then it has one place."""
        known = {p.name for p in self._function.type_params}
        for var in function.params:
            known.update(names_in((type_of(var),)))
        return any(n not in known for node in post_order(function) for n in _sizes_of(node))

    def _global(self, callee: _Callee, call: Call) -> Function | None:
        if not callee.once and self._budget < SMALL:
            return None
        found = callee.at_calls
        change = found.change(call.type_args, type_of(call), self._sizes.fresh)
        if not found.fits(change, self._shown, self._function.assumptions):
            return None
        if not callee.once:
            self._budget -= SMALL
        return self._copied(found.function, change, callee.name)

    def _copied(self, function: Function, change: Substitution, name: str) -> Function:
        copy = Retyping(change, f"inlined from `{name}`").copy(function)
        assert isinstance(copy, Function)
        self._look_at(copy)
        return copy


def _sizes_of(node: Expr) -> Iterator[str]:
    """Return the names of the sizes that a node speaks of. A mention of a variable says no more
    than where it is bound; the type of one that holds what a gradient saved is as long as the
    program.
    """
    return iter(()) if isinstance(node, Var) else names_in(types_in(node))


def _nodes(expr: Expr) -> Iterator[Expr]:
    """Return every node that is not an atom, parents first."""
    return (n for n in pre_order(expr) if not is_atom(n))


def _is_small(function: Function) -> bool:
    """Return whether a function has few nodes, atoms not counted. It looks at no more than that."""
    if is_atom(function.body):
        return True
    return next(islice(_nodes(function.body), SMALL, None), None) is None
