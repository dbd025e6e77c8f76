"""The choices of the option `lowering`: host code that calls torch, the evaluator, or a backend."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from enum import Enum
from typing import TYPE_CHECKING, Any, Final, TypeAlias, final

from ...config import current
from ...diagnostics.catalogue.run import NoKernels
from ...diagnostics.diagnostic import RunError
from ...diagnostics.source import Span
from ...kernels.backend import Backend, backends
from ...lazy import LazyModule, LazySequence
from ...lower_c.backend import CBackend
from ...lower_c.building import can_build
from ...lower_c.policy import Policy
from ...lower_torch.backend import TorchRegions
from ..host import CompiledProgram

if TYPE_CHECKING:
    import torch

    from ...lower_triton import backend as triton
else:
    triton = LazyModule("pyrelay.lower_triton.backend")

_PACKAGE: Final = f"{__name__.partition('.')[0]}."

OWN_BACKENDS: Final[Sequence[Backend]] = LazySequence(
    lambda: (TorchRegions(), CBackend(), triton.ON_GPU, triton.INTERPRETED)
)
"""The backends of the package."""

IN_C: Final[Backend] = CBackend(Policy.REPEATED)
"""The lowering that `auto` resolves to on a CPU where there is a C compiler."""


class Plain(Enum):
    """An executor of programs without kernels."""

    TORCH = "torch"
    EVALUATOR = "evaluator"
    DEBUGGER = "debugger"
    """Torch, line by line: for programs with a breakpoint, whatever the option says."""


Lowering: TypeAlias = Plain | Backend
"""An executor of programs."""


@final
class EvaluatedProgram:
    """A program that the reference evaluator runs."""

    def __init__(self, evaluate: Callable[[Sequence[Any]], Any]) -> None:
        self.source: Final = "# The reference evaluator runs this program.\n"
        self.constants: Final[Mapping[int, torch.Tensor]] = {}
        self.is_dispatched: Final = True
        self.gives_fresh: Final = False
        self._evaluate: Final = evaluate

    def __call__(self, *args: Any) -> Any:
        """Return the value of the entry at run-time values. Raises RunError."""
        return self._evaluate(args)


Executable: TypeAlias = CompiledProgram | EvaluatedProgram
"""A program that can be run on one device."""


def lowering_in_effect() -> Lowering:
    """Return the lowering that the option `lowering` chooses, `auto` on a CPU."""
    match current().lowering:
        case "auto":
            return IN_C if can_build() else Plain.TORCH
        case "torch":
            return Plain.TORCH
        case "evaluator":
            return Plain.EVALUATOR
        case name:
            return all_backends()[name]


def lowering_on(device: torch.device, place: Span) -> Lowering:
    """Return the target of programs on a device under the options in effect.

    Raises RunError, at `place`, where a backend was asked for that cannot run there.
    """
    if current().lowering == "auto" and device.type != "cpu":
        return Plain.TORCH
    found = lowering_in_effect()
    if isinstance(found, Backend):
        why = found.unavailable(device)
        if why is not None:
            raise RunError(NoKernels(place, why))
    return found


def all_backends() -> dict[str, Backend]:
    """Return the backends of the package and those that were registered, by name."""
    return {**{b.name: b for b in OWN_BACKENDS}, **backends()}


def name_of(lowering: Lowering) -> str | None:
    """Return the name of a lowering of the package; None for a backend from outside."""
    if isinstance(lowering, Plain):
        return lowering.value
    return lowering.name if type(lowering).__module__.startswith(_PACKAGE) else None
