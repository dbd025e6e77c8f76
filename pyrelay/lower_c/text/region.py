"""The C text of regions: kernels in the order of a tape, and one function that runs them.

A *piece* is a function that runs a stretch of the steps of a region between two calls of torch.
It gets the addresses of values, that of the arena, the integers of the call, and the numbers that
are operands, all in a struct, and returns whether a kernel failed, as where an index is out of
range. Kernels that overwrite an operand do not run after one that failed.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Mapping
from typing import Final, final

from ...ir.dims import product
from ...ir.types import is_float
from ...kernels.backend import KernelFunction
from ...kernels.calling import Layout, NoKernel, Number, Read, Scratch, Size, Stride, Written
from ...kernels.tape import KernelStep, PartStep, SizeStep, Tape, TupleStep, ViewStep
from ..kernel import Kernel, Route
from ..math import Target, element_of
from ..regions import Integer, Made, Offset, Piece, RegionText, alone
from .library import LIBRARY, USE_LIBRARY
from .lower import lower, own_name
from .parts import in_parts

FREE: Final = (TupleStep, ViewStep, PartStep, SizeStep)
"""Steps that make no values of their own, so that kernels before and after them are one piece."""


def region_text(
    tape: Tape, kernels: Mapping[str, KernelFunction], layouts: Mapping[int, Layout], target: Target
) -> RegionText:
    """Return a region in C, for the layouts of the operands of its kernel steps."""
    return _Writer(tape, kernels, layouts, target).text()


@final
class _Writer:
    def __init__(
        self,
        tape: Tape,
        kernels: Mapping[str, KernelFunction],
        layouts: Mapping[int, Layout],
        target: Target,
    ) -> None:
        self._tape: Final = tape
        self._kernels: Final = kernels
        self._layouts: Final = layouts
        self._target: Final = target
        self._made: Final[dict[tuple[str, Layout], tuple[Kernel, ...]]] = {}
        self._refused: Final[dict[str, str]] = {}
        self._names: Final[set[str]] = set()
        self._numbers_of: Final[defaultdict[str, int]] = defaultdict(lambda: 1)
        """The number behind the last kernel of a name."""
        self._integers: Final[dict[Integer | Offset, int]] = {}
        self._numbers: Final[dict[int, int]] = {}
        self._scratch: Final[dict[Made, int]] = {}
        self._in_arena: Final[set[int]] = set()
        self._viewed: Final[dict[int, int]] = {}
        self._addresses: Final[dict[int, tuple[str, str]]] = {}
        """The variables of a piece: where values lie, by name and text."""
        self._locals: Final[set[str]] = set()

    def text(self) -> RegionText:
        """Return the text."""
        found = {n: k for n in range(len(self._tape.steps)) if (k := self._kernel(n)) is not None}
        made = (s.results for n in found if isinstance(s := self._tape.steps[n], KernelStep))
        stored = {v for results in made for v in results}
        self._in_arena.update(v for v in stored if v in self._tape.slots)
        self._viewed.update((v, of) for v, of in self._tape.viewed.items() if of in stored)
        pieces: list[Piece] = []
        stretch: list[int] = []
        for number, step in enumerate(self._tape.steps):
            if number in found:
                stretch.append(number)
            elif stretch and not isinstance(step, FREE):
                pieces.append(Piece(f"piece_{len(pieces)}", tuple(stretch)))
                stretch = []
        if stretch:
            pieces.append(Piece(f"piece_{len(pieces)}", tuple(stretch)))
        own = "\n".join([self._piece(piece, found) for piece in pieces])
        routed = [i.step for i in self._integers if isinstance(i, Integer) and i.is_route]
        others = [self._piece(alone(step), found) for step in routed]
        kernels = (k for made in self._made.values() for k in made)
        parts = in_parts(kernels, self._target, LIBRARY if routed else "")
        others += [USE_LIBRARY] if routed else []
        return RegionText(
            ("\n".join((parts.prefix, own, *others)), *parts.beside),
            own,
            found,
            tuple(pieces),
            tuple(self._integers),
            tuple(self._numbers),
            tuple(self._scratch),
            tuple(sorted(self._in_arena)),
            self._viewed,
            self._refused,
        )

    def _kernel(self, number: int) -> tuple[Kernel, ...] | None:
        step = self._tape.steps[number]
        if not isinstance(step, KernelStep) or step.name in self._refused:
            return None
        layout = self._layouts[number]
        key = step.name, layout
        if key not in self._made:
            try:
                group = self._kernels[step.name].group
                name = self._fresh(own_name(group))
                made = lower(group, layout, self._target, name, routed=True)
            except NoKernel as error:
                self._refused[step.name] = str(error)
                return None
            self._names.update(kernel.name for kernel in made)
            self._made[key] = made
        return self._made[key]

    def _fresh(self, wish: str) -> str:
        """Return a name that no kernel has, like the one wished for."""
        name = wish
        while name in self._names:
            self._numbers_of[wish] += 1
            name = f"{wish}_{self._numbers_of[wish]}"
        return name

    def _piece(self, piece: Piece, found: Mapping[int, tuple[Kernel, ...]]) -> str:
        self._addresses.clear()
        self._locals.clear()
        lines: list[str] = []
        fails = False
        for number, kernel in ((n, k) for n in piece.steps for k in found[n]):
            step = self._tape.steps[number]
            assert isinstance(step, KernelStep)
            given = [self._argument(number, step, a) for a in kernel.arguments]
            if kernel.route is not None:
                given.append(f"size[{self._integer(number, step, kernel.route)}]")
            guard = "if (!run->failed) " if fails and _overwrites(kernel) else ""
            lines += [f"    {z}" for a in kernel.arguments if (z := self._zeros(number, step, a))]
            lines.append(f"    {guard}{kernel.name}({', '.join(('run', *given))});")
            fails = fails or kernel.may_fail
        head = (
            f"int64_t {piece.name}(relay_run *run) {{",
            "    char *const *at = run->at;",
            "    const int64_t *size = run->size;",
            "    const double *number = run->number;",
            *(f"    char *{name} = {place};" for name, place in self._addresses.values()),
            "    run->failed = 0;",
        )
        return "\n".join((*head, *lines, "    return run->failed;", "}", ""))

    def _argument(self, number: int, step: KernelStep, argument: object) -> str:
        match argument:
            case Read(operand, dtype):
                return f"(const {element_of(dtype).c} *){self._address(step.operands[operand])}"
            case Written(result, dtype, overwrites=overwrites):
                value = step.results[result] if overwrites is None else step.operands[overwrites]
                return f"({element_of(dtype).c} *){self._address(value)}"
            case Scratch(_, dtype):
                value = len(self._tape.types) + self._scratch_number(number, argument)
                return f"({element_of(dtype).c} *){self._address(value)}"
            case Size() | Stride():
                return f"size[{self._integer(number, step, argument)}]"
            case Number(operand, dtype):
                value = step.operands[operand]
                place = self._numbers.setdefault(value, len(self._numbers))
                return f"number[{place}]" if is_float(dtype) else f"((int64_t *)number)[{place}]"
            case _:
                raise AssertionError(argument)

    def _address(self, value: int) -> str:
        """Return the name of where a value lies: some bytes into the arena, if it has a slot."""
        if value not in self._addresses:
            names = self._tape.names
            wish = names[value] if value < len(names) else "scratch"
            name = re.sub(r"\W+", "_", wish, flags=re.ASCII) + "_at"
            name = f"_{name}" if name[0].isdigit() else name
            name = f"{name}_{value}" if name in self._locals else name
            self._locals.add(name)
            self._addresses[value] = name, self._place(value)
        return self._addresses[value][0]

    def _place(self, value: int) -> str:
        value = self._viewed.get(value, value)
        if value < len(self._tape.types) and value not in self._in_arena:
            return f"at[{value + 1}]"
        place = self._integers.setdefault(Offset(value), len(self._integers))
        return f"at[0] + size[{place}]"

    def _scratch_number(self, number: int, argument: Scratch) -> int:
        made = Made(number, argument)
        return self._scratch.setdefault(made, len(self._scratch))

    def _integer(self, number: int, step: KernelStep, argument: Size | Stride | Route) -> int:
        return self._integers.setdefault(Integer(number, argument), len(self._integers))

    def _zeros(self, number: int, step: KernelStep, argument: object) -> str | None:
        match argument:
            case (
                Written(dtype=dtype, shape=shape, starts_zero=True)
                | Scratch(dtype=dtype, shape=shape, starts_zero=True)
            ):
                count = self._integer(number, step, Size(product(shape) * (dtype.bits // 8)))
                pointer = self._argument(number, step, argument)
                return f"memset({pointer}, 0, size[{count}]);"
            case _:
                return None


def _overwrites(kernel: Kernel) -> bool:
    """Return whether a kernel writes to an operand."""
    return any(isinstance(a, Written) and a.overwrites is not None for a in kernel.arguments)
