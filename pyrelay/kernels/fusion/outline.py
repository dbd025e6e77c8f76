"""Runs of tensor code become region functions: the unit of memory plan, of capture and of cache.

A region is a longest run of calls of kernels and of torch's operators, with the views and parts
between them, that needs nothing from the host while it runs. Branches, calls of other functions and
host values cut; what merely stands between, such as a size that is read, is evaluated before the
region or after it. A training step without control flow of its own is one region.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import ClassVar, Final, final

from ...analysis.dim_availability import dims_in_attrs, needed, shown
from ...analysis.solved_sizes import with_solved_sizes
from ...dataclass import dataclass
from ...ir.block_builder import BlockBuilder
from ...ir.dims import Dim
from ...ir.effect import Effects, effects_of
from ...ir.expr import (
    Binding,
    Call,
    Expr,
    Flavour,
    Function,
    GlobalVar,
    Match,
    Tuple,
    TupleGet,
    Var,
    type_of,
)
from ...ir.module import Module
from ...ir.op import Effect, Host, Op, View
from ...ir.rewriter import Rewriter
from ...ir.traverse import Steps, spine
from ...ir.types import UNIT, SizeType, TupleType, dim_names
from ...ir.verify import Stage
from ...operators.composite.descent import descend_in_place, overwrite, overwrite_all
from ...operators.composite.table_rows import add_rows, store_rows
from ...operators.host.conversions import to_bool, to_float, to_int
from ...passes.base import Context, Pass
from ...passes.normalise.flavours import with_flavours
from ..groups import Group
from ..outlined import outlined_of, with_outlined
from ..reading import reshaped_operand
from .closed_functions import Functions
from .found_sizes import takes_found_sizes_as_equal
from .fuse import needed_elsewhere
from .nodes import gives_own_storage, has_bodies, is_host_number, is_tensors, may_stop, mentioned

REGION: Final = "region."
"""How the names of region functions begin."""

_FEWEST: Final = 2
"""A region has at least this many calls."""


def outline(module: Module) -> Module:
    """Return a module whose tensor code is in kernels with its regions as functions."""
    outlined = outlined_of(module)
    kernels = outlined.groups
    regions = Functions(REGION, module.functions)
    effects = effects_of(module)
    functions = {
        name: function
        if name in kernels or takes_found_sizes_as_equal(module, function)
        else _Outline(module, function, kernels, regions, effects).walked(function)
        for name, function in module.functions.items()
    }
    made = module.with_functions({**functions, **regions.functions})
    # Kernels and regions ask for each part of a size that the code around them shows as a whole.
    made = with_flavours(with_solved_sizes(made))
    taken = {name: made.functions[name] for name in regions.functions}
    return with_outlined(made, replace(outlined, functions=taken))


@final
@dataclass(frozen=True, slots=True)
class Outline(Pass):
    """Take runs of kernels and torch calls out as region functions."""

    name: ClassVar = "outline"
    needs: ClassVar = Stage.REGIONS
    gives: ClassVar = Stage.REGIONS

    def run(self, module: Module, _: Context) -> Module:
        """Return the module after the pass."""
        return outline(module)


@final
class _Outline(Rewriter):
    """One walk over a function."""

    def __init__(
        self,
        module: Module,
        function: Function,
        kernels: Mapping[str, Group],
        regions: Functions,
        effects: Effects,
    ) -> None:
        super().__init__(module)
        self._needed: Final = needed_elsewhere(function)
        self._assumptions: Final = function.assumptions
        self._kernels: Final = kernels
        self._regions: Final = regions
        self._effects: Final = effects

    def splice(self, expr: Expr, code: BlockBuilder) -> Steps[Expr]:
        """Add the bindings of a body to `code`, with region calls in place of their code."""
        blocks, end = spine(expr)
        bindings: list[Binding] = []
        for block in blocks:
            if block.flavour is Flavour.REC:
                self._flush(bindings, code)
                bindings = []
                yield self.recursive(block, code)
                continue
            for binding in block.bindings:
                value = yield self.node(binding.value, code)
                bindings.append(replace(binding, value=value))
        self._flush(bindings, code)
        return (yield self.node(end, code))

    def _flush(self, bindings: Sequence[Binding], code: BlockBuilder) -> None:
        cuts = _cut(bindings, self._kernels, self._effects, self._needed)
        users: dict[Var, set[int]] = {}
        for number, cut in enumerate(cuts):
            for binding in cut.inside:
                for var in mentioned(binding.value):
                    users.setdefault(var, set()).add(number)
            for binding in (*cut.before, *cut.after):
                for var in mentioned(binding.value):
                    users.setdefault(var, set()).add(-1)
        for number, cut in enumerate(cuts):
            results = [
                b.var
                for b in cut.inside
                if b.var.ty != UNIT
                and (b.var in self._needed or users.get(b.var, set()) - {number})
            ]
            for binding in (*cut.before, *self._region(cut, results), *cut.after):
                code.bind(binding.var, binding.value)

    def _region(self, cut: _Cut, results: Sequence[Var]) -> Sequence[Binding]:
        """Return the call of a region, or its code where it is too short to be one."""
        if sum(not _is_free(b.value) for b in cut.inside) < _FEWEST:
            return cut.inside
        return self._regions.take_out(_views_first(cut.inside), results, self._assumptions)


@final
class _Cut:
    """A region in the making, what is evaluated before it, and what is after it."""

    def __init__(self) -> None:
        self.before: Final[list[Binding]] = []
        self.inside: Final[list[Binding]] = []
        self.after: Final[list[Binding]] = []


def _cut(
    bindings: Sequence[Binding],
    kernels: Mapping[str, Group],
    effects: Effects,
    needed: frozenset[Var],
) -> list[_Cut]:
    """Return straight-line code as regions, each with what comes before and after it.

    `needed` is what bodies in it may use. A region ends where the program may stop behind an
    update: what fails in a region is run again by torch, and an update must not be.
    """
    cuts = [_Cut()]
    inside: set[Var] = set()
    after: set[Var] = set()
    shown_by: dict[str, Var] = {}
    """The variables that show sizes which this code finds as it runs, or takes out of data."""
    bound = {b.var for b in bindings}
    around = {v for b in bindings for v in mentioned(b.value)} - bound
    given_sizes = {n for v in around if v.ty is not None for d in shown(v.ty) for n in d.names()}
    made = _made(bindings, kernels)
    writes = waits = reads = given = False
    """Whether the region has an effect, what is after it has, or reads what a region may overwrite,
    and bodies may use what it gives."""
    for binding in bindings:
        used = {*mentioned(binding.value), *_showing(binding.value, shown_by)}
        for name in sorted(_found(binding) - given_sizes):
            shown_by.setdefault(name, binding.var)
        effect = effects.of(binding.value) is not Effect.NONE
        branches = has_bodies(binding.value)
        stops = not effect and not _is_free(binding.value) and may_stop(binding.value, kernels)
        is_reader = branches or _reads_others(binding.value, made)
        needs_inside = not inside.isdisjoint(used) or (branches and given)
        needs_after = not after.isdisjoint(used) or (branches and bool(after))
        belongs = _belongs(binding, kernels) and not _is_for_host(binding.value, inside, after)
        if belongs and (needs_after or (effect and (waits or reads)) or (writes and stops)):
            cuts.append(_Cut())
            inside.clear()
            after.clear()
            writes = waits = reads = given = needs_inside = needs_after = False
        if belongs and (needs_inside or not isinstance(binding.value, Tuple | TupleGet)):
            cuts[-1].inside.append(binding)
            inside.add(binding.var)
            writes |= effect
            given |= binding.var in needed
        elif (
            needs_inside or needs_after or (writes and is_reader) or (effect and (writes or waits))
        ):
            cuts[-1].after.append(binding)
            after.add(binding.var)
            waits |= effect
            reads |= is_reader or stops
        else:
            cuts[-1].before.append(binding)
    return cuts


def _views_first(bindings: Sequence[Binding]) -> list[Binding]:
    """Return bindings with each reshape of a value directly behind the value: there it needs no
    call, and the users of the reshaped value may run early."""
    bound = {b.var for b in bindings}
    behind: dict[Var, list[Binding]] = {}
    for binding in bindings:
        source = reshaped_operand(binding.value)
        if isinstance(source, Var) and source in bound:
            behind.setdefault(source, []).append(binding)
    moved = {b.var for views in behind.values() for b in views}
    found: list[Binding] = []
    pending = [b for b in reversed(bindings) if b.var not in moved]
    while pending:
        found.append(pending.pop())
        pending += reversed(behind.get(found[-1].var, ()))
    return found


def _made(bindings: Sequence[Binding], kernels: Mapping[str, Group]) -> set[Var]:
    """Return the variables of straight-line code whose storage it makes: no region overwrites that
    of a parameter there."""
    made: set[Var] = set()
    for binding in bindings:
        match binding.value:
            case Call(GlobalVar(name)) if name in kernels:
                is_made = True
            case Call(Op(lowering=View())) | Tuple() | TupleGet():
                is_made = made.issuperset(mentioned(binding.value))
            case _:
                is_made = gives_own_storage(binding.value)
        if is_made:
            made.add(binding.var)
    return made


def _reads_others(value: Expr, made: set[Var]) -> bool:
    """Return whether a call may read storage that the code before it did not make."""
    if not isinstance(value, Call) or is_host_number(value):
        return False
    return any(not isinstance(v.ty, SizeType) and v not in made for v in mentioned(value))


def _is_for_host(value: Expr, inside: set[Var], after: set[Var]) -> bool:
    """Return whether a tuple is made after a region: something in it is, or is a tuple that the
    region only passes on, such as the state of an optimizer with its numbers. A region whose
    parameters are tensors and numbers alone is one C function."""
    if not isinstance(value, Tuple):
        return False
    outside = (v for v in mentioned(value) if v not in inside)
    return any(v in after or isinstance(v.ty, TupleType) for v in outside)


def _showing(value: Expr, shown_by: Mapping[str, Var]) -> Iterator[Var]:
    """Return the variables that show sizes which an expression needs the value of."""
    for dim in needed(value):
        for name in sorted(dim.names()):
            if name in shown_by:
                yield shown_by[name]


def _found(binding: Binding) -> frozenset[str]:
    """Return the sizes that a call finds as it runs, or that a match may take out of data."""
    match binding.value:
        case Call(_, args, attrs=attrs, type_args=type_args):
            dims = [t for t in type_args if isinstance(t, Dim)]
            known = frozenset[str]().union(
                *(dim_names(type_of(a)) for a in args),
                *(d.names() for d in (*dims, *dims_in_attrs(attrs))),
            )
            return frozenset(n for d in shown(binding.var.ty) for n in d.names()) - known
        case Match() if binding.var.ty is not None:
            return frozenset(n for d in shown(binding.var.ty) for n in d.names())
        case _:
            return frozenset()


def _belongs(binding: Binding, kernels: Mapping[str, Group]) -> bool:
    """Return whether a binding may be in a region."""
    match binding.value:
        case Call(GlobalVar(name)):
            return name in kernels
        case Call(Op() as op) as call:
            if op in _UPDATES:
                return True
            if op.effect is not Effect.NONE or isinstance(op.lowering, Host) or op in _HOST:
                return False
            if _found(binding) or is_host_number(call):
                return False
            return all(is_tensors(type_of(e)) for e in (call, *call.args))
        case Tuple(fields):
            return bool(fields) and is_tensors(type_of(binding.var))
        case TupleGet():
            return is_tensors(type_of(binding.var))
        case _:
            return False


_UPDATES: Final = frozenset({add_rows, descend_in_place, overwrite, overwrite_all, store_rows})
"""Operators that write to their operands alone."""

_HOST: Final = frozenset({to_bool, to_float, to_int})
"""Operators that give the host a number."""


def _is_free(value: Expr) -> bool:
    """Return whether a binding takes no time to speak of: a part, or a view."""
    if not isinstance(value, Call):
        return True
    return isinstance(value.callee, Op) and isinstance(value.callee.lowering, View)
