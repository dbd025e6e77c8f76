"""Backends: what makes the kernels of fused tensor code and runs them.

Fusion takes tensor code out as kernel functions, and runs of them as region functions; both are
global functions of the program, and host code calls them by name. A backend returns the callables
that take their places. Whatever it does not run it leaves to the *fallback*, which computes the
same by calls of torch.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, Protocol, TypeAlias, final, runtime_checkable

from ..config import ADDED_LOWERINGS, lowerings
from ..dataclass import dataclass
from ..ir.expr import Call, Function
from ..ir.module import Module
from ..passes.base import Pass
from ..registry import Registry, Removable
from .groups import Group
from .tape import Tape

Run: TypeAlias = Callable[..., Any]
"""Called with the operands in the order of the parameters: tensors, and numbers for sizes and
scalars of the host. Returns the result, or a tuple of the results."""


class Direct(Protocol):
    """Calls of a function that a backend runs whole. `latest` does one, and may be another function
    after it. What it makes is in storage of its own."""

    latest: Run


@runtime_checkable
class RunsWhole(Protocol):
    """A `Run` of a function that a backend runs whole, without torch."""

    def direct(self, fallback: Run) -> Direct | None:
        """Return the callable for calls that torch neither records nor transforms; `fallback` does
        those that the backend does not. None as long as it does none."""
        ...


@runtime_checkable
class RunsSettled(Protocol):
    """A `Run` that looks at its operands in each call: at their classes, shapes and strides."""

    def settled(self, args: Sequence[Any]) -> Run | None:
        """Return the callable for operands of which these are the same as of `args`, which looks at
        none, and calls nothing that torch could record or transform. None as long as there is
        none."""
        ...


class Device(Protocol):
    """A device, as torch names it."""

    @property
    def type(self) -> str:
        """The kind of device: `cpu`, `cuda`."""
        ...


@final
@dataclass(frozen=True, slots=True, eq=False)
class KernelFunction:
    """A kernel function: one loop over elements, rows or products, described by `group`."""

    name: str
    group: Group
    identity: str | None = None
    """A text that determines the kernel in every process; None if that is not known."""

    @property
    def function(self) -> Function:
        """The function, in A-normal form and without branches."""
        return self.group.function

    @property
    def overwritten(self) -> tuple[int, ...]:
        """The positions of the parameters that the kernel writes to."""
        return self.group.overwritten


@final
@dataclass(frozen=True, slots=True, eq=False)
class RegionFunction:
    """A region function: a straight line of calls of kernels and of torch.

    `function` is the region after the passes of the backend, `kernels` are the kernels that it
    calls, `overwritten` are the positions of the parameters that it writes to. `tape` has its steps
    and the static memory plan; it is there for regions in the form of `fusion.segments`.
    """

    name: str
    function: Function
    kernels: Mapping[str, KernelFunction]
    tape: Tape | None
    overwritten: tuple[int, ...]
    identity: str | None = None
    """A text that determines the region in every process; None if that is not known."""


@final
@dataclass(frozen=True, slots=True, eq=False)
class ProgramFunction:
    """Another global function of a program, after the passes of the backend: code over scalars, or
    a loop that calls regions."""

    name: str
    module: Module
    """The program that it is a function of."""

    @property
    def function(self) -> Function:
        """The function, in A-normal form."""
        return self.module.functions[self.name]


class FailedInside(Exception):  # noqa: N818  becomes an error at the user's line
    """A call failed inside of a function that a backend runs whole: the call of an operator, on
    these operands; or that of a function, because too many calls wait for each other."""

    def __init__(self, call: Call, operands: Sequence[float]) -> None:
        super().__init__(call, operands)
        self.call: Final = call
        self.operands: Final = tuple(operands)


@final
@dataclass(frozen=True, slots=True)
class Finding:
    """A fact about one kernel or function of a backend, under a heading, for `explain`."""

    heading: str
    kernel: str
    text: str


class Backend(ABC):
    """A maker of kernels, chosen by the option `lowering`."""

    cuts: Sequence[Pass] = ()
    """The passes behind fusion that take more out of a program as kernel functions."""
    passes: Sequence[Pass] = ()
    """The passes that a program in regions goes through for this backend."""

    name: str
    """The value of the option `lowering` that chooses the backend."""
    description: str
    """A phrase that names what runs the program, such as `kernels run it on a GPU`."""

    @abstractmethod
    def unavailable(self, device: Device) -> str | None:
        """Return why nothing can be run on a device; None where it can."""

    @abstractmethod
    def kernel(self, kernel: KernelFunction, device: Any, fallback: Run) -> Run:
        """Return the callable that replaces a kernel function on a device; `fallback` where the
        backend makes no kernel of it."""

    def region(
        self, region: RegionFunction, device: Any, called: Callable[[str], Run], fallback: Run
    ) -> Run:
        """Return the callable that replaces a region function. `called` returns what is called in
        the place of another function by its name. The fallback calls them one by one."""
        return fallback

    def function(
        self, function: ProgramFunction, device: Any, called: Callable[[str], Run], fallback: Run
    ) -> Run:
        """Return the callable that replaces another global function, which a backend may run whole;
        the fallback is its host code."""
        return fallback

    def text(self, kernel: KernelFunction) -> str:
        """Return the text of a kernel for `show`; empty if the backend generates none."""
        return ""

    def region_text(self, region: RegionFunction) -> str:
        """Return the text of a region for `show`, without its kernels; empty if the backend
        generates none."""
        return ""

    def findings(self, kernels: Iterable[KernelFunction]) -> Iterator[Finding]:
        """Yield facts about kernels for `explain`."""
        yield from ()

    def function_text(self, function: ProgramFunction) -> str:
        """Return the text of another function for `show`; empty if its host code runs."""
        return ""

    def function_findings(self, functions: Iterable[ProgramFunction]) -> Iterator[Finding]:
        """Yield facts about other functions for `explain`."""
        yield from ()

    def versions(self) -> Iterator[tuple[str, str]]:
        """Yield names and values of what the backend depends on, for `doctor`."""
        yield from ()


@final
@dataclass(frozen=True, slots=True, eq=False)
class Registration(Removable):
    """A backend that the option `lowering` can choose."""

    backend: Backend

    def remove(self) -> None:
        """Take the backend away; nothing happens if that is done."""
        _REGISTERED.remove(self)
        ADDED_LOWERINGS.change(lambda _: (r.backend.name for r in _REGISTERED.all))


_REGISTERED: Final[Registry[Registration]] = Registry()


def register(backend: Backend) -> Registration:
    """Let the option `lowering` choose a backend. Raises ValueError if its name is taken."""
    if backend.name in lowerings():
        raise ValueError(f"there is a lowering {backend.name!r} already")
    registration = Registration(backend)
    _REGISTERED.add(registration)
    ADDED_LOWERINGS.add(backend.name)
    return registration


def backends() -> Mapping[str, Backend]:
    """Return the backends that were registered, by name."""
    return {r.backend.name: r.backend for r in _REGISTERED.all}
