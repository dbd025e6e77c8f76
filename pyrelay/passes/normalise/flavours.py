"""Let blocks regrouped by what their bindings may do.

`with_flavours` is the last step before code is made. Afterwards each non-recursive block is a
longest run of pure or of impure bindings, and each `rec` block is one group of functions that
really call each other; a function that does not call itself is a pure binding.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Final, final

from ...analysis.components import components
from ...dataclass import dataclass
from ...ir.block_builder import BlockBuilder
from ...ir.effect import effects_of, flavour_of
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
from ...ir.rewriter import Rewriter
from ...ir.traverse import Steps, children, post_order
from ...ir.types import FnType, RefType, subtypes
from ...ir.verify import Stage
from ...operators.table import BY_NAME
from ..base import Context, Pass

if TYPE_CHECKING:
    from ...ir.module import Module


def with_flavours(module: Module) -> Module:
    """Return the module with let blocks regrouped by effect; itself if that changes nothing."""
    return module.map_functions(lambda function: _Regroup(module, function).walked(function))


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
class _Regroup(Rewriter):
    """One walk over a function."""

    def __init__(self, module: Module, function: Function) -> None:
        super().__init__(module)
        self._effects: Final = effects_of(module)
        self._mentions: Final = _mentions(function)

    def binding(self, binding: Binding, code: BlockBuilder) -> Steps[None]:
        """Add a binding to the block of its flavour."""
        value = yield self.node(binding.value, code)
        code.flavour = flavour_of(self._effects.of(binding.value))
        code.bind(binding.var, value)

    def recursive(self, block: LetBlock, code: BlockBuilder) -> Steps[None]:
        """Add the functions of a block in groups that call each other, callees first."""
        values: dict[Var, Expr] = {}
        for binding in block.bindings:
            values[binding.var] = yield self.node(binding.value, code)
        graph = {var: self._mentions[var] for var in values}
        for group in components(graph):
            if len(group) > 1 or group[0] in graph[group[0]]:
                code.bind_rec([Binding(var, values[var]) for var in group])
            else:
                code.flavour = Flavour.PURE
                code.bind(group[0], values[group[0]])


def _mentions(function: Function) -> dict[Var, list[Var]]:
    """Return the functions of the same rec block that each function of one mentions, in order."""
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
