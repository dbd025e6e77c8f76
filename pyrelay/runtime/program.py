"""A program from its translated IR to a host function: the stages, each computed once.

The typed stage is all that `check` and `show` need; the rest runs when the program is first called.
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any, Final, Self, final

from ..config import current
from ..ir.expr import Function
from ..ir.module import Module
from ..ir.types import FnType
from ..passes.effects import with_flavours
from ..passes.grad import expand_transforms
from ..passes.infer import infer
from ..passes.normal_form import to_anf
from ..passes.simplify import simplify
from .evaluator import evaluate
from .host import CompiledProgram, compile_module

if TYPE_CHECKING:
    from collections.abc import Sequence

    import torch


@final
class Program:
    """One entry function with everything it reaches, at every stage."""

    def __init__(self, translated: Module, entry: str) -> None:
        self.translated: Final = translated
        self.entry: Final = entry
        self._compiled: Final[dict[torch.device, CompiledProgram]] = {}

    @classmethod
    def of_typed(cls, typed: Module, entry: str) -> Self:
        """Give the program of a module that has been checked before."""
        program = cls(typed, entry)
        program.__dict__["typed"] = typed
        return program

    @cached_property
    def typed(self) -> Module:
        """The program after inference. Raises CheckError."""
        return infer(self.translated)

    @cached_property
    def anf(self) -> Module:
        """The program in A-normal form."""
        return to_anf(self.typed)

    @cached_property
    def derived(self) -> Module:
        """The program with its transforms expanded. Raises CheckError."""
        return expand_transforms(self.anf)

    @cached_property
    def simplified(self) -> Module:
        """The program that is compiled."""
        return with_flavours(simplify(self.derived, self.entry, _fold))

    @property
    def function(self) -> Function:
        """The typed entry."""
        return self.typed.functions[self.entry]

    @property
    def type(self) -> FnType:
        """The type of the entry."""
        ty = self.function.ty
        assert isinstance(ty, FnType)
        return ty

    def compiled(self, device: torch.device) -> CompiledProgram:
        """Give the host function for a device, compiled at first use."""
        known = self._compiled.get(device)
        if known is None:
            known = compile_module(self.simplified, self.entry, device)
            self._compiled[device] = known
        return known

    def interpret(self, args: Sequence[Any], device: torch.device) -> Any:
        """Give the value that the reference evaluator finds."""
        return evaluate(self.derived, self.entry, args, device)


def _fold(module: Module, entry: str) -> Any:
    """Give the value of a closed function, for constant folding."""
    return evaluate(module, entry, ())


def verifies() -> bool:
    """Tell whether the IR is to be verified after every pass."""
    return current().verify
