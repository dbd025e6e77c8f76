"""Groups in the making: who reads what, who comes before whom, and what fits into their loops."""

from __future__ import annotations

from dataclasses import field
from math import inf
from typing import Final, TypeAlias, final

from ...dataclass import dataclass
from ...ir.dims import ONE, Dim, product
from ...ir.expr import Call, Expr, If, Match, RefCreate, RefWrite, Var, type_of
from ...ir.op import Op
from ..contraction_axes import Product, sorts_of
from ..groups import Domain, Kind, Space, domains_of, lies_beside, space_of
from ..reading import shape_of
from .access_analysis import Look
from .nodes import Item, Role


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
    """The reads of other groups, and whether each element is read only at its own place."""
    writes: set[Var] = field(default_factory=set[Var])
    """The parameters that are overwritten."""
    products: list[Product] = field(default_factory=list["Product"])
    """The sums of products."""
    space: Space | None = None
    """The domain of the places."""
    beside: set[Var] = field(default_factory=set[Var])
    """The reductions that go along in the loop of a sum of products, of what it is made of."""
    whole_reads: set[Var] = field(default_factory=set[Var])
    """The reads of a value with an element for each place, not for each kept one."""
    has_whole: bool = False
    """Such a value is computed, and it is no reduction."""
    is_staged: bool = False
    """A reduction is of what is computed in the group itself."""
    may_fail: bool = False
    """A computed place may not exist, or an integer may be divided by 0."""
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
        return min((self._bound, *(u.order for u in users if u is not self)))

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
        self.may_fail |= other.may_fail
        self.is_needed |= other.is_needed
        self._bound = min(self._bound, other._bound)
        for user in other._users:
            self.precede(user)
        other.into = self


_MOST_USERS: Final = 16


LONGEST_ROW: Final = 128
"""A row of at most so many sums of products is one tile."""
MOST_SUMS: Final = 8
"""A group has at most this many sums of products: each keeps a tile of sums in registers."""

READS_WHOLE: Final = "a product reads whole rows or columns of it, which several programs compute"
READS_BESIDE: Final = "it needs a reduction that ends with the loop of the product"
READS_ELSEWHERE: Final = "it reads elements of it that other programs compute"

KINDS: Final = {
    Role.ELEMENT: Kind.POINTWISE,
    Role.OVERWRITE: Kind.POINTWISE,
    Role.REDUCTION: Kind.ROWS,
    Role.PRODUCT: Kind.CONTRACTION,
    Role.SCATTER: Kind.SCATTER,
    Role.ROWS: Kind.SCATTER,
}
"""The group that one value starts."""


def why_outside(value: Expr) -> str:
    """Return why what is evaluated as it stands is not part of a kernel."""
    match value:
        case Call(Op() as op):
            return f"`{op.name}` is called, not fused"
        case Call():
            return "a function is called"
        case If() | Match():
            return "a branch uses it"
        case RefWrite() | RefCreate():
            return "a ref holds it"
        case _:
            return "it is used as a whole"


def misfit(item: Item, cluster: Cluster, own: Domain) -> str | None:
    """Return why a value does not fit into the loop of a group, if it does not."""
    domain = cluster.domain
    match cluster.kind, item.role:
        case None | Kind.SCATTER, _:
            return "what is added at computed places is complete only when its kernel has ended"
        case _, Role.SCATTER | Role.ROWS:
            return "what is added at computed places has a kernel of its own"
        case Kind.CONTRACTION, Role.PRODUCT:
            return None if _may_add(item, cluster) else READS_WHOLE
        case kind, Role.PRODUCT:
            return None if kind is Kind.ROWS and _goes_along(item, cluster) else READS_WHOLE
        case Kind.CONTRACTION, Role.REDUCTION:
            return None  # see `reduced_domain`
        case Kind.ROWS, Role.REDUCTION if own.merged != domain.merged:
            return "it is reduced along other dims than the kernel's rows"
        case _, Role.REDUCTION if not domain.is_whole(own.shape):
            return "it has another number of elements than the kernel goes over"
        case _ if not domain.covers(own.shape):
            return "it has another number of elements than the kernel goes over"
        case _:
            return None


def _may_add(item: Item, cluster: Cluster) -> bool:
    """Return whether a group may have one more sum of products."""
    space = space_of_item(item)
    return space is not None and space == cluster.space and len(cluster.products) < MOST_SUMS


def why_apart(item: Item, cluster: Cluster) -> str:
    """Return why a sum of products is not in the kernel of another that reads the same."""
    space = space_of_item(item)
    if space is None or space != cluster.space:
        return "its rows or columns are others"
    if len(cluster.products) >= MOST_SUMS:
        return f"a kernel keeps at most {MOST_SUMS} sums of products in registers"
    return "the kernel has as many operators or operands as it may"


def _goes_along(item: Item, cluster: Cluster) -> bool:
    """Return whether a sum of products can be made with the reductions of a group, in one loop:
    they are all that the group goes over all places for."""
    found = _product(item)
    if cluster.has_whole or cluster.is_staged or space_of(found) is None:
        return False
    return _kept_with(found, cluster.domain) is not None


def _kept_with(found: Product, own: Domain) -> Domain | None:
    """Return the places of the result of a sum of products with those dims reduced that a reduction
    beside it does not keep."""
    space = space_of(found)
    assert space is not None
    domains = domains_of(space, shape_of(type_of(found.var)))
    return next((d for d in domains if lies_beside(own, found, d)), None)


def take_sum(item: Item, cluster: Cluster) -> None:
    """Note that a group gets a sum of products."""
    found = _product(item)
    cluster.products.append(found)
    cluster.space = space_of(found)
    if cluster.kind is Kind.ROWS:
        domain = _kept_with(found, cluster.domain)
        assert domain is not None
        kept = product(domain.kept)
        for leaf in cluster.reads:
            cluster.reads[leaf] &= product(shape_of(type_of(leaf))) == kept
        cluster.kind, cluster.domain = Kind.CONTRACTION, domain
        cluster.beside.update(m.var for m in cluster.members if m.role is Role.REDUCTION)


def reduced_domain(cluster: Cluster, own: Domain, *, of_sums: bool) -> Domain | str:
    """Return the places of a group of sums of products in which a reduction over `own` is made too:
    of what is made of the sums, or else beside them. Says why not, if it is not."""
    if not of_sums:
        found = (_kept_with(p, own) for p in cluster.products if cluster.space is not None)
        fitting = [d for d in found if d is not None and _agrees(cluster.domain, d)]
        return fitting[0] if fitting else "it goes over other places than the product sums over"
    if cluster.space is None:
        return "the kernel's sum of products has no rows and columns"
    for domain in domains_of(cluster.space, cluster.domain.shape):
        if own.merged != domain.merged or not _agrees(cluster.domain, domain):
            continue
        row = product(own.along).constant
        if row is None:
            return "only the run knows whether its rows fit into tiles of the product"
        if row > LONGEST_ROW:
            return f"its rows, of {row} elements, do not fit into tiles of the product"
        return domain
    return "it goes along other dims than the rows or columns of the product"


def _agrees(have: Domain, wanted: Domain) -> bool:
    return not have.reduced or have.merged == wanted.merged


Loop: TypeAlias = tuple[Dim, Dim]
"""How many places a loop keeps, and how many it goes over for each of them."""


def loops_of(item: Item, own: Domain) -> tuple[Loop, ...]:
    """Return the loops in which a value can be made, of those that another may be made in too."""
    match item.role:
        case Role.REDUCTION:
            return ((product(own.kept), product(own.along)),)
        case Role.PRODUCT:
            sorts = sorts_of(_product(item))
            if isinstance(sorts, str) or sorts.batch.count != ONE:
                return ()
            count = sorts.summed.count
            return ((sorts.rows.count, count), (sorts.columns.count, count))
        case _:
            return ()


def why_not_overwritten(target: Var, cluster: Cluster, look: Look) -> str | None:
    """Return why a group may not overwrite a parameter, for all that it and its value read."""
    if not look.own.get(target, True) or not cluster.reads.get(target, True):
        return "it overwrites what is read at other places"
    is_whole = cluster.domain.is_whole(shape_of(type_of(target)))
    if cluster.kind is Kind.ROWS and is_whole:
        return "it overwrites what a reduction may read"
    if not is_whole and (target in cluster.whole_reads or _is_read_on(target, cluster)):
        return "it overwrites what other programs may read"
    return None


def _is_read_on(target: Var, cluster: Cluster) -> bool:
    """Return whether what is read of a parameter for each kept place may be in what is computed for
    each place: by programs that do not wait for the one that overwrites it."""
    made = {m.var for m in cluster.members} & cluster.whole_reads
    is_kept = any(not cluster.domain.is_whole(shape_of(type_of(v))) for v in made)
    return is_kept and target in cluster.reads


def joined(other: Cluster, cluster: Cluster) -> tuple[Kind, Domain] | None:
    """Return the kind and the places of two groups made one, if that may be."""
    match other.kind, cluster.kind:
        case Kind.ROWS, Kind.ROWS if other.domain.merged == cluster.domain.merged:
            return Kind.ROWS, cluster.domain
        case Kind.POINTWISE, Kind.POINTWISE | Kind.ROWS | Kind.CONTRACTION as kind if (
            cluster.domain.covers(other.domain.shape)
        ):
            return kind, cluster.domain
        case Kind.ROWS | Kind.CONTRACTION as kind, Kind.POINTWISE if other.domain.covers(
            cluster.domain.shape
        ):
            return kind, other.domain
        case Kind.CONTRACTION, Kind.CONTRACTION if (
            other.space == cluster.space
            and len(other.products) + len(cluster.products) <= MOST_SUMS
            and _agrees(other.domain, cluster.domain if cluster.domain.reduced else other.domain)
        ):
            return Kind.CONTRACTION, cluster.domain if cluster.domain.reduced else other.domain
        case _:
            return None


def space_of_item(item: Item) -> Space | None:
    """Return the places that a sum of products is over; None where it is not one of matrices."""
    return space_of(_product(item))


def _product(item: Item) -> Product:
    assert isinstance(item.special, Product)
    return item.special
