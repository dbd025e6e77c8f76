"""Tensor code becomes calls of kernel functions.

In each body, what `grouping` puts together is taken out as a global function `kernel.N` and called
where it stood. The meaning of the program stays, and every later stage can run it: the reference
evaluator calls a kernel function like any other.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import ClassVar, Final, final

from ...dataclass import dataclass
from ...ir.block_builder import BlockBuilder
from ...ir.effect import Effects, effects_of
from ...ir.expr import (
    Assumption,
    Binding,
    Call,
    Constant,
    Expr,
    Flavour,
    Function,
    If,
    LetBlock,
    Match,
    RefRead,
    TensorData,
    TupleGet,
    Var,
)
from ...ir.module import Module
from ...ir.op import Effect, Op
from ...ir.rewriter import Rewriter
from ...ir.traverse import Steps, children, dependencies_first, rebuild, spine
from ...ir.verify import Stage
from ...passes.base import Context, Pass
from ...passes.normalise.flavours import with_flavours
from ..groups import Group
from ..outlined import Outlined, Remark, with_outlined
from .closed_functions import Closed, Functions, call_of
from .found_sizes import takes_found_sizes_as_equal
from .gathered_updates import gather_updates
from .grouping import Grouping
from .kernel_functions import Extraction
from .nodes import Item, Role, computes, has_bodies, item_of, mentioned, updates_a_part

KERNEL: Final = "kernel."
"""How the names of kernel functions begin."""


def fuse(module: Module) -> Module:
    """Return a module in A-normal form, without transforms, with its tensor code in kernels; their
    names and the remarks of fusion are attached to it (`outlined_of`)."""
    kernels = _Kernels(module)
    effects = effects_of(module)
    remarks: list[Remark] = []
    functions = {
        name: function
        if takes_found_sizes_as_equal(module, function)
        else _Fuse(module, function, kernels, effects, remarks).walked(function)
        for name, function in module.functions.items()
    }
    made = with_flavours(module.with_functions({**functions, **kernels.functions.functions}))
    groups = {n: replace(g, function=made.functions[n]) for n, g in kernels.groups.items()}
    return with_outlined(made, Outlined(groups, remarks=tuple(remarks)))


@final
class _Kernels:
    """The kernel functions of a module, and their groups."""

    def __init__(self, module: Module) -> None:
        self.functions: Final = Functions(KERNEL, module.functions)
        self.groups: Final[dict[str, Group]] = {}

    def name(self, group: Group) -> str:
        """Return the name of a group's function, which is new unless an equal one is there."""
        name = self.functions.name(group.function)
        found = self.groups.setdefault(name, group)
        if group.may_fail:
            self.groups[name] = replace(found, may_fail=True)
        return name


@final
@dataclass(frozen=True, slots=True)
class Fuse(Pass):
    """Take tensor code out as kernel functions."""

    name: ClassVar = "fuse"
    needs: ClassVar = Stage.DERIVED
    gives: ClassVar = Stage.REGIONS

    def run(self, module: Module, _: Context) -> Module:
        """Return the module after the pass."""
        return fuse(module)


@final
class _Fuse(Rewriter):
    """One walk over a function."""

    def __init__(
        self,
        module: Module,
        function: Function,
        kernels: _Kernels,
        effects: Effects,
        remarks: list[Remark],
    ) -> None:
        super().__init__(module)
        self._needed: Final = needed_elsewhere(function)
        self._assumptions: Final[tuple[Assumption, ...]] = function.assumptions
        self._kernels: Final = kernels
        self._effects: Final = effects
        self._remarks: Final = remarks

    def splice(self, expr: Expr, code: BlockBuilder) -> Steps[Expr]:
        """Add the bindings of a body to `code`, with kernels in place of what they compute."""
        blocks, end = spine(expr)
        items: list[Item] = []
        computed: set[Expr] = set()
        known = _Known(self._effects)
        for block in blocks:
            if block.flavour is Flavour.REC:
                self._flush(items, code)
                items = []
                yield self.recursive(block, code)
                continue
            for binding in block.bindings:
                value = yield self.node(binding.value, code)
                same = known.same(binding.var, value)
                if same is not None:
                    self.atoms[binding.var] = same
                    continue
                value = _with_named_constants(value, items)
                item = item_of(binding.var, value)
                if updates_a_part(value, computed):
                    item = Item(binding.var, value, Role.OPAQUE)
                elif computes(value):
                    computed.add(binding.var)
                items.append(item)
        self._flush(items, code)
        return (yield self.node(end, code))

    def _flush(self, items: Sequence[Item], code: BlockBuilder) -> None:
        if items:
            needed = [i.var for i in items if i.var in self._needed]
            grouping = Grouping(items, needed, self._effects)
            gather_updates(grouping)
            self._remarks.extend(grouping.remarks)
            _Emission(grouping, needed, self._assumptions, self._kernels, code).run()


def _with_named_constants(value: Expr, items: list[Item]) -> Expr:
    """Return a call of an operator with tensors that are constants under names, as kernels take
    them."""
    if not isinstance(value, Call) or not isinstance(value.callee, Op):
        return value
    args: list[Expr] = []
    for arg in value.args:
        if isinstance(arg, Constant) and isinstance(arg.value, TensorData):
            named = Var("c", arg.ty, span=arg.span)
            items.append(Item(named, arg, Role.OPAQUE))
            args.append(named)
        else:
            args.append(arg)
    return rebuild(value, args)


@final
class _Known:
    """The values that refs and tuples have been seen to hold: a second read gives the same tensors,
    also if they have been overwritten meanwhile. So a tensor has one name where fusion looks."""

    def __init__(self, effects: Effects) -> None:
        self._effects: Final = effects
        self._reads: Final[dict[Expr, Var]] = {}
        self._parts: Final[dict[tuple[Expr, int], Var]] = {}

    def same(self, var: Var, value: Expr) -> Var | None:
        """Return the variable that holds a value already; None if the value is new."""
        match value:
            case RefRead(ref):
                found = self._reads.setdefault(ref, var)
            case TupleGet(whole, index):
                found = self._parts.setdefault((whole, index), var)
            case Call(Op()):
                return None
            case _:
                if Effect.STATE in self._effects.of(value):
                    self._reads.clear()
                return None
        return None if found is var else found


@final
class _Emission:
    """Puts the groups of a body into code, in order."""

    def __init__(
        self,
        grouping: Grouping,
        needed: Sequence[Var],
        assumptions: Sequence[Assumption],
        kernels: _Kernels,
        code: BlockBuilder,
    ) -> None:
        self._grouping: Final = grouping
        self._needed: Final = needed
        self._kernels: Final = kernels
        self._code: Final = code
        self._extraction: Final = Extraction(grouping, needed, assumptions)
        self._bound: Final[set[Var]] = set()
        self._next = 0

    def run(self) -> None:
        """Add all bindings."""
        for cluster in self._grouping.clusters:
            if cluster.kind is None:
                (item,) = cluster.members
                if item.var in self._bound:
                    continue  # a size, which a kernel before took as a parameter
                for var in mentioned(item.value):
                    self._show(var)
                if has_bodies(item.value):
                    self._show_before(item)
                self._bind(Binding(item.var, item.value))
                continue
            self._call(*self._extraction.kernel(cluster))
        for var in self._needed:
            self._show(var)

    def _call(self, kernel: Closed, group: Group) -> None:
        """Bind the call of a kernel, unless only the sizes of what it computes are used."""
        if not group.outputs:
            return
        for arg in kernel.args:
            if isinstance(arg, Var) and arg not in {b.var for b in kernel.sizes}:
                self._show(arg)
        for binding in call_of(self._kernels.name(group), kernel):
            self._bind(binding)

    def _show_before(self, item: Item) -> None:
        """Bind what was there before an item and is used in bodies."""
        position = self._grouping.position
        while self._next < len(self._needed):
            var = self._needed[self._next]
            if position[var] >= position[item.var]:
                return
            self._show(var)
            self._next += 1

    def _bind(self, binding: Binding) -> None:
        self._bound.add(binding.var)
        self._code.bind(binding.var, binding.value)

    def _show(self, var: Var) -> None:
        """Bind a view or part, and what it is one of, if it is not bound yet."""
        bindings = self._grouping.bindings

        def is_bound(var: Var) -> bool:
            return var in self._bound or var not in bindings

        for shown in dependencies_first(var, lambda v: mentioned(bindings[v]), is_bound):
            self._bind(Binding(shown, bindings[shown]))


def needed_elsewhere(function: Function) -> frozenset[Var]:
    """Return the variables that are used in another body than the one that binds them, or end it.

    A block of recursive functions ends one body and begins another.
    """
    home: dict[Var, int] = {}
    needed: set[Var] = set()
    bodies: list[Expr] = [function.body]
    number = 0
    while bodies:
        number += 1
        blocks, end = spine(bodies.pop())
        for block in blocks:
            is_rec = block.flavour is Flavour.REC
            number += is_rec
            for binding in block.bindings:
                home[binding.var] = number
                used = (v for v in _mentions(binding.value, bodies) if isinstance(v, Var))
                needed.update(v for v in used if home.get(v) != number)
            number += is_rec
        needed.update(v for v in (end, *_mentions(end, bodies)) if isinstance(v, Var))
    return frozenset(needed)


def _mentions(value: Expr, bodies: list[Expr]) -> Iterator[Expr]:
    """Return the atoms that a value itself mentions; the bodies in it go to `bodies`."""
    match value:
        case Function(body=body):
            bodies.append(body)
        case If(condition, then, otherwise):
            yield condition
            bodies += (then, otherwise)
        case Match(matched, clauses):
            yield matched
            for clause in clauses:
                bodies += clause.scopes
        case LetBlock():
            bodies.append(value)
        case Var():
            yield value
        case _:
            yield from children(value)
