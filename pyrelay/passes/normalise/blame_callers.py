"""Functions of the prelude that may stop the program, in place of their calls.

`hd` of an empty list is a mistake of whoever calls `hd`. The body of such a function therefore
takes the place of each call, and stands where the call stands. These functions do not recurse.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar, Final, final

from ...analysis.retype import Retyping
from ...dataclass import dataclass
from ...ir.block_builder import BlockBuilder
from ...ir.expr import Call, Expr, Function, GlobalVar
from ...ir.module import Module
from ...ir.rewriter import Rewriter
from ...ir.traverse import Steps, children, rebuild
from ...ir.types import PRELUDE, substitution
from ...ir.verify import Stage
from ...prelude.library import stops
from ..base import Context, Pass


def blame_callers(module: Module) -> Module:
    """Return a module in A-normal form in which what stops a program stands in the user's own text;
    itself if it uses no function of the prelude that may."""
    blamed = {n: f for n, f in module.functions.items() if n.startswith(PRELUDE) and stops(f)}
    if not blamed:
        return module
    return module.map_functions(lambda f: _Caller(module, blamed).walked(f))


@final
@dataclass(frozen=True, slots=True)
class BlameCallers(Pass):
    """Inline prelude functions that may fail, so that failures point at their callers."""

    name: ClassVar = "blame-callers"
    needs: ClassVar = Stage.ANF

    def run(self, module: Module, _: Context) -> Module:
        """Return the module after the pass."""
        return blame_callers(module)


@final
class _Caller(Rewriter):
    """One walk over a function that may call some of them."""

    def __init__(self, module: Module, blamed: Mapping[str, Function]) -> None:
        super().__init__(module)
        self._blamed: Final = blamed

    def node(self, expr: Expr, code: BlockBuilder) -> Steps[Expr]:
        """Return a node, or, of a call of such a function, the end of the body in its place."""
        if not (isinstance(expr, Call) and isinstance(expr.callee, GlobalVar)):
            return (yield super().node(expr, code))
        call = rebuild(expr, tuple(map(self.atom, children(expr))))
        assert isinstance(call, Call)
        function = self._blamed.get(expr.callee.name)
        if function is None:
            return call
        change = substitution(function.type_params, call.type_args)
        copy = Retyping(change, place=call.span).copy(function)
        assert isinstance(copy, Function)
        for param, arg in zip(copy.params, call.args, strict=True):
            self.let(param, arg, code)
        return (yield self.splice(copy.body, code))
