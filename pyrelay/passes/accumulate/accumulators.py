"""Parameters of recursive functions that only ever collect a sum.

An *accumulator* is a parameter to which terms are added, and which is otherwise only passed on: to
the same parameter of the next call, and back as a result. What is in an accumulator is never looked
at until the recursion is left, so the terms may as well be kept, and added up then.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from typing import final

from ...analysis.dim_availability import needed, shown, uncovered
from ...dataclass import dataclass
from ...ir.dims import Dim, DimVar
from ...ir.expr import Call, Function, GlobalVar, Var, type_of
from ...ir.traverse import post_order
from ...ir.types import TensorType, TupleType, Type, is_float
from ..base import Opaque
from .flow import Leaf, Path, SumFlow, flow_of
from .terms import SUMMING, SumForm, Term, TermForm, common_forms, term_of


@final
@dataclass(frozen=True, slots=True, eq=False)
class Accumulator:
    """One accumulator: everything that it goes through, and its terms, all of one kind."""

    leaves: frozenset[Leaf]
    kind: SumForm
    terms: Mapping[Var, tuple[Var, Term]]
    """For each sum the variable of the sum before it, and the term."""


def accumulators_of(
    group: Mapping[str, Function],
    escaping: AbstractSet[str],
    opaque: Opaque,
    wants_rows: Callable[[str, Path], bool],
) -> list[Accumulator]:
    """Return the accumulators of functions; none share a leaf. Those that are `escaping` may be
    called from anywhere. Where an operator that sums are made with is `opaque`, there are none.
    Rows that are added to a table in place are put off only where `wants_rows` says of a function
    and a path that its callers take this part of its result as rows."""
    if any(map(opaque, SUMMING)):
        return []
    flow = flow_of(group)
    for name in escaping & group.keys():
        flow.used.add(name)
        flow.made.update(group[name].params)
    found: list[Accumulator] = []
    taken: set[Leaf] = set()
    for function in group.values():
        for leaf, ty in parameter_leaves(function):
            is_sum = isinstance(ty, TensorType) and is_float(ty.dtype)
            if not is_sum or leaf in taken:
                continue
            accumulator = _accumulator(flow, leaf, ty, wants_rows)
            if accumulator is not None and _are_determined(group, taken | accumulator.leaves):
                found.append(accumulator)
                taken |= accumulator.leaves
    return found


def _are_determined(group: Mapping[str, Function], gone: set[Leaf] | frozenset[Leaf]) -> bool:
    """Return whether no function needs a size that only parameters which become lists show."""
    for function in group.values():
        leaves = list(parameter_leaves(function))
        lost = {dim for leaf, ty in leaves if leaf in gone for dim in shown(ty)}
        left = {dim for leaf, ty in leaves if leaf not in gone for dim in shown(ty)}
        if lost <= left:
            continue
        wanted = {dim for node in post_order(function.body) for dim in needed(node)}
        for dim in wanted:
            missing = set(uncovered(dim, left))
            if missing & lost or (missing and dim in lost):
                return False
    return True


def worth_it(accumulators: list[Accumulator], *, of_loop: bool) -> list[Accumulator]:
    """Return the accumulators that save something: products, but for those `of_loop`s that a
    program writes, and rows of tables, and the sums of what these keep in any case. To keep small
    tensors only to add them later takes longer than to add them."""
    kept = {
        part
        for accumulator in accumulators
        if accumulator.kind.is_of_rows
        or (accumulator.kind.form is TermForm.PRODUCT and not of_loop)
        for _, (_, parts) in accumulator.terms.values()
        for part in parts
    }
    return [
        accumulator
        for accumulator in accumulators
        if all(kept.issuperset(parts) for _, (_, parts) in accumulator.terms.values())
    ]


def parameter_leaves(function: Function) -> Iterator[tuple[Leaf, Type]]:
    """Yield the parameters of a function, or the parts of those that are tuples, with their
    types."""
    pending: list[tuple[Leaf, Type]] = [((p, ()), type_of(p)) for p in reversed(function.params)]
    while pending:
        (holder, path), ty = pending.pop()
        if not isinstance(ty, TupleType):
            yield (holder, path), ty
            continue
        fields = list(enumerate(ty.fields))
        pending += [((holder, (*path, i)), field) for i, field in reversed(fields)]


def _accumulator(
    flow: SumFlow, start: Leaf, ty: Type, wants_rows: Callable[[str, Path], bool]
) -> Accumulator | None:
    """Return the accumulator that starts at a parameter or a part of one, if it is one."""
    leaves, sums = _reached(flow, start)
    if not sums or any(holder in flow.used for holder, _ in leaves):
        return None
    if not all(_is_fed(flow, leaf, leaves) for leaf in leaves):
        return None
    terms: dict[Var, tuple[Var, Term]] = {}
    for total in sums:
        before = [t for t in flow.terms[total] if (t, ()) in leaves]
        added = next(t for t in flow.terms[total] if (t, ()) not in leaves)
        if isinstance(added, Call) and not _gives_rows(leaves, wants_rows):
            return None
        term = term_of(added, flow.defined) if added.ty == ty else None
        if term is None or not isinstance(before[0], Var):
            return None
        terms[total] = before[0], term
    for kind in common_forms([term for _, term in terms.values()]):
        names = frozenset[str]().union(*(d.names() for ty in kind.types for d in ty.shape))
        if _is_entered_once(flow, leaves, names) and all(
            _keeps_sizes(flow, call, leaves, names) for call in flow.calls
        ):
            return Accumulator(frozenset(leaves), kind, terms)
    return None


def _gives_rows(leaves: Mapping[Leaf, None], wants_rows: Callable[[str, Path], bool]) -> bool:
    """Return whether the callers of the functions that give a sum take it as rows."""
    return all(wants_rows(holder, path) for holder, path in leaves if isinstance(holder, str))


def _reached(flow: SumFlow, start: Leaf) -> tuple[dict[Leaf, None], dict[Var, None]]:
    """Return everything that a value reaches, in order, and the sums among that."""
    leaves: dict[Leaf, None] = {start: None}
    sums: dict[Var, None] = {}
    pending = [start]
    while pending:
        holder, path = pending.pop()
        next_: list[Leaf] = []
        for step in flow.steps_from.get(holder, ()):
            there = step.forward(path)
            next_ += () if there is None else ((step.target, there),)
        if isinstance(holder, Var) and not path:
            for total in flow.sums_of.get(holder, ()):
                sums[total] = None
                next_.append((total, ()))
        for leaf in next_:
            if leaf not in leaves:
                leaves[leaf] = None
                pending.append(leaf)
    return leaves, sums


def _is_fed(flow: SumFlow, leaf: Leaf, leaves: Mapping[Leaf, None]) -> bool:
    """Return whether all that comes to a leaf, inside the group, comes from the accumulator."""
    holder, path = leaf
    if isinstance(holder, Var) and holder in flow.terms:
        return sum((t, ()) in leaves for t in flow.terms[holder]) == 1
    found = False
    for step in flow.steps_to.get(holder, ()):
        there = step.backward(path)
        if there is None:
            continue
        if (step.source, there) not in leaves:
            return False
        found = True
    is_param = any(holder in f.params for f in flow.group.values())
    return holder not in flow.made and (found or is_param)


def _keeps_sizes(
    flow: SumFlow, call: Call, leaves: Mapping[Leaf, None], names: frozenset[str]
) -> bool:
    """Return whether a call that passes on a sum of the accumulator passes on its sizes by their
    names."""
    assert isinstance(call.callee, GlobalVar)
    function = flow.group[call.callee.name]
    if all(leaf not in leaves for leaf, _ in parameter_leaves(function)):
        return True
    given = zip(function.type_params, call.type_args, strict=True)
    sizes = {p.name: a for p, a in given if isinstance(p, DimVar)}
    return all(sizes.get(name) == Dim.of(name) for name in names)


def _is_entered_once(flow: SumFlow, leaves: Mapping[Leaf, None], names: frozenset[str]) -> bool:
    """Return whether each function that gives a sum of the accumulator takes one, and knows its
    sizes."""
    for name, function in flow.group.items():
        params = [leaf for leaf, _ in parameter_leaves(function) if leaf in leaves]
        gives = any(holder == name for holder, _ in leaves)
        known = {p.name for p in function.type_params if isinstance(p, DimVar)}
        if len(params) != 1 and (params or gives):
            return False
        if params and not names <= known:
            return False
    return True
