"""Groups as functions and data: the code of each is taken out of the body it stands in.

What floats (`grouping`) is computed in each kernel function that uses it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Final, assert_never, final

from ...ir.dims import DimOp
from ...ir.expr import (
    Assumption,
    Binding,
    Call,
    Var,
    type_of,
)
from ...ir.traverse import children
from ..contraction_axes import Product
from ..groups import Group, Kind, Output, Reduced, Scattered, Special
from ..reading import Reader, bindings_of, shape_of
from ..recording import Recording
from .closed_functions import Closed, close
from .fitting import Cluster
from .grouping import Grouping
from .nodes import WRITES, Item, Role


@final
class Extraction:
    """The code of the groups of one body."""

    def __init__(
        self, grouping: Grouping, outside: Iterable[Var], assumptions: Sequence[Assumption]
    ) -> None:
        """`outside` are the variables that are used after the body."""
        self._grouping: Final = grouping
        self._assumptions: Final = assumptions
        self._affine: Final[dict[Var, bool]] = {}
        self._stored: Final[dict[Var, list[Var]]] = {}
        self._seen: Final[set[Var]] = set()
        for cluster in grouping.clusters:
            for leaf in cluster.reads:
                self._store(leaf)
        for var in outside:
            for leaf in grouping.bases(var):
                self._store(leaf)

    def _store(self, leaf: Var) -> None:
        """Note that a leaf must be stored: it is a computed value, or a part of one."""
        if leaf in self._seen:
            return
        self._seen.add(leaf)
        maker = self._grouping.maker_of(leaf)
        if maker is not None:
            self._stored.setdefault(maker, []).append(leaf)

    def kernel(self, cluster: Cluster) -> tuple[Closed, Group]:
        """Return the kernel function of a group, and the group as data."""
        members = sorted(cluster.members, key=lambda m: self._grouping.position[m.var])
        results = [v for m in members for v in self._stored.get(m.var, ())]
        wanted = [*(m.var for m in members), *results]
        inputs, inner = self._code(cluster, wanted, frozenset())
        direct = frozenset(inputs)
        if any(self._is_view_of(v, direct) for v in inputs):
            inputs, inner = self._code(cluster, wanted, direct)
        bindings = [Binding(v, self._grouping.bindings[v]) for v in inner]
        closed = close(bindings, inputs, results, self._assumptions, members[0].value.span)
        return closed, _group(cluster, members, closed)

    def _code(
        self, cluster: Cluster, wanted: Sequence[Var], direct: frozenset[Var]
    ) -> tuple[list[Var], list[Var]]:
        """Return the variables that a group reads, and those that are bound in it, in order: views
        of what is read `direct`ly as well are, so that nothing is read in two ways."""
        grouping = self._grouping
        own = {m.var for m in cluster.members}
        inputs: dict[Var, None] = {}
        inner: dict[Var, None] = {}
        pending = list(reversed(wanted))
        while pending:
            var = pending.pop()
            if var in inputs or var in inner:
                continue
            home = grouping.home_of(var) if grouping.is_leaf(var) else None
            is_inner = var in own or (
                home is cluster
                if grouping.is_leaf(var)
                else self._is_view_of(var, direct) or self._is_inside(var, cluster)
            )
            if not is_inner:
                inputs[var] = None
                continue
            inner[var] = None
            value = grouping.bindings[var]
            operands = (value,) if isinstance(value, Var) else children(value)
            pending += (v for v in reversed(operands) if isinstance(v, Var))
        position = grouping.position
        return list(inputs), sorted(inner, key=position.__getitem__)

    def _is_view_of(self, var: Var, read: frozenset[Var]) -> bool:
        """Return whether a variable is a view of one of those that are read, through views
        alone."""
        grouping = self._grouping
        while grouping.roles.get(var) is Role.VIEW:
            operand = next(iter(children(grouping.bindings[var])), None)
            if not isinstance(operand, Var):
                return False
            if operand in read:
                return True
            var = operand
        return False

    def _is_inside(self, var: Var, cluster: Cluster) -> bool:
        """Return whether a value that is no leaf is computed in a group: all but views of what is
        stored elsewhere whose places take divisions to find."""
        grouping = self._grouping
        if grouping.roles[var] is not Role.VIEW:
            return True
        bases = grouping.bases(var)
        if any(grouping.home_of(b) is cluster for b in bases) or not self._shows_leaf(var):
            return True
        if var not in self._affine:
            record = Recording(is_leaf=grouping.is_leaf)
            index = record.places.index("i", shape_of(type_of(var)))
            Reader(grouping.bindings, record).element(var, index)
            dims = (d for _, at in record.reads for d in at)
            atoms = (a for d in dims for m, _ in d.terms for a in m)
            self._affine[var] = not any(isinstance(a, DimOp) for a in atoms)
        return self._affine[var]

    def _shows_leaf(self, var: Var) -> bool:
        """Return whether a view is one of a leaf, through views alone."""
        grouping = self._grouping
        while not grouping.is_leaf(var):
            value = grouping.bindings[var]
            if grouping.roles[var] is not Role.VIEW or not isinstance(value, Call):
                return False
            operand = value.args[0]
            if not isinstance(operand, Var):
                return False
            var = operand
        return True


def _group(cluster: Cluster, members: Sequence[Item], closed: Closed) -> Group:
    """Return a group over the variables of its function."""
    function, copies = closed.function, closed.copies
    values = bindings_of(function.body)
    outputs: list[Output] = []
    special: list[Special] = []
    beside: list[Reduced] = []
    for member in members:
        var = copies[member.var]
        assert isinstance(var, Var)
        call = values[var]
        if not isinstance(call, Call):
            continue
        if member.role in WRITES:
            position = next(i for i, p in enumerate(function.params) if p is call.args[0])
            outputs.append(Output(call.args[-1], None, position))
        if member.special is not None:
            special.append(_renamed(member.special, var, call))
            if member.var in cluster.beside and isinstance(special[-1], Reduced):
                beside.append(special[-1])
    outputs += (Output(copies[r], i, None) for i, r in enumerate(closed.results))
    reductions = tuple(s for s in special if isinstance(s, Reduced) and s not in beside)
    domain = None
    if cluster.kind is Kind.ROWS:
        domain = reductions[0].domain
    elif cluster.kind is Kind.CONTRACTION and (reductions or beside):
        domain = cluster.domain
    assert cluster.kind is not None
    return Group(
        cluster.kind,
        function,
        tuple(outputs),
        domain,
        reductions,
        tuple(s for s in special if isinstance(s, Product)),
        tuple(beside),
        next((s for s in special if isinstance(s, Scattered)), None),
        may_fail=cluster.may_fail,
    )


def _renamed(special: Special, var: Var, call: Call) -> Special:
    """Return a loop with the variable and the call that a function has of it."""
    match special:
        case Reduced():
            return replace(special, var=var, call=call, operand=call.args[0])
        case Product():
            return replace(special, var=var, call=call, operands=call.args)
        case Scattered():
            return replace(special, var=var, call=call)
        case _:
            assert_never(special)
