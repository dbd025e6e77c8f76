"""Joins in place of the jumps to them, for a debugger that steps through the lines of one frame.

Where several paths lead to the same statements, translation makes a local function of these. It is
no function of the source, so a debugged program has a copy of it on each path instead.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Final, final

from ...dataclass import dataclass
from ...ir.expr import Binding, Call, Expr, Function, Var
from ...ir.rewriter import Rewriter
from ...ir.traverse import Steps, children, post_order, refresh
from ...ir.verify import Stage
from ..base import Context, Pass
from .flavours import with_flavours

if TYPE_CHECKING:
    from ...ir.block_builder import BlockBuilder
    from ...ir.module import Module

GROWTH: Final = 10_000
"""By how many nodes a function may grow: paths multiply."""


def inline_joins(module: Module) -> Module:
    """Return a module in A-normal form with its flavours, in which local functions without a name
    stand where they are called."""
    return module.map_functions(lambda f: _Joins(module, f).walked(f))


@final
@dataclass(frozen=True, slots=True)
class InlineJoins(Pass):
    """Copy the statements where several paths meet into each of the paths."""

    name: ClassVar = "inline-joins"
    needs: ClassVar = Stage.ANF

    def run(self, module: Module, _: Context) -> Module:
        """Return the module after the pass."""
        return inline_joins(with_flavours(module))


@final
class _Joins(Rewriter):
    """One walk over a function."""

    def __init__(self, module: Module, function: Function) -> None:
        super().__init__(module)
        self._left = GROWTH
        self._joins: Final[dict[Var, Function]] = {}
        self._values: Final[set[Expr]] = set()
        """The variables that are mentioned, but for those that are called."""
        self._look_at(function)

    def _look_at(self, expr: Expr) -> None:
        for node in post_order(expr):
            operands = node.args if isinstance(node, Call) else children(node)
            self._values.update(o for o in operands if isinstance(o, Var))

    def binding(self, binding: Binding, code: BlockBuilder) -> Steps[None]:
        """Add the rewritten binding, unless it is a join."""
        value = binding.value
        if isinstance(value, Function) and self._is_join(binding.var, value):
            self._joins[binding.var] = value
            return
        yield super().binding(binding, code)

    def _is_join(self, var: Var, function: Function) -> bool:
        is_open = bool(function.type_params)
        return not function.name and not is_open and var not in self._values and self._left > 0

    def node(self, expr: Expr, code: BlockBuilder) -> Steps[Expr]:
        """Return a node, or, of a call of a join, the end of the body in its place."""
        callee = expr.callee if isinstance(expr, Call) else None
        if not isinstance(expr, Call) or not isinstance(callee, Var) or callee not in self._joins:
            return (yield super().node(expr, code))
        copy = refresh(self._joins[callee])
        assert isinstance(copy, Function)
        self._look_at(copy)
        self._left -= sum(1 for _ in post_order(copy))
        for param, arg in zip(copy.params, expr.args, strict=True):
            self.let(param, self.atom(arg), code)
        return (yield self.splice(copy.body, code))
