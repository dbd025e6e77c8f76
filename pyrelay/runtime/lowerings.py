"""What runs the tensor code of a program on a device: torch, our own kernels, or the evaluator."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from enum import Enum
from functools import cache
from typing import TYPE_CHECKING, Any, Final, TypeAlias, final

from ..config import current
from ..diagnostics.catalogue.run import NoKernels
from ..diagnostics.diagnostic import RunError
from ..diagnostics.source import Span
from ..lower_triton.build import NoTriton, check_driver, triton_module
from .host import CompiledProgram

if TYPE_CHECKING:
    import torch


class Lowering(Enum):
    """What runs tensor code."""

    TORCH = "torch"
    REGIONS = "torch, region by region"
    TRITON = "triton"
    EVALUATOR = "evaluator"


@final
class EvaluatedProgram:
    """A program that the reference evaluator runs."""

    def __init__(self, evaluate: Callable[[Sequence[Any]], Any]) -> None:
        self.source: Final = "# The reference evaluator runs this program.\n"
        self.constants: Final[frozenset[int]] = frozenset()
        self.is_dispatched: Final = True
        self.gives_fresh: Final = False
        self._evaluate: Final = evaluate

    def __call__(self, *args: Any) -> Any:
        """Give the value of the entry at run-time values. Raises RunError."""
        return self._evaluate(args)


Executable: TypeAlias = CompiledProgram | EvaluatedProgram
"""A program that can be run on one device."""


def lowering_on(device: torch.device, place: Span) -> Lowering:
    """Give what runs tensor code on a device under the options in effect.

    Raises RunError, at `place`, where kernels were asked for and cannot be had.
    """
    match current().lowering:
        case "auto" | "torch":
            return Lowering.TORCH
        case "torch-regions":
            return Lowering.REGIONS
        case "evaluator":
            return Lowering.EVALUATOR
        case "triton-interpret":
            return _kernels(device, place, needed="cpu")
        case _:
            return _kernels(device, place, needed="cuda")


def _kernels(device: torch.device, place: Span, needed: str) -> Lowering:
    if device.type != needed:
        raise RunError(NoKernels(place, _elsewhere(device, needed)))
    try:
        triton_module()
        if needed == "cuda":
            _drivers()
    except NoTriton as error:
        raise RunError(NoKernels(place, str(error))) from None
    return Lowering.TRITON


@cache
def _drivers() -> None:
    """Look for what starts kernels, once. Raises NoTriton."""
    check_driver()


def _elsewhere(device: torch.device, needed: str) -> str:
    if needed == "cpu":
        return f"the interpreter runs kernels on the CPU, and this call is on {device}"
    return f"kernels run on a GPU, and this call is on {device}"
