"""Whether a value fits into the loop of a group, or a group into another's, and why not."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ...ir.expr import Call, Expr, If, Match, RefCreate, RefWrite
from ...ir.op import Op
from .groups import Domain, Kind, Space, product_of, space_of
from .items import Item, Role

if TYPE_CHECKING:
    from .clusters import Cluster

MOST_SUMS: Final = 8
"""A group has at most this many sums of products: each keeps a tile of sums in registers."""

READS_WHOLE: Final = "a product reads whole rows or columns of it, which several programs compute"
READS_ELSEWHERE: Final = "it reads elements of it that other programs compute"

KINDS: Final = {
    Role.ELEMENT: Kind.POINTWISE,
    Role.OVERWRITE: Kind.POINTWISE,
    Role.REDUCTION: Kind.ROWS,
    Role.PRODUCT: Kind.CONTRACTION,
    Role.SCATTER: Kind.SCATTER,
}
"""What a group is that one value starts."""


def why_outside(value: Expr) -> str:
    """Give why what is evaluated as it stands is not part of a kernel."""
    match value:
        case Call(Op() as op):
            return f"`{op.name}` is called, not fused"
        case Call():
            return "a function is called"
        case If() | Match():
            return "a branch uses it"
        case RefWrite() | RefCreate():
            return "a cell holds it"
        case _:
            return "it is used as a whole"


def misfit(item: Item, cluster: Cluster, own: Domain) -> str | None:
    """Give why a value does not fit into the loop of a group, if it does not."""
    domain = cluster.domain
    match cluster.kind, item.role:
        case None | Kind.SCATTER, _:
            return "what is added at computed places is complete only when its kernel has ended"
        case _, Role.SCATTER:
            return "what is added at computed places has a kernel of its own"
        case kind, Role.PRODUCT:
            fits = kind is Kind.CONTRACTION and _may_add(item, cluster)
            return None if fits else READS_WHOLE
        case Kind.CONTRACTION, Role.REDUCTION:
            return "a sum of products is not reduced in its own kernel"
        case Kind.ROWS, Role.REDUCTION if own.merged != domain.merged:
            return "its reductions go over other dims"
        case _, Role.REDUCTION if not domain.is_whole(own.shape):
            return "it goes over another number of places"
        case _ if not domain.covers(own.shape):
            return "it goes over another number of places"
        case _:
            return None


def _may_add(item: Item, cluster: Cluster) -> bool:
    """Tell whether a group may have one more sum of products."""
    space = space_of_item(item)
    return space is not None and space == cluster.space and cluster.sums < MOST_SUMS


def joined(other: Cluster, cluster: Cluster) -> tuple[Kind, Domain] | None:
    """Give the kind and the places of two groups made one, if that may be."""
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
            other.space == cluster.space and other.sums + cluster.sums <= MOST_SUMS
        ):
            return Kind.CONTRACTION, cluster.domain
        case _:
            return None


def space_of_item(item: Item) -> Space | None:
    """Give the places that a sum of products is over; None where it is not one of matrices."""
    assert isinstance(item.value, Call)
    found = product_of(item.var, item.value)
    return None if found is None else space_of(found)
