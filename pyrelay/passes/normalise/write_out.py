"""Composite operators without a library's function are replaced by their bodies.

What is left are operators that a backend has code for. Kernels read the bodies of all composites;
see `kernels.fusion.decompose`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Final, final

from ...dataclass import dataclass
from ...ir.expr import Binding, Call, Expr, LetBlock
from ...ir.names import Names
from ...ir.op import MadeOf, Op
from ...ir.rewriter import Rewriter
from ...ir.traverse import Steps, post_order
from ...ir.verify import Stage
from ...operators.builder import Builder
from ..base import Context, Opaque, Pass, nothing_opaque

if TYPE_CHECKING:
    from ...ir.block_builder import BlockBuilder
    from ...ir.module import Module


def write_out(module: Module, opaque: Opaque = nothing_opaque) -> Module:
    """Return the module, in A-normal form, with bodies in the place of composites that have no
    library's function, but for those that are `opaque`."""
    names = Names()

    def written(expr: Expr) -> bool:
        return _body_of(expr, opaque) is not None

    return module.map_functions(
        lambda f: (
            _WriteOut(module, names, opaque).walked(f) if any(map(written, _values(f.body))) else f
        )
    )


@final
@dataclass(frozen=True, slots=True)
class WriteOut(Pass):
    """Replace composite operators without a library's function by their bodies."""

    name: ClassVar = "write-out"
    needs: ClassVar = Stage.DERIVED

    def run(self, module: Module, context: Context) -> Module:
        """Return the module after the pass."""
        return write_out(module, context.opaque)


def _values(body: Expr) -> list[Expr]:
    blocks = (node for node in post_order(body) if isinstance(node, LetBlock))
    return [binding.value for block in blocks for binding in block.bindings]


def _body_of(expr: Expr, opaque: Opaque) -> MadeOf | None:
    match expr:
        case Call(callee=Op(lowering=MadeOf() as made) as op) if not opaque(op):
            return made
        case _:
            return None


@final
class _WriteOut(Rewriter):
    """One walk over a function."""

    def __init__(self, module: Module, names: Names, opaque: Opaque) -> None:
        super().__init__(module)
        self._names: Final = names
        self._opaque: Final = opaque

    def binding(self, binding: Binding, code: BlockBuilder) -> Steps[None]:
        """Add a binding, or those of the body of its operator."""
        value = yield self.node(binding.value, code)
        made = _body_of(value, self._opaque)
        if made is None:
            code.bind(binding.var, value)
            return
        assert isinstance(value, Call)
        builder = Builder(value.span, self._names)
        result = made.body(tuple(map(builder.value, value.args)), value.attrs)
        assert result is not None, "a composite without a library's function is its body"
        for inner in builder.bindings:
            yield self.binding(inner, code)
        self.let(binding.var, self.atom(result.atom), code)
