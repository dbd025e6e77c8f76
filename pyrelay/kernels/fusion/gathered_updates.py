"""Updates last in a body, so that all else of a step has run when the first parameter changes."""

from __future__ import annotations

from math import inf

from ...ir.dims import Dim, product
from ...ir.expr import Var
from ..groups import Kind
from .fitting import Cluster
from .grouping import MOST_CALLS, Grouping
from .nodes import Role, mentioned, target_of


def gather_updates(grouping: Grouping) -> None:
    """Put updates that nobody reads afterwards last; plain ones go into one launch."""
    gathered: Cluster | None = None
    for cluster in grouping.clusters:
        if not cluster.writes or not _is_end(cluster, grouping):
            continue
        cluster.order = grouping.next_order()
        if cluster.kind is not Kind.POINTWISE:
            continue
        if gathered is not None and cluster.calls + gathered.calls <= MOST_CALLS:
            is_one = _count(gathered) == _count(cluster) and gathered.kind is Kind.POINTWISE
            if not is_one and not all(_has_updates_apart(c, grouping) for c in (gathered, cluster)):
                continue
            cluster.kind = Kind.POINTWISE if is_one else Kind.UPDATES
            cluster.absorb(gathered)
        gathered = cluster


def _is_end(cluster: Cluster, grouping: Grouping) -> bool:
    """Return whether nothing uses what is computed in a group."""
    outside = (grouping.uses[m.var].outside for m in cluster.members)
    return grouping.first_user(cluster) == inf and not any(outside)


def _count(cluster: Cluster) -> Dim:
    return product(cluster.domain.shape)


def _has_updates_apart(cluster: Cluster, grouping: Grouping) -> bool:
    """Return whether no parameter that a group overwrites is read for another one, which a pass of
    its own would find changed."""
    for member in cluster.members:
        if member.role is not Role.OVERWRITE:
            continue
        others = cluster.writes - {target_of(member)}
        seen: set[Var] = set()
        pending = [*mentioned(member.value)] if others else []
        while pending:
            var = pending.pop()
            if not others.isdisjoint(grouping.overwritten.seen_in(var)):
                return False
            is_other = grouping.is_leaf(var) and grouping.home_of(var) is not cluster
            if var not in seen and not is_other:
                seen.add(var)
                pending += mentioned(grouping.bindings[var])
    return True
