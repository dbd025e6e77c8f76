"""One Triton function in the making: its arguments and imports are found as they are needed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, final

from ..ir.expr import Function
from ..kernels.calling import Number, Read, Scratch, Size, Stride, Written
from ..kernels.places import Places
from ..kernels.plans.code import KernelCode
from ..kernels.plans.terms import Term, Terms
from ..kernels.plans.text import DimText, Syntax
from .expressions import FUNCTIONS, type_text
from .kernel import Config, Grid, Kernel

_ORDER: Final = (Read, Number, Stride, Written, Scratch, Size)
"""Arguments come in this order."""
_INDENT: Final = "    "


@final
class KernelText(KernelCode):
    """One Triton function in the making."""

    def __init__(self, function: Function, terms: Terms, places: Places, suffix: str = "") -> None:
        """`suffix` distinguishes the kernels of one group."""
        super().__init__(function, terms, FUNCTIONS, suffix)
        self.take("tl", "triton", "range", "float")
        self._functions: Final[set[str]] = set()
        self._constants: Final[list[str]] = []
        syntax = Syntax("//", "tl.maximum")
        self.dims: Final = DimText(places, self.operands, self.argument, self.function, syntax)
        self.filled: Final[set[Term]] = set()
        """The loads that give 0 where they do not read."""

    def constant(self, name: str) -> str:
        """Return the name of a constant of the configurations."""
        if name not in self._constants:
            self._constants.append(name)
            self.take(name)
        return name

    def function(self, name: str) -> str:
        """Return the name of a function of `math`, which is imported."""
        self._functions.add(name)
        self.take(name)
        return name

    def finish(self, body: Sequence[str], grid: Grid, configs: tuple[Config, ...]) -> Kernel:
        """Return the kernel whose function has these lines."""
        arguments = sorted(self.arguments, key=lambda a: _ORDER.index(type(a)))
        names = tuple(self.arguments[a] for a in arguments)
        numbers = {n: a for n, a in zip(names, arguments, strict=True) if isinstance(a, Number)}
        # A number has its own dtype, whatever its value: no value of it is compiled for.
        declared = [f"{n}: {type_text(numbers[n].dtype)}" if n in numbers else n for n in names]
        parameters = [*declared, *(f"{c}: tl.constexpr" for c in self._constants)]
        lines = ["import triton", "import triton.language as tl"]
        if self._functions:
            imported = ", ".join(sorted(self._functions))
            lines.append(f"from pyrelay.lower_triton.math import {imported}")
        general = ", ".join(f'"{n}"' for n in numbers)
        options = f"(do_not_specialize=[{general}])" if numbers else ""
        lines += ["", "", f"@triton.jit{options}"]
        head = f"def {self.name}({', '.join(parameters)}):"
        if len(head) > 100:
            inner = "".join(f"    {p},\n" for p in parameters)
            head = f"def {self.name}(\n{inner}):"
        lines += [head, *(f"{_INDENT}{line}" for line in body)]
        text = "\n".join(line.rstrip() for line in lines) + "\n"
        return Kernel(self.name, text, names, tuple(arguments), grid, configs)
