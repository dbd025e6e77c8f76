"""One kernel, started again and again with the same grid, sizes and constants.

Triton's own way to start a kernel looks at every argument to find which compiled form it needs.
Here all that is known but the addresses, so the compiled kernel is kept for each way in which they
are aligned, the only thing of an address that compiled code depends on. Addresses are passed as
numbers: Triton then asks no tensor for its address, and the driver not whose it is.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, final

from ...dataclass import dataclass
from ..kernel import Config, Kernel
from .build import function_of, launch_options, triton_module
from .versions import silent_interpreter, starts_as_known

_ALIGNED: Final = 16
"""Compiled code may rely on addresses being multiples of this."""


@final
@dataclass(frozen=True, slots=True)
class Address:
    """An address with the dtype of what lies there, as Triton takes it in the place of a tensor."""

    value: int
    dtype: Any

    def data_ptr(self) -> int:
        """Return the address."""
        return self.value


@final
@dataclass(frozen=True, slots=True)
class Started:
    """Which values a kernel is started with: `fixed` are its arguments, None where one comes from
    the values of the call; `holes` says which one goes where, and of which dtype it is if it is an
    address."""

    fixed: tuple[int | None, ...]
    holes: tuple[tuple[int, int, Any], ...]

    def placed(self, numbers: Sequence[int]) -> Started:
        """Return the same where the values have other numbers."""
        holes = tuple((place, numbers[number], dtype) for place, number, dtype in self.holes)
        return Started(self.fixed, holes)

    def arguments(self, values: Sequence[Any]) -> list[Any]:
        """Return the arguments of one call."""
        found: list[Any] = list(self.fixed)
        for place, number, _ in self.holes:
            found[place] = values[number]
        return found


@final
class Launch:
    """One kernel, ready for certain sizes. Raises NoTriton."""

    def __init__(
        self, kernel: Kernel, config: Config, grid: tuple[int, ...], started: Started
    ) -> None:
        self.kernel: Final = kernel
        self.grid: Final = grid
        self._config: Final = config
        self._started: Final = started
        self._function: Final = function_of(kernel)
        self._named: Final[dict[str, Any]] = dict(config.constants) | launch_options(config)
        constants = dict(config.constants)
        order: Sequence[str] = self._function.arg_names[len(kernel.names) :]
        self._constants: Final = tuple(constants[name] for name in order)
        self._pointers: Final = tuple(place for place, _, dtype in started.holes if dtype)
        self._compiled: dict[tuple[int, ...], _Compiled] = {}
        self._hooks: Final = triton_module().knobs.runtime

    def placed(self, numbers: Sequence[int]) -> Launch:
        """Return the same kernel where the values of a call have other numbers."""
        made = Launch(self.kernel, self._config, self.grid, self._started.placed(numbers))
        made._compiled = self._compiled
        return made

    def interpret(self, tensors: Sequence[Any]) -> None:
        """Run the kernel in Triton's interpreter."""
        args = self._started.arguments(tensors)
        for place, _, dtype in self._started.holes:
            if dtype is None:
                args[place] = int(args[place])  # some interpreters take no bools
        with silent_interpreter():
            self._function[self.grid](*args, **self._named)

    def start(self, addresses: Sequence[Any], stream: int, *, is_aligned: bool) -> None:
        """Start the kernel on the current device. `is_aligned` says that all addresses are."""
        args = self._started.arguments(addresses)
        odd = () if is_aligned else tuple(p for p in self._pointers if args[p] % _ALIGNED)
        compiled = self._compiled.get(odd)
        if compiled is None or self._is_watched():
            self._compiled[odd] = _Compiled.of(self._as_triton_does(addresses))
            return
        compiled.start(self.grid, stream, args, self._constants)

    def _as_triton_does(self, addresses: Sequence[Any]) -> Any:
        """Start the kernel in Triton's own way; return it, compiled."""
        args = self._started.arguments(addresses)
        for place, _, dtype in self._started.holes:
            if dtype is not None:
                args[place] = Address(args[place], dtype)
        return self._function[self.grid](*args, **self._named)

    def _is_watched(self) -> bool:
        """Return whether a profiler wants to hear of every start."""
        hook = self._hooks.launch_enter_hook
        return bool(getattr(hook, "calls", hook))


@final
@dataclass(frozen=True, slots=True)
class _Compiled:
    """A compiled kernel, loaded to a device."""

    kernel: Any
    run: Any
    function: Any
    metadata: Any

    @classmethod
    def of(cls, kernel: Any) -> _Compiled:
        """Return the handle of a kernel that has been started once."""
        if not starts_as_known(triton_module()):
            return cls(kernel, None, None, None)
        return cls(kernel, kernel.run, kernel.function, kernel.packed_metadata)

    def start(
        self, grid: tuple[int, ...], stream: int, args: list[Any], constants: tuple[Any, ...]
    ) -> None:
        """Start the kernel on a stream; nobody watches."""
        if self.run is None:
            self.kernel[grid](*args, *constants, stream=stream)
            return
        x, y, z = grid
        self.run(
            *(x, y, z, stream, self.function, self.metadata),
            *(None, None, None),  # hooks before and after, and their metadata
            *args,
            *constants,
        )


def are_aligned(addresses: Sequence[int]) -> bool:
    """Return whether compiled code may rely on the addresses."""
    together = 0
    for address in addresses:
        together |= address
    return not together % _ALIGNED
