"""Calls of operators that a backend has code of its own for, as kernel functions of one call each.

Fusion leaves such calls, as those of convolutions, where they are, since they have no meaning
element by element. As kernels they are part of the memory plan and of what a backend launches.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import ClassVar, Final, TypeAlias, final

from ...dataclass import dataclass
from ...ir.block_builder import BlockBuilder
from ...ir.expr import Binding, Call, Function, type_of
from ...ir.module import Module
from ...ir.op import Op
from ...ir.rewriter import Rewriter
from ...ir.traverse import Steps
from ...ir.verify import Stage
from ...passes.base import Context, Opaque, Pass
from ...passes.normalise.flavours import with_flavours
from ..groups import Group, Kind, Output
from ..outlined import outlined_of, with_outlined
from ..reading import straight_line, types_of_results
from .closed_functions import Functions
from .found_sizes import takes_found_sizes_as_equal
from .fuse import KERNEL

HasCode: TypeAlias = Callable[[Call], bool]
"""Whether a backend has code of its own for the call of an operator."""


@final
@dataclass(frozen=True, slots=True)
class OwnCalls(Pass):
    """Take calls of operators that the backend has code for out as kernel functions."""

    name: ClassVar = "own-calls"
    needs: ClassVar = Stage.REGIONS
    gives: ClassVar = Stage.REGIONS

    has_code: HasCode = lambda _: False

    def run(self, module: Module, context: Context) -> Module:
        """Return the module after the pass."""
        outlined = outlined_of(module)
        calls = Functions(KERNEL, module.functions)
        functions = {
            name: function
            if name in outlined.groups or takes_found_sizes_as_equal(module, function)
            else _OwnCalls(module, function, calls, self.has_code, context.opaque).walked(function)
            for name, function in module.functions.items()
        }
        made = with_flavours(module.with_functions({**functions, **calls.functions}))
        groups = {name: _group(made.functions[name]) for name in calls.functions}
        return with_outlined(made, replace(outlined, groups={**outlined.groups, **groups}))


@final
class _OwnCalls(Rewriter):
    """One walk over a function."""

    def __init__(
        self,
        module: Module,
        function: Function,
        calls: Functions,
        has_code: HasCode,
        opaque: Opaque,
    ) -> None:
        super().__init__(module)
        self._assumptions: Final = function.assumptions
        self._calls: Final = calls
        self._has_code: Final = has_code
        self._opaque: Final = opaque

    def binding(self, binding: Binding, code: BlockBuilder) -> Steps[None]:
        """Add a binding to `code`, or the call of a kernel function."""
        match binding.value:
            case Call(Op() as op) as call if not self._opaque(op) and self._has_code(call):
                for made in self._calls.take_out([binding], [binding.var], self._assumptions):
                    code.bind(made.var, made.value)
            case _:
                yield from super().binding(binding, code)


def _group(function: Function) -> Group:
    """Return the group of a kernel function that is one call."""
    bindings, end = straight_line(function.body)
    (call,) = (b.value for b in bindings if isinstance(b.value, Call))
    count = len(types_of_results(type_of(end)))
    outputs = tuple(Output(end, number, None) for number in range(count))
    return Group(Kind.CALL, function, outputs, call=call)
