"""Let blocks regrouped by what their bindings may do.

`with_flavours` is the last step before code is made. Afterwards each non-recursive block is a
longest run of pure or of impure bindings, and each `rec` block is one group of functions that
really call each other; a function that does not call itself is a pure binding.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Final, final

from ...ir.components import components
from ...ir.effect import Effects, flavour_of
from ...ir.expr import (
    Binding,
    Call,
    Expr,
    Flavour,
    Function,
    LetBlock,
    RefCreate,
    RefRead,
    RefWrite,
    Var,
    type_of,
)
from ...ir.op import Effect, Op
from ...ir.traverse import Steps, children, post_order, rebuild, run, spine
from ...ir.types import FnType, RefType, subtypes
from ...ir.verify import Stage
from ...operators.table import BY_NAME
from ..base import Context, Pass

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ...ir.module import Module


def with_flavours(module: Module) -> Module:
    """Return the module with let blocks regrouped by effect; itself if they are already so."""
    effects = Effects(module)

    def regrouped(function: Function) -> Function:
        built = run(_Regroup(effects, _mentions(function)).walk(function))
        assert isinstance(built, Function)
        return built

    return module.map_functions(regrouped)


@final
@dataclass(frozen=True, slots=True)
class GroupByEffect(Pass):
    """Regroup let blocks by the effects of their bindings."""

    name: ClassVar = "flavours"
    needs: ClassVar = Stage.DERIVED
    gives: ClassVar = Stage.FLAVOURED

    def run(self, module: Module, _: Context) -> Module:
        """Return the module after the pass."""
        return with_flavours(module)


def is_closed(module: Module, entry: str) -> bool:
    """Return whether a program does nothing but compute, by our own operators alone: it holds no
    cells, calls nothing of its caller's, and has no effect but that it may stop."""
    types = (type_of(p) for p in module.functions[entry].params)
    if any(isinstance(part, FnType | RefType) for ty in types for part in subtypes(ty)):
        return False
    nodes = (n for function in module.functions.values() for n in post_order(function.body))
    return all(map(_only_computes, nodes))


def _only_computes(node: Expr) -> bool:
    match node:
        case Call(Op() as op):
            return not op.effect & ~Effect.FAIL and BY_NAME.get(op.name) is op
        case RefCreate() | RefRead() | RefWrite():
            return False
        case _:
            return True


@final
class _Regroup:
    """One walk over a function."""

    def __init__(self, effects: Effects, mentions: Mapping[Var, Sequence[Var]]) -> None:
        self._effects: Final = effects
        self._mentions: Final = mentions

    def walk(self, expr: Expr) -> Steps[Expr]:
        """Return the expression with the let blocks inside regrouped."""
        if not isinstance(expr, LetBlock):
            inside: list[Expr] = []
            for child in children(expr):
                walked = (yield self.walk(child)) if children(child) else child
                inside.append(walked)
            return rebuild(expr, inside)
        blocks, body = spine(expr)
        groups = yield self._groups(blocks)
        result: Expr = yield self.walk(body)
        if result is body and _is_same(blocks, groups):
            return expr
        for flavour, bindings in reversed(groups):
            span = bindings[0].value.span
            result = LetBlock(tuple(bindings), result, flavour, ty=expr.ty, span=span)
        return result

    def _groups(self, blocks: list[LetBlock]) -> Steps[list[tuple[Flavour, list[Binding]]]]:
        groups: list[tuple[Flavour, list[Binding]]] = []
        for block in blocks:
            for flavour, members in self._parts(block):
                if flavour is Flavour.REC or not groups or groups[-1][0] is not flavour:
                    groups.append((flavour, []))
                for member in members:
                    value = yield self.walk(member.value)
                    bound = member if value is member.value else Binding(member.var, value)
                    groups[-1][1].append(bound)
        return groups

    def _parts(self, block: LetBlock) -> list[tuple[Flavour, list[Binding]]]:
        """Return the bindings of a block with the flavour each has alone, or as a group."""
        if block.flavour is not Flavour.REC:
            return [(flavour_of(self._effects.of(b.value)), [b]) for b in block.bindings]
        bound = {b.var: b for b in block.bindings}
        graph = {var: self._mentions[var] for var in bound}
        parts: list[tuple[Flavour, list[Binding]]] = []
        for group in components(graph):
            alone = len(group) == 1 and group[0] not in graph[group[0]]
            flavour = Flavour.PURE if alone else Flavour.REC
            parts.append((flavour, [bound[var] for var in group]))
        return parts


def _is_same(
    blocks: Sequence[LetBlock], groups: Sequence[tuple[Flavour, Sequence[Binding]]]
) -> bool:
    return len(blocks) == len(groups) and all(
        block.flavour is flavour
        and len(block.bindings) == len(bindings)
        and all(a is b for a, b in zip(block.bindings, bindings, strict=True))
        for block, (flavour, bindings) in zip(blocks, groups, strict=True)
    )


def _mentions(function: Function) -> dict[Var, list[Var]]:
    """Give, for each function of a rec block, those of its block that it mentions, in order."""
    home: dict[Var, LetBlock] = {}
    inside: dict[LetBlock, Var] = {}
    found: dict[Var, dict[Var, None]] = {}
    stack: list[Expr | tuple[LetBlock, Var | None]] = [function]
    while stack:
        item = stack.pop()
        if isinstance(item, tuple):
            block, member = item
            if member is None:
                del inside[block]
            else:
                inside[block] = member
            continue
        if isinstance(item, Var):
            block = home.get(item)
            if block in inside:
                found[inside[block]][item] = None
            continue
        if isinstance(item, LetBlock) and item.flavour is Flavour.REC:
            stack += (item.body, (item, None))
            for binding in reversed(item.bindings):
                home[binding.var] = item
                found[binding.var] = {}
                stack += (binding.value, (item, binding.var))
            continue
        stack += reversed(children(item))
    return {var: list(mentioned) for var, mentioned in found.items()}
