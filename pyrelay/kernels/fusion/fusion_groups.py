"""Groups in the making: who reads what, and who comes before whom."""

from __future__ import annotations

from dataclasses import dataclass, field
from math import inf
from typing import Final, final

from ...ir.expr import Var
from ..groups import Domain, Kind, Product, Space
from .nodes import Item


@final
@dataclass(slots=True, eq=False)
class Cluster:
    """A group in the making, or (`kind` None) something that is evaluated as it stands."""

    order: int
    kind: Kind | None
    domain: Domain
    members: list[Item] = field(default_factory=list[Item])
    calls: int = 0
    reads: dict[Var, bool] = field(default_factory=dict[Var, bool])
    """What is read of other groups, and whether each element only where it belongs."""
    writes: set[Var] = field(default_factory=set[Var])
    """The parameters that are overwritten."""
    products: list[Product] = field(default_factory=list["Product"])
    """The sums of products."""
    space: Space | None = None
    """What they are over."""
    beside: set[Var] = field(default_factory=set[Var])
    """The reductions that go along in the loop of a sum of products, of what it is made of."""
    whole_reads: set[Var] = field(default_factory=set[Var])
    """What is read for a value with an element for each place, not for each kept one."""
    has_whole: bool = False
    """Such a value is computed, and it is no reduction."""
    is_staged: bool = False
    """A reduction is of what is computed in the group itself."""
    is_needed: bool = False
    """Something in it may be used by the bodies of what is evaluated as it stands."""
    into: Cluster | None = None
    """The group of which this one has become a part."""
    _users: dict[Cluster, None] = field(default_factory=dict["Cluster", None])
    _bound: float = inf

    @property
    def final(self) -> Cluster:
        """The group of which this one is a part now."""
        found = self
        while found.into is not None:
            found = found.into
        return found

    @property
    def first_user(self) -> float:
        """The order of the first group that must come after this one; a lower bound of it where
        there are many."""
        users = (user.final for user in self._users)
        return min((u.order for u in users if u is not self), default=self._bound)

    def precede(self, user: Cluster) -> None:
        """Note that a group must come after this one."""
        self._users[user] = None
        if len(self._users) > _MOST_USERS:
            self._bound = min(self._bound, self.first_user)
            self._users.clear()

    def absorb(self, other: Cluster) -> None:
        """Take over the members of a group of lower order, and who comes after it."""
        self.members = [*other.members, *self.members]
        self.calls += other.calls
        self.products += other.products
        self.space = self.space or other.space
        for leaf, own in other.reads.items():
            self.reads[leaf] = self.reads.get(leaf, True) and own
        self.writes |= other.writes
        self.beside |= other.beside
        self.whole_reads |= other.whole_reads
        self.has_whole |= other.has_whole
        self.is_staged |= other.is_staged
        self.is_needed |= other.is_needed
        self._bound = min(self._bound, other._bound)
        for user in other._users:
            self.precede(user)
        other.into = self


_MOST_USERS: Final = 16
