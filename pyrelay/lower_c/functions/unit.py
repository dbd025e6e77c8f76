"""The interface of the program around it to the writer of one C function."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from ...ir.expr import Call, Var
from ...kernels.function_plan import Planned
from ..text import Kernel
from .c_types import CTypes
from .views import Lying


class Unit(Protocol):
    """The surroundings of the writer of one C function."""

    types: CTypes
    has_tensors: bool

    def site(self, call: Call) -> int:
        """Return the number by which a call is known that fails."""
        ...

    def callee(self, call: Call) -> Planned | None:
        """Return the function that a call names, if it names one."""
        ...

    def may_overflow(self, call: Call) -> bool:
        """Return whether the integer that a call gives may leave 64 bits."""
        ...

    def c_name(self, planned: Planned) -> str:
        """Return the name of the C function that a function becomes."""
        ...

    def escapes(self, place: Var | Planned) -> bool:
        """Return whether a variable escapes into data, or the result of a function."""
        ...

    def is_result_apart(self, planned: Planned) -> bool:
        """Return whether no tensor in the result of a function lies in memory that is forgotten."""
        ...

    def is_entry(self, planned: Planned) -> bool:
        """Return whether a function is the one that Python calls."""
        ...

    def is_kernel(self, planned: Planned) -> bool:
        """Return whether a function is a kernel of tensors."""
        ...

    def kernels(self, planned: Planned, lying: Sequence[Lying | None] = ()) -> tuple[Kernel, ...]:
        """Return the C functions of a kernel of tensors. `lying` are its operands where they do not
        lie row by row; empty if all do. Raises NotInC."""
        ...

    def number_of(self, kernel: Kernel) -> int:
        """Return the number of a kernel among those that have several routes."""
        ...

    def kernels_of_call(self, call: Call) -> tuple[Kernel, ...]:
        """Return the C functions of a call of an operator on tensors. Raises NotInC."""
        ...

    def is_deep(self, planned: Planned) -> bool:
        """Return whether calls of a function may wait for others of it."""
        ...

    def jumps_to(self, source: Planned, target: Planned) -> bool:
        """Return whether a tail call of one function by another is a jump."""
        ...
