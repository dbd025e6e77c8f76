"""Fixed arguments of functions of models: each program of such a function is specialised to them.

The programs of a function of models depend on the models that it gets, their modes and what is
frozen in them, so the runner makes them call by call. It specialises each before it goes on.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, final

from ...dataclass import dataclass
from ...translate.program.signature import Parameter, Signature
from ...translate.source.definition import Definition, DerivedFunction, bottom
from ...translate.translator import Translation
from .programs import translated
from .specialising import residual_program

if TYPE_CHECKING:
    import torch


@final
@dataclass(frozen=True, slots=True, eq=False)
class Fixing:
    """The arguments of a function that are fixed: static ones and functions, and values.

    `tensors` are those of the values that are not copied into programs, for their last parameters.
    """

    function: Definition | DerivedFunction
    statics: Mapping[str, Any]
    values: Mapping[str, Any]
    fast_math: bool
    tensors: tuple[torch.Tensor, ...] = ()

    @classmethod
    def of(
        cls,
        function: Definition | DerivedFunction,
        statics: Mapping[str, Any],
        values: Mapping[str, Any],
        *,
        fast_math: bool,
    ) -> tuple[Fixing, Translation]:
        """Return the fixing of a function, and the specialised program for models as they are
        annotated. Raises CheckError and RunError."""
        made = cls(function, statics, values, fast_math)
        translation, tensors = made._applied(translated(function, statics, [], []))
        return replace(made, tensors=tensors), translation

    def left(self, signature: Signature) -> Signature:
        """Return a signature without the fixed parameters."""
        kept = tuple(p for p in signature.parameters if not self.has(p.name))
        return replace(signature, parameters=kept)

    def has(self, name: str) -> bool:
        """Return whether a parameter is fixed."""
        return name in self.values or name in self.statics

    def applied(self, translation: Translation) -> Translation:
        """Return a translation, of the function with the static arguments, specialised to the
        values. Raises CheckError and RunError."""
        return self._applied(translation)[0]

    def _applied(self, translation: Translation) -> tuple[Translation, tuple[torch.Tensor, ...]]:
        name = bottom(self.function).name
        module, entry, _, tensors = residual_program(
            name, translation, self.values, fast_math=self.fast_math
        )
        left = self.left(translation.signature)
        hidden = tuple(Parameter(v.name, v.ty, v.span) for v in tensors if v.ty is not None)
        made = replace(
            translation,
            module=module,
            entry=entry,
            signature=replace(left, parameters=(*left.parameters, *hidden)),
            data={n: d for n, d in translation.data.items() if n in module.adts},
        )
        return made, tuple(tensors.values())
