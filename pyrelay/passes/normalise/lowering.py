"""The passes that bring a translated program to A-normal form."""

from __future__ import annotations

from typing import ClassVar, final

from ...analysis.solved_sizes import with_solved_sizes
from ...dataclass import dataclass
from ...infer import infer
from ...ir.module import Module
from ...ir.normal_form import to_anf
from ...ir.verify import Stage
from ..base import Context, Pass


@final
@dataclass(frozen=True, slots=True)
class InferTypes(Pass):
    """Infer the type and shape of every expression."""

    name: ClassVar = "infer"
    needs: ClassVar = Stage.TRANSLATED
    gives: ClassVar = Stage.TYPED
    strict: bool = False
    """Whether an equation between sizes that the types do not prove is an error."""

    def run(self, module: Module, _: Context) -> Module:
        """Return the module after the pass."""
        return infer(module, strict=self.strict)


@final
@dataclass(frozen=True, slots=True)
class NormalForm(Pass):
    """Bind every value to a name (A-normal form)."""

    name: ClassVar = "anf"
    needs: ClassVar = Stage.TYPED
    gives: ClassVar = Stage.ANF

    def run(self, module: Module, _: Context) -> Module:
        """Return the module after the pass."""
        return to_anf(module)


@final
@dataclass(frozen=True, slots=True)
class SolveSizes(Pass):
    """Bind sizes that values show only inside other sizes."""

    name: ClassVar = "solve-sizes"
    needs: ClassVar = Stage.ANF

    def run(self, module: Module, _: Context) -> Module:
        """Return the module after the pass."""
        return with_solved_sizes(module)
