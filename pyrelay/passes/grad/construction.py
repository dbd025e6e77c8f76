"""The reverse of making data and of taking it apart.

Where a constructor made a value, the cotangent of the value is matched: unless it is zero, its
fields are the cotangents of the operands. Where a pattern took a value apart, the cotangents of
the pattern's variables are put together in the same shape.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...ir.expr import (
    BindPattern,
    Call,
    Clause,
    Constructor,
    ConstructorPattern,
    Expr,
    Match,
    Pattern,
    TuplePattern,
    Var,
    Wildcard,
    type_of,
)
from ...ir.types import AdtType, Type
from ...operators.builder import Builder
from ..deriving.bodies import subpatterns
from .finish import close, split

if TYPE_CHECKING:
    from .adjoints import Adjoints


def reverse_construction(sweep: Adjoints, call: Call, cts: list[Expr | None]) -> None:
    """Match the cotangent of the made value; where it is not zero its fields contribute."""
    (ct,) = cts
    assert ct is not None
    assert isinstance(call.callee, Constructor)
    made, ct_type = type_of(call), type_of(ct)
    assert isinstance(made, AdtType)
    assert isinstance(ct_type, AdtType)
    name = sweep.leaves.constructor(ct_type, made, call.callee.name)
    span = sweep.builder.span
    fields: list[Pattern] = []
    given: list[tuple[Var, int, Type, Var]] = []
    for atom, leaf, ty in sweep.places(call.args):
        if not sweep.is_varied(atom, leaf):
            fields.append(Wildcard(span=span))
            continue
        assert isinstance(atom, Var)
        field = Var(sweep.names.fresh("d"), ty, span=span)
        given.append((atom, leaf, ty, field))
        fields.append(BindPattern(field, span=span))
    if name is None or not given:
        return
    keys = {(atom, leaf): ty for atom, leaf, ty, _ in given}
    outer, sweep.builder = sweep.builder, Builder(span, sweep.names)
    sums = {key: sweep.get(key) for key in keys}
    for atom, leaf, ty, field in given:
        sums[atom, leaf] = _sum(sweep, ty, sums[atom, leaf], field)
    matched = close(sweep.builder, [a for a in sums.values() if a is not None])
    sweep.builder = Builder(span, sweep.names)
    unchanged = [sweep.get(key) or sweep.zero(ty).atom for key, ty in keys.items()]
    otherwise = close(sweep.builder, unchanged)
    sweep.builder = outer
    pattern = ConstructorPattern(ct_type.name, name, tuple(fields), span=span)
    clauses = (Clause(pattern, matched), Clause(Wildcard(span=span), otherwise))
    whole = outer.bind(Match(ct, clauses, ty=matched.ty, span=span), "d")
    for key, atom in zip(keys, split(whole, len(keys)), strict=True):
        sweep.set(key, atom)


def cotangents_of_matched(sweep: Adjoints, pattern: Pattern, ty: Type) -> list[Expr | None]:
    """Return the cotangents of a matched value from those of its pattern's variables.

    Patterns nest as deep as a user writes, so this walk may recurse.
    """
    leaves = sweep.leaves.of(ty)
    match pattern:
        case BindPattern(var, inner):
            own = sweep.take(var)
            if inner is None:
                return own
            below = cotangents_of_matched(sweep, inner, ty)
            triples = zip(leaves, own, below, strict=True)
            return [_sum(sweep, leaf, a, b) for leaf, a, b in triples]
        case TuplePattern():
            inside = subpatterns(pattern, ty, sweep.leaves)
            return [ct for p, t in inside for ct in cotangents_of_matched(sweep, p, t)]
        case ConstructorPattern() if leaves:
            return [_constructed(sweep, pattern, ty)]
        case _:
            return [None] * len(leaves)


def _constructed(sweep: Adjoints, pattern: ConstructorPattern, ty: Type) -> Expr | None:
    """Return the cotangent of a value that matched a constructor; zeros stand for what has none."""
    assert isinstance(ty, AdtType)
    (ct_type,) = sweep.leaves.of(ty)
    assert isinstance(ct_type, AdtType)
    found: list[tuple[Type, Expr | None]] = []
    for part, part_type in subpatterns(pattern, ty, sweep.leaves):
        # A variable's own type has the names of the sizes that are in scope.
        exact = type_of(part.var) if isinstance(part, BindPattern) else part_type
        cts = cotangents_of_matched(sweep, part, exact)
        found += zip(sweep.leaves.of(exact), cts, strict=True)
    name = sweep.leaves.constructor(ct_type, ty, pattern.name)
    if name is None or all(ct is None for _, ct in found):
        return None
    builder = sweep.builder
    fields = [sweep.zero(leaf) if ct is None else builder.value(ct) for leaf, ct in found]
    return builder.construct(ct_type.name, name, fields, ct_type).atom


def _sum(sweep: Adjoints, leaf: Type, a: Expr | None, b: Expr | None) -> Expr | None:
    if a is None or b is None:
        return b if a is None else a
    return sweep.cotangents.add(sweep.builder, leaf, a, b).atom
