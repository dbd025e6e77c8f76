"""Region functions whose calls of torch are functions, too: the form in which they are launched.

What stands in a region between two kernels, calls of torch and views, becomes one function
`calls.N`. Then a region does nothing but call, and take tuples apart. Variables of the region stay
the same ones, so a memory plan of the region holds for it in either form.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, Final, final

from ...dataclass import dataclass
from ...ir.block_builder import BlockBuilder
from ...ir.expr import Binding, Call, Expr, Function, GlobalVar, Tuple, TupleGet, Var
from ...ir.module import Module
from ...ir.traverse import rebuild
from ...ir.types import UNIT
from ...ir.verify import Stage
from ...passes.base import Context, Pass
from ...passes.normalise.flavours import with_flavours
from ..outlined import outlined_of
from ..reading import straight_line
from .closed_functions import Functions
from .nodes import mentioned

CALLS: Final = "calls."
"""How the names of functions begin that call torch between kernels."""


def in_segments(module: Module) -> Module:
    """Return a program with the calls of torch in its regions as functions."""
    calls = Functions(CALLS, module.functions)
    cut = {name: _cut(module.functions[name], calls) for name in outlined_of(module).regions}
    functions = {**module.functions, **cut, **calls.functions}
    return with_flavours(module.with_functions(functions))


@final
@dataclass(frozen=True, slots=True)
class Segments(Pass):
    """Take the torch calls between kernels of a region out as functions."""

    name: ClassVar = "segments"
    needs: ClassVar = Stage.REGIONS
    gives: ClassVar = Stage.REGIONS

    def run(self, module: Module, _: Context) -> Module:
        """Return the module after the pass."""
        return in_segments(module)


def _cut(region: Function, calls: Functions) -> Function:
    bindings, end = straight_line(region.body)
    last = {v: place for place, b in enumerate(bindings) for v in mentioned(b.value)}
    last.update(dict.fromkeys(mentioned(end), len(bindings)))
    code = BlockBuilder()
    run: list[Binding] = []
    bound: set[Var] = set()
    for place, binding in enumerate(bindings):
        is_part = isinstance(binding.value, Tuple | TupleGet)
        if _is_torch(binding.value) or (is_part and not bound.isdisjoint(mentioned(binding.value))):
            run.append(binding)
            bound.add(binding.var)
            continue
        _take_out(run, [b.var for b in run if last.get(b.var, 0) >= place], region, calls, code)
        run, bound = [], set()
        code.bind(binding.var, binding.value)
    _take_out(run, [b.var for b in run if b.var in mentioned(end)], region, calls, code)
    rebuilt = rebuild(region, (code.close(end),))
    assert isinstance(rebuilt, Function)
    return rebuilt


def _take_out(
    run: Sequence[Binding],
    given: Sequence[Var],
    region: Function,
    calls: Functions,
    code: BlockBuilder,
) -> None:
    """Add the call of a function in the place of a run of calls of torch."""
    if not run:
        return
    results = [v for v in given if v.ty != UNIT]
    for binding in calls.take_out(run, results, region.assumptions):
        code.bind(binding.var, binding.value)


def _is_torch(value: Expr) -> bool:
    match value:
        case Call(GlobalVar()) | Tuple() | TupleGet():
            return False
        case _:
            return True
