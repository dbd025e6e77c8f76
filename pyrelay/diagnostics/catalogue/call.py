"""Mistakes in calls of compiled functions from scripts (RL550 to RL579)."""

from __future__ import annotations

from collections.abc import Mapping

from ...dataclass import dataclass
from ..diagnostic import Diagnostic, Label
from ..source import NOWHERE, Span


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
        """Return the mistake as data."""
        return Diagnostic(
            code="RL550",
            title=f"`{self.function}` got {self.actual} as `{self.parameter}`",
            primary=Label(self.declared, f"`{self.parameter}` is {self.wanted}"),
            help=self.way,
        )


@dataclass(frozen=True, slots=True)
class WrongParameters:
    """A parameter of a model has another dtype than the definition computes with.

    The dtypes of parameters follow from the annotations; `model.double()` and its like change the
    parameters and not what is annotated.
    """

    function: str
    declared: Span
    actual: str
    way: str

    def diagnostic(self) -> Diagnostic:
        """Return the mistake as data."""
        return Diagnostic(
            code="RL560",
            title=f"a parameter of the model is {self.actual}, which `{self.function}` does not "
            "compute with",
            primary=Label(self.declared, "its annotations say the dtypes"),
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
    way: str | None = None

    def diagnostic(self) -> Diagnostic:
        """Return the mistake as data."""
        dim = "it" if self.dim == str(self.wanted) else f"`{self.dim}`"
        return Diagnostic(
            code="RL551",
            title=f"`{self.function}`: dimension {self.position} of `{self.parameter}` is "
            f"{self.actual}, not {self.wanted}",
            primary=Label(self.declared, f"{dim} is {self.wanted}{self.because}"),
            help=self.way,
        )


@dataclass(frozen=True, slots=True)
class NoSizeFits:
    """A dimension has a length that its annotation cannot have.

    `2*N` is even for every size `N`, so an argument of length 5 does not fit.
    """

    function: str
    parameter: str
    declared: Span
    dim: str
    known: Mapping[str, int]
    actual: int
    position: int
    name: str

    def diagnostic(self) -> Diagnostic:
        """Return the mistake as data."""
        known = " and ".join(f"`{n}` is {v}" for n, v in self.known.items())
        where = f" where {known}" if known else ""
        no_size = f"`{self.dim}` is {self.actual} for no size `{self.name}`"
        reason = no_size if self.name else f"`{self.dim}` has no value"
        return Diagnostic(
            code="RL561",
            title=f"`{self.function}`: dimension {self.position} of `{self.parameter}` is "
            f"{self.actual}, which is no `{self.dim}`",
            primary=Label(self.declared, reason + where),
        )


@dataclass(frozen=True, slots=True)
class TwoTypes:
    """Two arguments, or parts of them, are of one type parameter and have different types.

    A type parameter stands for any type, but for one in each call. Numbers are of different types
    if one has a point and the other has none.
    """

    function: str
    variable: str
    first: tuple[str, Span, str]
    """A value's name, where it is declared, and its type."""
    second: tuple[str, Span, str]

    def diagnostic(self) -> Diagnostic:
        """Return the mistake as data."""
        (first, declared, before), (second, place, after) = self.first, self.second
        here = f"`{second}` is {after}"
        there = f"`{first}` is {before}"
        is_one = declared == place
        return Diagnostic(
            code="RL559",
            title=f"`{self.function}` got {before} as `{first}` and {after} as `{second}`: both "
            f"are `{self.variable}`",
            primary=Label(place, f"{there}, {here}" if is_one else here),
            secondary=() if is_one else (Label(declared, there),),
            help="give both one type, or annotate them with two type parameters",
        )


@dataclass(frozen=True, slots=True)
class MixedDevices:
    """Tensors on different devices are passed to one call.

    A program runs on one device, and moves nothing by itself: a copy between devices is slow, and
    waits for both. Numbers and numpy arrays go where the tensors are.
    """

    function: str
    placed: tuple[tuple[str, Span, tuple[str, ...]], ...]
    """An argument: its name, where it is declared, and the devices of the tensors in it."""
    target: str
    """The device to which the others are best moved."""

    def diagnostic(self) -> Diagnostic:
        """Return the mistake as data."""
        devices = sorted({d for _, _, found in self.placed for d in found})
        moving = next(p for p in self.placed if p[2] != (self.target,))
        labels = [Label(span, f"{name} is on {' and '.join(d)}") for name, span, d in self.placed]
        first = labels[self.placed.index(moving)]
        has_place = bool(first.span.text)
        others = [label for label in labels if label is not first and label.span.text]
        owner, _, found = moving
        name = owner.strip("`") if owner.startswith("`") else "model"
        one = f"move {owner}: {name}.to({self.target!r})"
        return Diagnostic(
            code="RL553",
            title=f"`{self.function}` got tensors on {' and '.join(devices)}",
            primary=first if has_place else None,
            secondary=tuple(others) if has_place else (),
            notes=() if has_place else tuple(label.text for label in labels),
            help=one if len(found) == 1 else f"move what {owner} holds to {self.target!r}",
        )


@dataclass(frozen=True, slots=True)
class NoDevice:
    """A device is asked for that is not there.

    It is never replaced by another one: a program for a GPU that runs elsewhere would
    only be slow, and nobody would know why.
    """

    given: str
    why: str | None
    near: str | None

    def diagnostic(self) -> Diagnostic:
        """Return the mistake as data."""
        suggestion = f"; did you mean {self.near!r}?" if self.near else ""
        is_known = self.why is not None
        return Diagnostic(
            code="RL558",
            title=f"there is no device {self.given!r} here"
            if is_known
            else f"torch knows no device {self.given!r}{suggestion}",
            primary=None,
            notes=() if self.why is None else (f"torch says: {self.why}",),
            help="`python -m pyrelay doctor` lists the devices; without `device` the model is made "
            "on the CPU",
        )


@dataclass(frozen=True, slots=True)
class WrongCall:
    """The arguments of a call do not fit the function's signature."""

    function: str
    declared: Span
    why: str
    instead: str | None = None

    def diagnostic(self) -> Diagnostic:
        """Return the mistake as data."""
        return Diagnostic(
            code="RL554",
            title=f"`{self.function}`{_joined(self.why)}",
            primary=Label(self.declared, "" if self.declared == NOWHERE else "declared here"),
            help=self.instead,
        )


def _joined(why: str) -> str:
    """Return the rest of a sentence behind its subject, or a sentence of its own."""
    return f" {why}" if why.startswith(("has ", "takes ")) else f": {why}"


@dataclass(frozen=True, slots=True)
class WouldCompile:
    """A call inside `pyrelay.no_compile()` would have to compile something."""

    function: str
    why: str

    def diagnostic(self) -> Diagnostic:
        """Return the mistake as data."""
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
        """Return the mistake as data."""
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
        """Return the mistake as data."""
        return Diagnostic(
            code="RL557",
            title=f"`relay.equal` does not compare {self.actual}",
            primary=None,
            help="it compares tensors, numbers, strings, lists, tuples and data of these: compare "
            "the parts that are such",
        )


@dataclass(frozen=True, slots=True)
class TooManyDims:
    """An argument has more sizes than may stand in the place of `...`."""

    span: Span
    name: str
    declared: str
    number: int

    def diagnostic(self) -> Diagnostic:
        """Return the mistake as data."""
        return Diagnostic(
            code="RL562",
            title=f"`...` of `{self.name}` would stand for {self.number} sizes",
            primary=Label(self.span, f"this is {self.declared}, with at most 16 sizes there"),
            help="reshape it: `x.flatten(1)` makes the sizes after the first one",
        )
