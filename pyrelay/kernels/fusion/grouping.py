"""Which values of a body are computed together: a greedy walk over its bindings, in order.

Every value that is computed is *placed* in a group, or *floats*: it is then computed anew wherever
it is used, because that is cheaper than to store it. A group has an `order`, and reads only from
groups of lower order; so a value may join the group that makes its last operand, or any later one,
and nothing is ever searched for cycles. What fusion asks of a value is found by reading its body
once (`reading`), so the walk is linear in the number of bindings.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import replace
from math import inf
from typing import Final, final

from ...ir.dims import Dim, product
from ...ir.effect import Effects
from ...ir.expr import Expr, RefRead, Var, type_of
from ...ir.op import Effect
from ...ir.types import SizeType, TensorType
from ..groups import Domain, Kind, Space
from ..outlined import Remark, SeparatedRemark, StoredRemark
from ..reading import Unreadable, shape_of
from .access_analysis import Look, is_cheaper_again, look_at, own_domain
from .fitting import (
    KINDS,
    READS_BESIDE,
    READS_ELSEWHERE,
    READS_WHOLE,
    Cluster,
    Loop,
    joined,
    loops_of,
    misfit,
    reduced_domain,
    space_of_item,
    take_sum,
    why_apart,
    why_not_overwritten,
    why_outside,
)
from .nodes import (
    COMPUTED,
    WRITES,
    Item,
    Role,
    has_bodies,
    is_check,
    may_stop,
    mentioned,
    target_of,
    tuples_around,
    uses_of,
    with_whole_tuples,
)
from .overwrites import Overwrites, UpdateOrder, known_places

MOST_CALLS: Final = 64
"""A group has at most this many operator calls."""
MOST_OPERANDS: Final = 24
"""A group reads at most this many tensors."""


@final
class Grouping:
    """The groups of one body. `clusters` gives them, and what is no group, in order."""

    def __init__(self, items: Sequence[Item], needed: Iterable[Var], effects: Effects) -> None:
        """`needed` are the variables that are used after the items."""
        needed = tuple(needed)
        items = with_whole_tuples(items, needed)
        self._stored: Final[list[StoredRemark]] = []
        self._separated: Final[list[SeparatedRemark]] = []
        self._products: Final[dict[Var, tuple[Item, Cluster]]] = {}
        self.home: Final[dict[Var, Cluster]] = {}
        self.bindings: Final[dict[Var, Expr]] = {i.var: i.value for i in items}
        self.roles: Final = {item.var: item.role for item in items}
        self.position: Final = {item.var: place for place, item in enumerate(items)}
        self.uses: Final = uses_of(items, needed)
        self._effects: Final = effects
        self._orders = 0
        self._updates: Final = UpdateOrder()
        self._all: Final[list[Cluster]] = []
        self._siblings: Final[dict[tuple[Var, Dim | Space | Loop | None], Cluster]] = {}
        self._readers: Final[dict[Var, list[Cluster]]] = {}
        self._written: Final[dict[Var, Cluster]] = {}
        self._branching: Final[list[int]] = []
        """The orders of what has bodies of its own, which may use anything."""
        self.overwritten: Final = Overwrites(items, self.bindings)
        self._known_places: Final = known_places(items)
        for item in items:
            if item.role is Role.OPAQUE:
                self._opaque(item)
            elif item.role in COMPUTED:
                self._computed(item)

    @property
    def remarks(self) -> tuple[Remark, ...]:
        """Why values are stored that something here uses, and why products are in two kernels."""
        homes = ((s, self.home_of(s.var)) for s in self._stored)
        made = [(s, home) for s, home in homes if home is not None and home.kind is not None]
        stored = (s for s, home in made if self.home_of(s.user) is not home)
        return (*stored, *self._separated)

    @property
    def clusters(self) -> list[Cluster]:
        """Everything that is evaluated, in an order in which it may be."""
        return sorted((c for c in self._all if c.into is None), key=lambda c: c.order)

    def is_leaf(self, var: Var) -> bool:
        """Return whether a variable is computed before whoever reads it: it does not float."""
        around = tuples_around(var, self.bindings)
        return any(v in self.home or v not in self.bindings for v in around)

    def maker_of(self, leaf: Var) -> Var | None:
        """Return the placed value that a leaf is, or is a part of; None for a value from
        outside."""
        return next((v for v in tuples_around(leaf, self.bindings) if v in self.home), None)

    def home_of(self, leaf: Var) -> Cluster | None:
        """Return the group that computes a leaf; None for a value from outside."""
        maker = self.maker_of(leaf)
        return None if maker is None else self.home[maker].final

    def bases(self, var: Var) -> tuple[Var, ...]:
        """Return the leaves that a variable shows, or is put together of."""
        found: dict[Var, None] = {}
        pending = [var]
        while pending:
            current = pending.pop()
            if self.is_leaf(current):
                found[current] = None
            else:
                pending += reversed(mentioned(self.bindings[current]))
        return tuple(found)

    # What is evaluated as it stands.

    def _opaque(self, item: Item) -> None:
        cluster = self._new(None, Domain((), ()))
        cluster.members.append(item)
        leaves = [leaf for var in mentioned(item.value) for leaf in self.bases(var)]
        for leaf in leaves:
            self._use(leaf, cluster, own=False)
            self._stored.append(StoredRemark(leaf, item.var, why_outside(item.value)))
        self.home[item.var] = cluster
        branches = has_bodies(item.value)
        self.overwritten.evaluated(item, leaves)
        if branches:
            self._branching.append(cluster.order)
        is_read = isinstance(item.value, RefRead)
        is_effect = branches or self._effects.of(item.value) is not Effect.NONE
        if (is_effect and not is_read) or may_stop(item.value, {}):
            self._updates.stop_at(cluster)
        elif is_read or not all(isinstance(v.ty, TensorType | SizeType) for v in leaves):
            # It may see what was overwritten in ways that are not followed.
            self._updates.come_before(cluster)

    def _new(self, kind: Kind | None, domain: Domain) -> Cluster:
        cluster = Cluster(self.next_order(), kind, domain)
        self._all.append(cluster)
        return cluster

    def next_order(self) -> int:
        """Return an order after all groups that there are."""
        self._orders += 1
        return self._orders

    def first_user(self, cluster: Cluster) -> float:
        """Return the lowest order that must come after a group."""
        place = bisect_right(self._branching, cluster.order)
        if not cluster.is_needed or place == len(self._branching):
            return cluster.first_user
        return min(cluster.first_user, self._branching[place])

    def _use(self, leaf: Var, cluster: Cluster, *, own: bool) -> None:
        """Note that a group reads a leaf."""
        home = self.home_of(leaf)
        if home is cluster:
            return
        cluster.reads[leaf] = cluster.reads.get(leaf, True) and own
        if home is not None:
            home.precede(cluster)
        writer = self._writer(leaf)
        if writer is not None and writer is not cluster:
            writer.precede(cluster)
        for target in self.overwritten.seen_in(leaf):
            self._readers.setdefault(target, []).append(cluster)
            if target is not leaf:
                cluster.reads[target] = False

    def _writer(self, leaf: Var) -> Cluster | None:
        found = self._written.get(leaf)
        return None if found is None else found.final

    # What is computed.

    def _computed(self, item: Item) -> None:
        try:
            look = self._look(item, own_domain(item))
        except Unreadable:  # it takes a tuple apart that something else makes whole
            self._opaque(replace(item, role=Role.OPAQUE))
            return
        if is_check(item):
            self._check(item, look)
        elif not self._floats(item, look):
            self._place(item, look)

    def _check(self, item: Item, look: Look) -> None:
        """Put a check into a group of its own, which all that overwrites comes after."""
        cluster = self._new(KINDS[item.role], look.domain)
        self._add(item, cluster, replace(look, may_fail=True))
        cluster.calls = MOST_CALLS

    def _floats(self, item: Item, look: Look) -> bool:
        """Return whether a value is better computed again wherever it is used, and may be: nothing
        is written in between that it is made of."""
        last = self.uses[item.var].last
        if self.overwritten.come_before(last, look.own):
            return False
        if look.may_fail and self.overwritten.is_made_of(item.var):
            return False
        return is_cheaper_again(item, look, self.uses, self._is_stored)

    def _is_stored(self, leaf: Var) -> bool:
        home = self.home_of(leaf)
        return home is None or home.kind is None or self.uses[leaf].outside

    def _place(self, item: Item, look: Look) -> None:
        """Put a value into the group of an operand, beside others that read the same, or into a
        group of its own."""
        homes = self._homes(look)
        makers = sorted((h for h in homes if h.kind is not None), key=lambda h: -h.order)
        near = [s for s in self._near(item, look) if s not in homes]
        effect = self._effect_order(item, look)
        before = {**homes, **dict.fromkeys(self._mentioned(item))}
        for cluster in (*makers[:_TRIED], *near[:_TRIED]):
            after = max((h.order for h in before if h is not cluster), default=0)
            if not self._join(item, cluster, max(after, effect), look):
                continue
            for other in makers:
                if other is not cluster and other.order < cluster.order:
                    self._merge(other, cluster)
            return
        if item.role is Role.PRODUCT:
            self._note_apart(item, look)
        self._add(item, self._new(KINDS[item.role], look.domain), look)

    def _note_apart(self, item: Item, look: Look) -> None:
        """Note why a sum of products is not with the last one that reads the same, if neither needs
        the other."""
        homes = self._homes(look)
        after = max((h.order for h in homes), default=0)
        for leaf in look.own:
            if leaf not in self._products:
                continue
            other, cluster = self._products[leaf]
            if cluster.final not in homes and self.first_user(cluster.final) > after:
                why = why_apart(item, cluster.final)
                self._separated.append(SeparatedRemark(other.var, item.var, leaf, why))
                return

    def _homes(self, look: Look) -> dict[Cluster, None]:
        """Return the values that must be evaluated before a value."""
        found: dict[Cluster, None] = {}
        for leaf in look.own:
            for before in (self.home_of(leaf), self._writer(leaf)):
                if before is not None:
                    found[before] = None
        return found

    def _mentioned(self, item: Item) -> list[Cluster]:
        """Return what computes the operands of a value, and of what floats in it: a kernel takes
        them as parameters even where it reads no element of them."""
        leaves = (leaf for var in mentioned(item.value) for leaf in self.bases(var))
        return [home for leaf in leaves if (home := self.home_of(leaf)) is not None]

    def _effect_order(self, item: Item, look: Look) -> int:
        """Return the order that a value comes after for the effects of others. What overwrites
        comes after all that reads there, and where the program may stop; what may fail comes after
        updates."""
        if item.role not in WRITES:
            return self._updates.last_update if look.may_fail else 0
        readers = (c.final.order for c in self._readers.get(target_of(item), ()))
        return max((self._updates.last_stop(), *readers))

    def _near(self, item: Item, look: Look) -> list[Cluster]:
        """Return groups that read the same tensors over as many places, the latest first; for a sum
        of products those with sums over the same places."""
        key = _space(item, look.domain)
        found: dict[Cluster, None] = {}
        for leaf in look.own:
            siblings = (self._siblings.get((leaf, k)) for k in (key, *loops_of(item, look.domain)))
            found |= {s.final: None for s in siblings if s is not None}
        return sorted(found, key=lambda c: -c.order)

    def _join(self, item: Item, cluster: Cluster, after: int, look: Look) -> bool:
        """Put a value into a group if it may be there; else note why not."""
        # What overwrites may be in the last group that reads.
        is_last = cluster.order > after or (item.role is Role.OVERWRITE and cluster.order == after)
        if not is_last and self.first_user(cluster) < inf:
            found = "something needs it before its other operands are there"
        elif (cluster.may_fail and item.role in WRITES) or (look.may_fail and cluster.writes):
            found = "it may fail, which must not leave a part of an update"
        elif cluster.calls + look.calls > MOST_CALLS or len(cluster.reads) >= MOST_OPERANDS:
            found = f"its kernel has {MOST_CALLS} operators or {MOST_OPERANDS} operands already"
        else:
            found = self._fits(item, cluster, look)
        if isinstance(found, str):
            used = next((v for v in look.own if self.home_of(v) is cluster), None)
            if used is not None:
                self._stored.append(StoredRemark(used, item.var, found))
            return False
        if not is_last:
            cluster.order = self.next_order()
        self._add(item, cluster, found)
        return True

    def _fits(self, item: Item, cluster: Cluster, look: Look) -> Look | str:
        """Return how a value is computed over the places of a group, or why it is not."""
        why = misfit(item, cluster, look.domain)
        if why is not None:
            return why
        found = self._look_in(item, cluster, look)
        if isinstance(found, str):
            return found
        for leaf, own in found.own.items():
            if not own and self.home_of(leaf) is cluster:
                return READS_WHOLE if item.role is Role.PRODUCT else READS_ELSEWHERE
            if leaf in cluster.writes:
                return "it reads what is overwritten there"
        if cluster.beside and self._waits_for_beside([*cluster.members, item], cluster):
            return READS_BESIDE
        if item.role is not Role.OVERWRITE:
            return found
        return why_not_overwritten(target_of(item), cluster, found) or found

    def _waits_for_beside(self, members: Sequence[Item], *clusters: Cluster) -> bool:
        """Return whether what has an element for each place, or is made of sums of products, is
        made of a reduction that goes along in the loop of these."""
        beside = {var for c in clusters for var in c.beside}
        sums = {m.var for m in members if m.role is Role.PRODUCT}
        (domain, *_) = (c.domain for c in clusters if c.kind is Kind.CONTRACTION)
        for member in members:
            leaves = {leaf for var in mentioned(member.value) for leaf in self.bases(var)}
            if not sums.isdisjoint(leaves):
                sums.add(member.var)
            if not beside.isdisjoint(leaves):
                beside.add(member.var)
                if member.var in sums or domain.is_whole(own_domain(member).shape):
                    return True
        return False

    def _look_in(self, item: Item, cluster: Cluster, look: Look) -> Look | str:
        """Return what a value is made of at the places of a group; why it has none there."""
        domain = cluster.domain
        if item.role is Role.REDUCTION and cluster.kind is Kind.POINTWISE:
            domain = look.domain
        elif item.role is Role.REDUCTION and cluster.kind is Kind.CONTRACTION:
            made = any(self.home_of(leaf) is cluster for leaf in look.own)
            reduced = reduced_domain(cluster, look.domain, of_sums=made)
            if isinstance(reduced, str):
                return reduced
            if not made:  # it goes over other places than the result has
                return replace(look, own=dict.fromkeys(look.own, False))
            domain = reduced
        return look if look.domain == domain else self._look(item, domain)

    def _look(self, item: Item, domain: Domain) -> Look:
        return look_at(item, domain, self.bindings, self.is_leaf, self._known_places)

    def _add(self, item: Item, cluster: Cluster, look: Look) -> None:
        cluster.members.append(item)
        cluster.calls += look.calls
        if item.role is Role.PRODUCT:
            take_sum(item, cluster)
        elif item.role is Role.REDUCTION:
            self._take_reduction(item, cluster, look)
        elif cluster.domain.is_whole(own_domain(item).shape) and item.role in _PLACED:
            cluster.has_whole = True
            cluster.whole_reads.update(look.own)
        cluster.is_needed |= self.uses[item.var].outside
        self.home[item.var] = cluster
        for home in self._mentioned(item):
            if home is not cluster:
                home.precede(cluster)
        count, key = product(look.domain.shape), _space(item, look.domain)
        loops = loops_of(item, look.domain)
        for leaf, own in look.own.items():
            self._use(leaf, cluster, own=own)
            self._siblings.update({(leaf, loop): cluster for loop in loops})
            if item.role is Role.PRODUCT:
                self._products[leaf] = item, cluster
            if item.role is Role.PRODUCT or product(shape_of(type_of(leaf))) == count:
                self._siblings[leaf, key] = cluster
        self._note_effect(item, cluster, look)

    def _note_effect(self, item: Item, cluster: Cluster, look: Look) -> None:
        if item.role in WRITES:
            self._overwrites(target_of(item), cluster)
        elif look.may_fail:
            cluster.may_fail = True
            self._updates.stop_at(cluster)

    def _take_reduction(self, item: Item, cluster: Cluster, look: Look) -> None:
        """Note that a group gets a reduction, which may decide its kind and its places."""
        made = any(self.home_of(leaf) is cluster for leaf in look.own)
        cluster.is_staged |= made
        if cluster.kind is Kind.POINTWISE:
            cluster.kind, cluster.domain = Kind.ROWS, look.domain
        elif cluster.kind is Kind.CONTRACTION:
            reduced = reduced_domain(cluster, own_domain(item), of_sums=made)
            assert isinstance(reduced, Domain)
            cluster.domain = reduced
            cluster.beside.update(() if made else (item.var,))

    def _overwrites(self, target: Var, cluster: Cluster) -> None:
        """Note that a parameter changes: whoever read it stays before, whoever reads it comes
        after."""
        for reader in self._readers.get(target, ()):
            if reader.final is not cluster:
                reader.final.precede(cluster)
        cluster.reads.setdefault(target, True)
        cluster.writes.add(target)
        self._written[target] = cluster
        self._updates.add(cluster)

    def _merge(self, other: Cluster, cluster: Cluster) -> None:
        """Make one group of two, the other the earlier, if nothing stands in the way."""
        joint = joined(other, cluster)
        if joint is None or self.first_user(other) < cluster.order or other.writes:
            return
        if other.may_fail and cluster.writes:
            return
        inner = {v: own for v, own in cluster.reads.items() if self.home_of(v) is other}
        reads = {v: own for v, own in cluster.reads.items() if v not in inner}
        if not all(inner.values()) or any(not other.reads.get(v, True) for v in cluster.writes):
            return
        if (other.beside or cluster.beside) and self._waits_for_beside(
            [*other.members, *cluster.members], other, cluster
        ):
            return
        if joint[1].reduced and not cluster.writes.isdisjoint(other.whole_reads):
            return
        if other.calls + cluster.calls > MOST_CALLS or len({*reads, *other.reads}) > MOST_OPERANDS:
            return
        cluster.kind, cluster.domain = joint
        cluster.reads = reads
        cluster.absorb(other)


_TRIED: Final = 4
"""How many groups of each sort are looked at for a value."""


_PLACED: Final = (Role.ELEMENT, Role.OVERWRITE)
"""The roles of what is computed for each place by itself."""


def _space(item: Item, domain: Domain) -> Dim | Space | None:
    """Return what groups that may be one have in common: how many places they go over, or what
    their sums of products are over."""
    return space_of_item(item) if item.role is Role.PRODUCT else product(domain.shape)
