"""Mistakes in fixing arguments of functions (RL350 to RL359)."""

from __future__ import annotations

from ...dataclass import dataclass
from ..diagnostic import Diagnostic, Label
from ..misspelt import nearest
from ..source import Span


@dataclass(frozen=True, slots=True)
class NoSuchParameter:
    """A value is fixed for a parameter that the function does not have.

    `relay.specialise(f, n=3)` returns `f` without its parameter `n`. The names are those of the
    definition of `f`.
    """

    span: Span
    function: str
    name: str
    known: tuple[str, ...]

    def diagnostic(self) -> Diagnostic:
        """Return the mistake as data."""
        near = nearest(self.name, self.known)
        there = ", ".join(f"`{n}`" for n in self.known) or "none"
        return Diagnostic(
            code="RL350",
            title=f"`{self.function}` has no parameter `{self.name}`",
            primary=Label(self.span, f"its parameters are {there}"),
            help=None if near is None else f"did you mean `{near}`?",
        )


@dataclass(frozen=True, slots=True)
class NotFixed:
    """An argument cannot be fixed, since it is no value.

    Fixed can be numbers, bools, strings, tensors, tuples, lists, data and relay functions. The
    parameters of a model change with each update, a reference with each write, and a stream with
    each element; pass them as arguments of the function that `relay.specialise` returns. A function
    of models is specialised in its other arguments. What a transform makes of it is specialised
    after the transform: `relay.specialise(relay.grad(f, wrt="x"), n=3)`.
    """

    span: Span
    function: str
    name: str
    why: str

    def diagnostic(self) -> Diagnostic:
        """Return the mistake as data."""
        what = f"`{self.name}` of `{self.function}`" if self.name else f"`{self.function}`"
        return Diagnostic(
            code="RL351",
            title=f"{what} cannot be specialised",
            primary=Label(self.span, f"it {self.why}"),
            help="fix numbers, bools, strings, tensors, tuples, data or relay functions",
        )


@dataclass(frozen=True, slots=True)
class NameOfOption:
    """A parameter has the name of an option of `relay.specialise`.

    `relay.specialise(f, fast_math=True)` could fix the parameter `fast_math` of `f` or ask for the
    laws that hold of real numbers only, so it does neither. Without the option the function is
    specialised in its other parameters.
    """

    span: Span
    function: str
    name: str

    def diagnostic(self) -> Diagnostic:
        """Return the mistake as data."""
        return Diagnostic(
            code="RL352",
            title=f"`{self.name}` is a parameter of `{self.function}` and an option of"
            " relay.specialise",
            primary=Label(self.span, f"it has a parameter `{self.name}`"),
            help="rename the parameter, or specialise a function that passes it:"
            f" `def g(x): return {self.function}(x, {self.name}=True)`",
        )
