"""Operators that are made of others are written out, for kernels of our own.

A softmax becomes a maximum, an exponential, a sum and a division, an update in place of a model an
`overwrite` of each parameter: what `ir.declaration.lowering.MadeOf` says. A product with a vector
becomes a reduction (`vectors`). Fusion then finds the loops.
"""

from __future__ import annotations

from typing import ClassVar, Final, final

from ...dataclass import dataclass
from ...ir.block_builder import BlockBuilder
from ...ir.declaration.lowering import MadeOf, inside
from ...ir.expr import Binding, Call, Expr, Var, is_atom
from ...ir.module import Module
from ...ir.names import Names
from ...ir.op import Op
from ...ir.rewriter import Rewriter
from ...ir.traverse import Steps
from ...ir.verify import Stage
from ...operators.builder import Builder, Value
from ...operators.primitive import create
from ...passes.base import Context, Pass
from ...passes.simplify.cse import share
from ...passes.simplify.dce import remove_dead
from ...passes.simplify.fold import fold
from .found_sizes import takes_found_sizes_as_equal
from .nodes import Role, computes, role_of, updates_a_part
from .vector_products import as_reduction


def decompose(module: Module, entry: str) -> Module:
    """Return a module in A-normal form with composite operators written out and simplified."""
    names = Names()
    whole = module.map_functions(
        lambda f: (
            f if takes_found_sizes_as_equal(module, f) else _Decompose(module, names).walked(f)
        )
    )
    return module if whole is module else remove_dead(share(fold(whole)), entry)


@final
@dataclass(frozen=True, slots=True)
class Decompose(Pass):
    """Write out operators that are made of others."""

    name: ClassVar = "decompose"
    needs: ClassVar = Stage.DERIVED

    def run(self, module: Module, context: Context) -> Module:
        """Return the module after the pass."""
        return decompose(module, context.entry)


@final
class _Decompose(Rewriter):
    """One walk over a function."""

    def __init__(self, module: Module, names: Names) -> None:
        super().__init__(module)
        self._names: Final = names
        self._zeros: Final[set[Expr]] = set()
        self._computed: Final[set[Expr]] = set()
        self._views: Final[dict[Var, Expr]] = {}

    def binding(self, binding: Binding, code: BlockBuilder) -> Steps[None]:
        """Add a binding, or the code that its operator is made of."""
        value = yield self.node(binding.value, code)
        if _is_zero(value):
            self._zeros.add(binding.var)
        is_update = updates_a_part(value, self._computed)
        if computes(value) and not is_update:
            self._computed.add(binding.var)
        builder = Builder(value.span, self._names)
        result = None if is_update else self._written(binding.var, value, builder)
        if result is None:
            code.bind(binding.var, value)
            if isinstance(value, Call) and role_of(binding.var, value) is Role.VIEW:
                self._views[binding.var] = value
            return
        for inner in builder.bindings:
            yield self.binding(inner, code)
        self.let(binding.var, self.atom(result.atom), code)

    def _written(self, var: Var, value: Expr, builder: Builder) -> Value | None:
        """Return a call in other operators, if it is better so."""
        if not isinstance(value, Call) or not all(map(is_atom, value.args)):
            return None
        made = _made_of(value)
        if made is None:
            return as_reduction(var, value, builder, self._views)
        args = [builder.known_zero(a) if a in self._zeros else builder.value(a) for a in value.args]
        return made.body(tuple(args), value.attrs)


def _is_zero(value: Expr) -> bool:
    match value:
        case Call(callee=create.full, attrs=attrs):
            return attrs["fill_value"] == 0
        case Call(callee=create.zeros | create.zeros_like):
            return True
        case _:
            return False


def _made_of(call: Call) -> MadeOf | None:
    what = inside(call.callee.lowering) if isinstance(call.callee, Op) else None
    return what if isinstance(what, MadeOf) else None
