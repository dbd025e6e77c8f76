"""The methods of one call of an operator, and which of them its operands take.

Generated code writes `conv2d__1[x.shape](x, weight, bias)`: a look-up by the sizes that the types
leave open returns the function to call. Where sizes are met for the first time the methods are
timed on the very operands, once a machine: what was found is kept (`measurements`). Sizes that are
close to each other share a measurement, so a program that meets thousands of them measures tens.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, Final, TypeAlias, final

import torch
from torch.autograd import forward_ad
from torch.utils._python_dispatch import is_in_torch_dispatch_mode

from ..config import current
from ..dataclass import dataclass
from ..ir.op import Method
from .measurements import key_of, settle, winner_of
from .timing import fastest

_MOST_SIZES: Final = 4096
"""How many combinations of sizes a call remembers."""

_MOST_ROOM: Final = 1 << 24
"""How many numbers a method may store besides its operands and its result: 64 MB of floats."""

PLAIN: Final = "plain"
"""The name of the operator's own body among the methods."""

_functions_are_transformed: Final = torch._C._are_functorch_transforms_active  # noqa: SLF001  # pyright: ignore[reportPrivateUsage]
_modes: Final = torch._C._len_torch_dispatch_stack  # noqa: SLF001  # pyright: ignore[reportPrivateUsage]
_recording: Final = torch._C._get_tracing_state  # noqa: SLF001  # pyright: ignore[reportPrivateUsage]

Function: TypeAlias = Callable[..., Any]


@final
@dataclass(frozen=True, slots=True)
class MeasuredCall:
    """A call: the operator with its attributes as text, the methods beside its own body,
    and for each operand which of its sizes the types leave open."""

    name: str
    methods: tuple[Method, ...]
    open_sizes: tuple[tuple[bool, ...], ...]


@final
class Site(dict[Any, Function]):
    """From sizes, in any form, to the function that does a call with them fastest."""

    def __init__(
        self, called: MeasuredCall, functions: Callable[[], Mapping[str, Function]]
    ) -> None:
        """`functions` returns the functions that do the call, by the name of the method, `PLAIN`
        first."""
        super().__init__()
        self._called: Final = called
        self._functions: Final = functions

    def __missing__(self, sizes: Any) -> Function:
        return partial(self._first, sizes)

    def _first(self, sizes: Any, *operands: Any) -> Any:
        """Do the first call with sizes."""
        functions = self._functions()
        if not _are_real(operands):
            return functions[PLAIN](*operands)
        function = functions[self._choose(functions, operands)]
        if len(self) >= _MOST_SIZES:
            self.clear()
        self[sizes] = function
        return function(*operands)

    def _choose(self, functions: Mapping[str, Function], operands: Sequence[Any]) -> str:
        if any(v is not None and v.numel() == 0 for v in operands):
            return PLAIN
        fits = {PLAIN, *(m.name for m in self._called.methods if _has_room(m, operands))}
        if len(fits) == 1:
            return PLAIN
        key = self._key(operands)
        known = winner_of(key, fits)
        if known is not None:
            return known
        return self._measure(key, {n: f for n, f in functions.items() if n in fits}, operands)

    def _key(self, operands: Sequence[torch.Tensor | None]) -> str:
        found: list[Any] = []
        for operand, is_open in zip(operands, self._called.open_sizes, strict=True):
            if operand is None:
                found.append(None)
                continue
            sizes = zip(operand.shape, is_open, strict=True)
            found.append([rounded(n) if is_one else n for n, is_one in sizes] + _layout(operand))
        return key_of(self._called.name, found)

    def _measure(
        self, key: str, functions: Mapping[str, Function], operands: Sequence[torch.Tensor | None]
    ) -> str:
        found = fastest(functions, operands)
        shapes = ", ".join(str(tuple(v.shape)) for v in operands if v is not None)
        settle(key, f"{self._called.name} of {shapes}", found)
        return found.name


def may_choose() -> bool:
    """Return whether programs that run here choose methods: not where torch watches, since its
    transforms have rules for the operators that torch calls itself, and for no others."""
    return current().measure and not is_watched()


def is_transformed() -> bool:
    """Return whether torch transforms the calls made now: forward derivatives, `torch.func`."""
    return forward_ad._current_level >= 0 or _functions_are_transformed()  # noqa: SLF001  # pyright: ignore[reportPrivateUsage]


def is_watched() -> bool:
    """Return whether torch transforms the calls made now, records them, or has a mode that sees
    them: tensors need have no storage then, and only calls of torch work."""
    is_plain = not _functions_are_transformed() and not _modes() and _recording() is None
    return not is_plain or forward_ad._current_level >= 0  # noqa: SLF001  # pyright: ignore[reportPrivateUsage]


def rounded(size: int) -> int:
    """Return a size with the others like it: from 16 on there are four between powers of two."""
    step = 1 << max(0, size.bit_length() - 3)
    return size if size <= 16 else -(-size // step) * step


def _has_room(method: Method, operands: Sequence[torch.Tensor | None]) -> bool:
    if method.room is None:
        return True
    return method.room(*(None if v is None else v.shape for v in operands)) <= _MOST_ROOM


def _layout(operand: torch.Tensor) -> list[Any]:
    """Return the facts besides sizes that the speed of a call may depend on: how the dims lie in
    memory."""
    if operand.is_contiguous():
        return []
    order = sorted(range(operand.dim()), key=operand.stride, reverse=True)
    return ["".join(map(str, order))]


def _are_real(operands: Sequence[Any]) -> bool:
    """Return whether operands are tensors of numbers, not those of a tracer that only looks on."""
    kinds = {type(v) for v in operands if v is not None}
    if not kinds <= {torch.Tensor, torch.nn.Parameter} or torch.compiler.is_compiling():
        return False
    return not is_in_torch_dispatch_mode()
