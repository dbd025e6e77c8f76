"""Mistakes in calls of compiled functions from scripts (RL550 to RL579)."""

from __future__ import annotations

from dataclasses import dataclass

from ..diagnostic import Diagnostic, Label
from ..source import Span


@dataclass(frozen=True, slots=True)
class WrongArgument:
    """An argument of a call from a script is not what the parameter's annotation says."""

    function: str
    parameter: str
    declared: Span
    wanted: str
    actual: str
    way: str | None = None

    def diagnostic(self) -> Diagnostic:
        """Give the mistake as data."""
        return Diagnostic(
            code="RL550",
            title=f"`{self.function}` got {self.actual} as `{self.parameter}`",
            primary=Label(self.declared, f"`{self.parameter}` is {self.wanted}"),
            help=self.way,
        )


@dataclass(frozen=True, slots=True)
class WrongSize:
    """Two arguments disagree about a named size, or one about a fixed size."""

    function: str
    parameter: str
    declared: Span
    dim: str
    wanted: int
    because: str
    actual: int
    position: int

    def diagnostic(self) -> Diagnostic:
        """Give the mistake as data."""
        return Diagnostic(
            code="RL551",
            title=f"`{self.function}`: dimension {self.position} of `{self.parameter}` is "
            f"{self.actual}, not {self.wanted}",
            primary=Label(self.declared, f"`{self.dim}` is {self.wanted}{self.because}"),
        )


@dataclass(frozen=True, slots=True)
class MixedDevices:
    """Tensors on different devices are passed to one call."""

    function: str
    devices: tuple[str, ...]

    def diagnostic(self) -> Diagnostic:
        """Give the mistake as data."""
        return Diagnostic(
            code="RL553",
            title=f"`{self.function}` got tensors on {' and '.join(self.devices)}",
            primary=None,
            help=f"move them to one device: x.to({self.devices[0]!r})",
        )


@dataclass(frozen=True, slots=True)
class WrongCall:
    """The arguments of a call do not fit the function's signature."""

    function: str
    declared: Span
    why: str

    def diagnostic(self) -> Diagnostic:
        """Give the mistake as data."""
        return Diagnostic(
            code="RL554",
            title=f"`{self.function}`: {self.why}",
            primary=Label(self.declared, "declared here"),
        )


@dataclass(frozen=True, slots=True)
class WouldCompile:
    """A call inside `pyrelay.no_compile()` would have to compile something."""

    function: str
    why: str

    def diagnostic(self) -> Diagnostic:
        """Give the mistake as data."""
        return Diagnostic(
            code="RL555",
            title=f"`{self.function}` is not compiled for this call: {self.why}",
            primary=None,
            help="call it once with such arguments before `pyrelay.no_compile()`",
        )


@dataclass(frozen=True, slots=True)
class CyclicArgument:
    """An argument contains itself.

    Data is built from parts that exist before, so a program that walks it comes to an end; a value
    that was made to contain itself would be walked for ever.
    """

    function: str
    parameter: str
    declared: Span

    def diagnostic(self) -> Diagnostic:
        """Give the mistake as data."""
        return Diagnostic(
            code="RL556",
            title=f"`{self.function}` got a value as `{self.parameter}` that contains itself",
            primary=Label(self.declared, "declared here"),
            help="number its parts, and pass what refers to what as a tensor of numbers",
        )


@dataclass(frozen=True, slots=True)
class NotComparable:
    """`relay.equal` in a script meets something that is not compared, such as a function."""

    actual: str

    def diagnostic(self) -> Diagnostic:
        """Give the mistake as data."""
        return Diagnostic(
            code="RL557",
            title=f"`relay.equal` does not compare {self.actual}",
            primary=None,
            help="it compares tensors, numbers, strings, lists, tuples and data of these: compare "
            "the parts that are such",
        )
