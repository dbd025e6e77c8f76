"""Sums of products in Einstein's notation.

Operands are multiplied two at a time, in the order that is cheapest. The cost of a step is how many
products it makes, a size that only the run knows counted as `ASSUMED_SIZE`; of orders that cost the
same the one that stores less is taken. Of up to `MOST_TRIED` operands the order is the best of all,
found set by set; of more it is greedy: the two whose product adds fewest elements come first (Smith
and Gray, opt_einsum, JOSS 2018).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from itertools import combinations
from math import prod
from string import ascii_letters
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from ...ir.bounds import estimate
from ...ir.declaration import attribute_kinds as kinds
from ...ir.dims import ONE, Dim
from ...ir.op import (
    Clash,
    Contraction,
    Expansion,
    MadeOf,
    Op,
    Promotion,
    Pullback,
    RuleCall,
    Sample,
    ShapeBehaviour,
    TensorSpec,
    attribute,
    operand,
)
from ...ir.rules import broadcast_dims, common_dtype, joined_dim
from ...ir.traverse import dependencies_first
from ...ir.types import TensorType, TupleType, Type, show
from ..matrices.products import diagonal
from ..primitive import create, reduce, view
from ..shared.operands import as_tensors, fields

if TYPE_CHECKING:
    from ..builder import Value


def explicit(equation: str, ranks: Sequence[int]) -> tuple[tuple[str, ...], str]:
    """Return the labels of each operand and of the result, ellipses replaced by capital letters or
    others that are free, and an implied result written out. Raises Clash if they do not fit."""
    left, arrow, right = equation.replace(" ", "").partition("->")
    terms = left.split(",")
    if len(terms) != len(ranks):
        raise Clash(f"`einsum` has {len(terms)} terms in '{equation}' for {len(ranks)} operands")
    free = [c for c in reversed(ascii_letters) if c not in equation]
    spread = [r - len(t.replace("...", "")) for t, r in zip(terms, ranks, strict=True)]
    for term, rank, more in zip(terms, ranks, spread, strict=True):
        if more < 0 or (more and "..." not in term):
            raise Clash(f"`einsum` names other dims in '{term}' than a tensor of {rank} has")
    dots = "".join(
        free[: max((m for m, t in zip(spread, terms, strict=True) if "..." in t), default=0)]
    )
    full = tuple(
        t.replace("...", dots[len(dots) - m :]) for t, m in zip(terms, spread, strict=True)
    )
    if arrow:
        return full, right.replace("...", dots)
    labels = "".join(terms).replace("...", "")
    return full, dots + "".join(sorted(c for c in set(labels) if labels.count(c) == 1))


def _einsum_type(call: RuleCall) -> Type:
    operands, equation = call.tensors(0), call.attrs["equation"]
    if not operands:
        call.clash("`einsum` needs at least one operand", 0)
    terms, result = explicit(equation, [t.rank for t in operands])
    sizes: dict[str, Dim] = {}
    for term, ty in zip(terms, operands, strict=True):
        for label, size in zip(term, ty.shape, strict=True):
            try:
                sizes[label] = _joined(call, label, sizes.get(label), size)
            except Clash:
                call.clash(
                    f"`einsum` meets two sizes for '{label}' in '{equation}': "
                    f"{sizes[label]} and {size}, in {show(ty)}",
                    0,
                )
    lost = [c for c in result if c not in sizes]
    if lost or len(set(result)) != len(result):
        call.clash(f"`einsum` cannot make '{result}' of '{','.join(terms)}'", 0)
    return TensorType(tuple(sizes[c] for c in result), common_dtype(call, operands))


def _joined(call: RuleCall, label: str, have: Dim | None, size: Dim) -> Dim:
    if have is None:
        return size
    if label not in call.attrs["equation"]:  # a dim of an ellipsis: these broadcast
        return broadcast_dims(call, have, size)
    call.solver.unify_dims(have, size)
    return joined_dim(call, have, size)


def _einsum_grad(p: Pullback) -> tuple[Value]:
    operands = fields(p.args[0])
    terms, result = explicit(p.attrs["equation"], [v.rank for v in operands])
    grads = [_operand_grad(p.g, operands, terms, result, i) for i in range(len(operands))]
    return (p.g.builder.tuple(grads),)


def _operand_grad(
    g: Value, operands: Sequence[Value], terms: Sequence[str], result: str, index: int
) -> Value:
    """Return the cotangent of one operand: an einsum of `g` and the others, then the dims that
    only this operand has spread out, then those that were broadcast summed back."""
    target = operands[index]
    others = [(v, t) for i, (v, t) in enumerate(zip(operands, terms, strict=True)) if i != index]
    factors = [(g, result), *(_without_ones(v, t) for v, t in others)]
    wanted, eyes = _without_repeats(target, terms[index], "".join((*terms, result)))
    factors += eyes
    sizes = {c: s for v, t in factors for c, s in zip(t, v.shape, strict=True)}
    found = "".join(c for c in wanted if c in sizes)
    equation = f"{','.join(t for _, t in factors)}->{found}"
    total = einsum(g.builder.tuple([v for v, _ in factors]), equation=equation)
    if found != wanted:
        own = dict(zip(wanted, target.shape, strict=True))
        total = total.reshape(*(sizes.get(c, ONE) for c in wanted))
        total = total.expand(tuple(sizes.get(c, own[c]) for c in wanted))
    return total.sum_to(target.shape)


def _without_ones(value: Value, term: str) -> tuple[Value, str]:
    """Return an operand without its dims of size 1, which may have been broadcast."""
    kept = [(c, s) for c, s in zip(term, value.shape, strict=True) if s != ONE]
    return value.reshape(*(s for _, s in kept)), "".join(c for c, _ in kept)


def _without_repeats(target: Value, own: str, used: str) -> tuple[str, list[tuple[Value, str]]]:
    """Return a label per dim, no two the same, and identities that tie the new ones to the old:
    a repeated label is a diagonal, and the cotangent is zero off it."""
    labels = ""
    eyes: list[tuple[Value, str]] = []
    free = iter([c for c in ascii_letters if c not in used])
    for label, size in zip(own, target.shape, strict=True):
        if label not in labels:
            labels += label
            continue
        other = next(free)
        attrs = {"n": size, "m": size, "dtype": target.dtype}
        eyes.append((target.builder.call(create.eye, (), attrs), label + other))
        labels += other
    return labels, eyes


def _einsum(torch: Any, operands: Sequence[Any], equation: str) -> Any:
    return torch.einsum(equation, *as_tensors(torch, operands))


def _as_products(args: tuple[Value, ...], attrs: Mapping[str, Any]) -> Value | None:
    """Return an einsum as sums of products of two operands each, in the cheapest order. Labels of a
    single operand are summed over first; a repeated label takes a diagonal."""
    (pack,) = args
    assert isinstance(pack.ty, TupleType)
    types = [t for t in pack.ty.fields if isinstance(t, TensorType)]
    if len(types) != len(pack.ty.fields) or len({t.dtype for t in types}) != 1:
        return None
    terms, result = explicit(attrs["equation"], [t.rank for t in types])
    factors: list[_Factor] = []
    for number, term in enumerate(terms):
        others = "".join((*(t for i, t in enumerate(terms) if i != number), result))
        factors.append(_without_lonely(*_without_diagonals(pack[number], term), others))
    sizes: dict[str, int] = {}
    for value, term in factors:
        for label, size in zip(term, value.shape, strict=True):
            sizes[label] = max(sizes.get(label, 0), estimate(size))
    alive: dict[int, _Factor] = dict(enumerate(factors))
    order = order_of([t for _, t in factors], result, sizes)
    for number, pair in enumerate(order, len(factors)):
        (left, one), (right, two) = (alive.pop(i) for i in pair)
        needed = result + "".join(t for _, t in alive.values())
        kept = left_labels(one, two, needed) if alive else result
        made = contract(left, right, equation=f"{one},{two}->{kept}")
        alive[number] = (made, kept)
    ((total, term),) = alive.values()
    turn = tuple(term.index(c) for c in result)
    return total if list(turn) == sorted(turn) else view.permute(total, dims=turn)


_Factor: TypeAlias = "tuple[Value, str]"
"""An operand and the labels of its dims."""


def _without_diagonals(value: Value, term: str) -> _Factor:
    while len(set(term)) < len(term):
        label = next(c for c in term if term.count(c) > 1)
        first = term.index(label)
        second = term.index(label, first + 1)
        value = diagonal(value, dim1=first, dim2=second)
        term = term[:first] + term[first + 1 : second] + term[second + 1 :] + label
    return value, term


def _without_lonely(value: Value, term: str, others: str) -> _Factor:
    """Return an operand summed over the dims that nothing else has."""
    dims = tuple(i for i, label in enumerate(term) if label not in others)
    if dims:
        value = reduce.sum_(value, dim=dims, dtype=value.dtype)
    return value, "".join(c for c in term if c in others)


def _contract_type(call: RuleCall) -> Type:
    (left, right), result = explicit(call.attrs["equation"], [call.tensor(i).rank for i in (0, 1)])
    sizes: dict[str, Dim] = {}
    for term, ty in ((left, call.tensor(0)), (right, call.tensor(1))):
        for label, size in zip(term, ty.shape, strict=True):
            sizes[label] = broadcast_dims(call, sizes.get(label, size), size)
    return TensorType(tuple(sizes[c] for c in result), call.tensor(0).dtype)


contract: Final = Op(
    name="contract",
    doc="One sum of products of the elements of two tensors, by an equation without ellipses; dims "
    "of size 1 are broadcast.",
    params=(operand("input"), operand("other"), attribute("equation", convert=kinds.text)),
    type_rule=_contract_type,
    shape=ShapeBehaviour.FIXED,
    lowering=Contraction(
        lambda torch, x, y, equation: torch.einsum(equation, x, y),
        is_fresh=False,
        fused=lambda ranks, attrs: attrs["equation"],
    ),
    grad=Expansion(
        lambda args, attrs: einsum(args[0].builder.tuple(args), equation=attrs["equation"])
    ),
    samples=lambda: (
        Sample((TensorSpec((3, 4)), TensorSpec((4, 5))), {"equation": "ij,jk->ik"}),
        Sample((TensorSpec((2, 1, 3)), TensorSpec((5, 3))), {"equation": "abc,bc->ab"}),
        Sample((TensorSpec((0, 4)), TensorSpec((4,))), {"equation": "ij,j->i"}),
    ),
)


einsum: Final = Op(
    name="einsum",
    doc="Sums of products of elements, by an equation such as 'ij,jk->ik'.",
    params=(attribute("equation", convert=kinds.text), operand("operands", promote=True)),
    promotion=Promotion.COMMON,
    type_rule=_einsum_type,
    shape=ShapeBehaviour.VARIADIC,
    lowering=Contraction(_einsum, is_fresh=False, fused=MadeOf(_as_products)),
    grad=_einsum_grad,
    torch_name=None,
    samples=lambda: (
        Sample(((TensorSpec((3, 4)), TensorSpec((4, 5))),), {"equation": "ij,jk->ik"}),
        Sample(((TensorSpec((3, 4)), TensorSpec((4, 5))),), {"equation": "ij,jk"}),
        Sample(((TensorSpec((3, 4)),),), {"equation": "ij->"}),
        Sample(((TensorSpec((3, 4)),),), {"equation": "ij->j"}),
        Sample(((TensorSpec((3, 3)),),), {"equation": "ii->i"}),
        Sample(((TensorSpec((2, 3, 3)),),), {"equation": "...ii->..."}),
        Sample(
            ((TensorSpec((2, 1, 3, 4)), TensorSpec((5, 4, 2))),), {"equation": "...ij,...jk->...ik"}
        ),
        Sample(
            ((TensorSpec((2, 3)), TensorSpec((3, 4)), TensorSpec((4, 2))),),
            {"equation": "ij,jk,kl->il"},
        ),
        Sample(
            ((TensorSpec((2, 3)), TensorSpec((3,)), TensorSpec((2,)), TensorSpec((3, 4))),),
            {"equation": "ij,j,i,jk->ki"},
        ),
        Sample(((TensorSpec((2, 3)), TensorSpec((4, 4))),), {"equation": "ij,kk->j"}),
        Sample(((TensorSpec((2,)), TensorSpec((3,))),), {"equation": "i,j->ji"}),
        Sample(((TensorSpec((0, 4)), TensorSpec((4, 5))),), {"equation": "ij,jk->ik"}),
        Sample(
            ((TensorSpec((4, 3), contiguous=False), TensorSpec((3,))),), {"equation": "ij,j->i"}
        ),
    ),
)


MOST_TRIED: Final = 6

Order: TypeAlias = tuple[tuple[int, int], ...]
"""Which two are multiplied in each step. The result of a step is numbered after all before it."""


def order_of(terms: Sequence[str], result: str, sizes: Mapping[str, int]) -> Order:
    """Return the order in which operands with these labels are multiplied."""
    if len(terms) > MOST_TRIED:
        return _greedy(terms, result, sizes)
    return _best(terms, result, sizes)


def left_labels(first: str, second: str, needed: str) -> str:
    """Return the labels of the product of two operands: those that something needs."""
    return "".join(c for c in dict.fromkeys(first + second) if c in needed)


def _size(labels: str, sizes: Mapping[str, int]) -> int:
    return prod(sizes[c] for c in labels)


def _best(terms: Sequence[str], result: str, sizes: Mapping[str, int]) -> Order:
    """Return the cheapest order of all, by dynamic programming over sets of operands."""
    everything = frozenset(range(len(terms)))

    def labels(chosen: frozenset[int]) -> str:
        if len(chosen) == 1:
            return terms[next(iter(chosen))]
        needed = result + "".join(terms[i] for i in everything - chosen)
        return left_labels("".join(terms[i] for i in sorted(chosen)), "", needed)

    @cache
    def plan(chosen: frozenset[int]) -> tuple[int, int, tuple[frozenset[int], ...]]:
        """Return the cost of a set, and the first of the two sets in each step, last step first."""
        first, *others = sorted(chosen)
        if not others:
            return 0, 0, ()
        found: list[tuple[int, int, tuple[frozenset[int], ...]]] = []
        for size in range(len(others)):
            for more in combinations(others, size):
                left = frozenset((first, *more))
                right = chosen - left
                one, two = plan(left), plan(right)
                here = _size(
                    left_labels(labels(left), labels(right), labels(left) + labels(right)), sizes
                )
                stored = _size(labels(chosen), sizes)
                steps = (left, *one[2], *two[2])
                found.append((here + one[0] + two[0], stored + one[1] + two[1], steps))
        return min(found, key=lambda f: f[:2])

    numbers = {frozenset((i,)): i for i in everything}
    steps: list[tuple[int, int]] = []

    def halves(chosen: frozenset[int]) -> tuple[frozenset[int], frozenset[int]]:
        left = plan(chosen)[2][0]
        return left, chosen - left

    for chosen in dependencies_first(everything, halves, numbers.__contains__):
        left, right = halves(chosen)
        numbers[chosen] = len(terms) + len(steps)
        steps.append((numbers[left], numbers[right]))
    return tuple(steps)


def _greedy(terms: Sequence[str], result: str, sizes: Mapping[str, int]) -> Order:
    """Return an order in which each step adds as few elements as can be."""
    alive = dict(enumerate(terms))
    steps: list[tuple[int, int]] = []
    while len(alive) > 1:

        def added(pair: tuple[int, int]) -> int:
            one, two = (alive[i] for i in pair)
            needed = result + "".join(t for i, t in alive.items() if i not in pair)
            made = _size(left_labels(one, two, needed), sizes)
            return made - _size(one, sizes) - _size(two, sizes)

        pair = min(combinations(alive, 2), key=added)
        one, two = (alive.pop(i) for i in pair)
        alive[len(terms) + len(steps)] = left_labels(one, two, result + "".join(alive.values()))
        steps.append(pair)
    return tuple(steps)
