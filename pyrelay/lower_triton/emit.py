"""One Triton function in the making: its arguments and imports are found as they are needed."""

from __future__ import annotations

import keyword
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import PurePath
from typing import Final, final

from ..diagnostics.source import BUILTIN, Span
from ..ir.expr import Function, Var
from ..kernels.calling import Argument, Number, Read, Scratch, Size, Stride, Written
from ..kernels.places import Places
from ..kernels.plans.terms import Term, Terms
from ..kernels.reading import results_of
from .expressions import FUNCTIONS, type_text
from .indexing import DimText
from .kernel import Config, Grid, Kernel

_ORDER: Final = (Read, Number, Stride, Written, Scratch, Size)
"""Arguments come in this order."""
_INDENT: Final = "    "


@final
class KernelText:
    """One Triton function in the making."""

    def __init__(self, function: Function, terms: Terms, places: Places, suffix: str = "") -> None:
        """`suffix` tells the kernels of one group apart."""
        self.terms: Final = terms
        name = _ascii(_name(function)) + suffix
        self._name: Final = f"{name}_kernel" if name in FUNCTIONS else name
        self._operands: Final = tuple(p.name for p in function.params)
        self._arguments: Final[dict[Argument, str]] = {}
        self._functions: Final[set[str]] = set()
        self._taken: Final[set[str]] = {self._name, "tl", "triton", "range", "float"}
        self._constants: Final[list[str]] = []
        self._lines: Final[list[str]] = []
        self._shown: tuple[str, int] | None = None
        self.dims: Final = DimText(places, self._operands, self.argument, self.function)
        self.uses: Final[Counter[Term]] = Counter()
        self.filled: Final[set[Term]] = set()
        """The loads that give 0 where they do not read."""

    def argument(self, argument: Argument, wish: str) -> str:
        """Return the name of an argument of the function, a new one if need be."""
        if argument not in self._arguments:
            self._arguments[argument] = self.fresh(wish)
        return self._arguments[argument]

    def operand_name(self, position: int) -> str:
        """Return the name that a parameter of the kernel function has in the program."""
        return self._operands[position]

    def constant(self, name: str) -> str:
        """Return the name of a constant of the configurations."""
        if name not in self._constants:
            self._constants.append(name)
            self._taken.add(name)
        return name

    def function(self, name: str) -> str:
        """Return the name of a function of `math`, which is imported."""
        self._functions.add(name)
        self._taken.add(name)
        return name

    def take(self, *names: str) -> None:
        """Keep names that the kernel's own code uses from values."""
        self._taken.update(names)

    def fresh(self, wish: str) -> str:
        """Return a name that nothing has, like the one wished for."""
        base = _ascii(wish).strip("_") or "value"
        base = f"_{base}" if base[0].isdigit() or keyword.iskeyword(base) else base
        name, number = base, 1
        while name in self._taken or name in FUNCTIONS:
            number += 1
            name = f"{base}_{number}"
        self._taken.add(name)
        return name

    def count(self, roots: Iterable[Term]) -> None:
        """Count how often each term is used, by what the roots need and by the roots."""
        pending = list(roots)
        self.uses.update(pending)
        seen: set[Term] = set()
        while pending:
            term = pending.pop()
            if term in seen:
                continue
            seen.add(term)
            before = self.terms.before(term)
            self.uses.update(before)
            pending += before

    def comment(self, span: Span) -> str | None:
        """Return the line of the user's that a span lies on, if it is not the one shown last."""
        place = (span.file.name, span.line)
        if span.file is BUILTIN or place == self._shown:
            return None
        self._shown = place
        why = f"  ({span.because})" if span.because else ""
        where = f"{PurePath(span.file.name).name}:{span.line}"
        return f"# {where}  {span.file.line(span.line).strip()}{why}"

    def finish(
        self,
        body: Sequence[str],
        grid: Grid,
        configs: tuple[Config, ...],
    ) -> Kernel:
        """Return the kernel whose function has these lines."""
        arguments = sorted(self._arguments, key=lambda a: _ORDER.index(type(a)))
        names = tuple(self._arguments[a] for a in arguments)
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
        head = f"def {self._name}({', '.join(parameters)}):"
        if len(head) > 100:
            inner = "".join(f"    {p},\n" for p in parameters)
            head = f"def {self._name}(\n{inner}):"
        lines += [head, *(f"{_INDENT}{line}" for line in body)]
        text = "\n".join(line.rstrip() for line in lines) + "\n"
        return Kernel(self._name, text, names, tuple(arguments), grid, configs)


_NAMED: Final = 2
"""So many of its results give a kernel its name."""


def _name(function: Function) -> str:
    """Return what profilers call a kernel: its function's own name, or those of what it gives."""
    if function.name:
        return function.name
    given = [r.name for r in results_of(function.body) if isinstance(r, Var)]
    return "_".join(["kernel", *given[:_NAMED]])


def _ascii(name: str) -> str:
    return re.sub(r"\W+", "_", name, flags=re.ASCII)
