"""Operators that are made of others are written out, for kernels of our own.

A softmax becomes a maximum, an exponential, a sum and a division, an update in place of a model an
`overwrite` of each parameter: what `ir.lowering.MadeOf` says. Fusion then finds the loops.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final, final

from ...ir.build import Builder, Names
from ...ir.expr import Binding, Call, Expr, is_atom
from ...ir.lowering import MadeOf, inside
from ...ir.op import Op
from ...ir.ops import create
from ..cse import share
from ..dce import remove_dead
from ..fold import fold
from ..splice import Splicer
from .found import takes_found_sizes_as_equal
from .parts import computes, updates_a_part

if TYPE_CHECKING:
    from ...ir.module import Module
    from ...ir.traverse import Steps
    from ..code import Code


def decompose(module: Module, entry: str) -> Module:
    """Give a module in A-normal form with composite operators written out and simplified."""
    names = Names()
    functions = {
        n: f if takes_found_sizes_as_equal(module, f) else _Decompose(module, names).walked(f)
        for n, f in module.functions.items()
    }
    if all(functions[name] is old for name, old in module.functions.items()):
        return module
    return remove_dead(share(fold(replace(module, functions=functions))), entry)


@final
class _Decompose(Splicer):
    """One walk over a function."""

    def __init__(self, module: Module, names: Names) -> None:
        super().__init__(module)
        self._names: Final = names
        self._zeros: Final[set[Expr]] = set()
        self._computed: Final[set[Expr]] = set()

    def binding(self, binding: Binding, code: Code) -> Steps[None]:
        """Add a binding, or the code that its operator is made of."""
        value = yield self.node(binding.value, code)
        if _is_zero(value):
            self._zeros.add(binding.var)
        is_update = updates_a_part(value, self._computed)
        if computes(value) and not is_update:
            self._computed.add(binding.var)
        made = _made_of(value)
        if made is None or is_update:
            code.bind(binding.var, value)
            return
        assert isinstance(value, Call)
        builder = Builder(value.span, self._names)
        args = [builder.known_zero(a) if a in self._zeros else builder.value(a) for a in value.args]
        result = made.body(tuple(args), value.attrs)
        if result is None:
            code.bind(binding.var, value)
            return
        for inner in builder.bindings:
            yield self.binding(inner, code)
        self.let(binding.var, self.atom(result.atom), code)


def _is_zero(value: Expr) -> bool:
    match value:
        case Call(callee=create.full, attrs=attrs):
            return attrs["fill_value"] == 0
        case Call(callee=create.zeros | create.zeros_like):
            return True
        case _:
            return False


def _made_of(value: Expr) -> MadeOf | None:
    if not isinstance(value, Call) or not isinstance(value.callee, Op):
        return None
    what = inside(value.callee.lowering)
    return what if isinstance(what, MadeOf) and all(map(is_atom, value.args)) else None
