"""Mistakes of gradients, found before anything runs (RL300 to RL399)."""

from __future__ import annotations

from ...dataclass import dataclass
from ..diagnostic import Diagnostic, Label
from ..source import Span


@dataclass(frozen=True, slots=True)
class NotAScalar:
    """A gradient is taken of a function whose result is not one float.

    `grad` and `value_and_grad` need a single number to differentiate. Sum or average the result,
    or use `vjp`, which takes a cotangent of the result's own shape.
    """

    span: Span
    transform: str
    function: str
    declared: Span
    result: str

    def diagnostic(self) -> Diagnostic:
        """Return the mistake as data."""
        return Diagnostic(
            code="RL301",
            title=f"`{self.transform}` needs a function that gives one float",
            primary=Label(self.span, f"`{self.function}` gives {self.result}"),
            secondary=(Label(self.declared, "defined here"),),
            help="reduce the result to one number, or use `relay.vjp`, which takes a cotangent",
        )


@dataclass(frozen=True, slots=True)
class NothingToDifferentiate:
    """A gradient is asked for a parameter that holds no floats.

    Integers, bools and strings have no gradient. What a cell or a model holds when the function is
    called is a constant to it; in the parameters of a model differentiate with
    `relay.grad(model, f, args)`.
    """

    span: Span
    function: str
    parameter: str
    declared: Span
    actual: str
    holds_cells: bool = False

    def diagnostic(self) -> Diagnostic:
        """Return the mistake as data."""
        way = "leave it out of `wrt`: only floats have gradients"
        if self.holds_cells:
            way = "pass what it holds, or for a model write `relay.grad(model, f, args)`"
        return Diagnostic(
            code="RL302",
            title=f"`{self.function}` cannot be differentiated with respect to `{self.parameter}`",
            primary=Label(self.span, "differentiated here"),
            secondary=(Label(self.declared, f"`{self.parameter}` is {self.actual}"),),
            help=way,
        )


@dataclass(frozen=True, slots=True)
class DifferentiatesItself:
    """A function takes the gradient of something that calls the function again.

    The order of the derivative would depend on how often the function runs, so there is no program
    to write for it. Take the gradient outside of the recursion, or write the orders out.
    """

    span: Span
    function: str
    declared: Span

    def diagnostic(self) -> Diagnostic:
        """Return the mistake as data."""
        return Diagnostic(
            code="RL303",
            title=f"`{self.function}` takes a gradient of something that calls `{self.function}`",
            primary=Label(self.span, "this gradient contains itself"),
            secondary=(Label(self.declared, "defined here"),),
            help="take the gradient outside of the recursion",
        )


@dataclass(frozen=True, slots=True)
class UnknownFunction:
    """A gradient is taken of a function that the compiler cannot see.

    The function comes from outside, through a parameter of the program, so its code is not known
    when the gradient is made. Pass a relay function by name, or call the gradient where the
    function is known.
    """

    span: Span
    why: str
    place: Span | None

    def diagnostic(self) -> Diagnostic:
        """Return the mistake as data."""
        return Diagnostic(
            code="RL304",
            title="the function to differentiate is not known here",
            primary=Label(self.span, "differentiated here"),
            secondary=() if self.place is None else (Label(self.place, self.why),),
            notes=(self.why,) if self.place is None else (),
            help="pass a function with @relay as an argument of its own, or take the gradient "
            "where it is named",
        )


@dataclass(frozen=True, slots=True)
class GrowingData:
    """A data type is defined in terms of ever larger versions of itself.

    Its gradient would need a new type at each level. Use the same type arguments in the recursion.
    """

    span: Span
    name: str

    def diagnostic(self) -> Diagnostic:
        """Return the mistake as data."""
        return Diagnostic(
            code="RL306",
            title=f"`{self.name}` grows with every level, so it has no gradient type",
            primary=Label(self.span, "differentiated here"),
        )


@dataclass(frozen=True, slots=True)
class GrowingTypes:
    """A function that is differentiated calls itself at ever larger types.

    A gradient is made for each type at which a function is called, and there is no end of these.
    Run forwards, such a function is one piece of code.
    """

    span: Span
    name: str
    place: Span

    def diagnostic(self) -> Diagnostic:
        """Return the mistake as data."""
        return Diagnostic(
            code="RL308",
            title=f"`{self.name}` calls itself at ever new types, so it has no gradient",
            primary=Label(self.span, "differentiated here"),
            secondary=(Label(self.place, "each call needs a gradient of its own"),),
            help="use the same type arguments in the recursion",
        )


@dataclass(frozen=True, slots=True)
class NoDerivative:
    """The result depends on an operator whose derivative nobody has stated.

    An operator of your own has a gradient if it is declared with one: `grad=` in
    `relay.operator`. To treat the value as a constant, write
    `relay.stop_gradient`.
    """

    span: Span
    operator: str
    why: str

    def diagnostic(self) -> Diagnostic:
        """Return the mistake as data."""
        return Diagnostic(
            code="RL307",
            title=f"`{self.operator}` has no gradient: {self.why}",
            primary=Label(self.span, "on the way from what is differentiated to the result"),
            help="declare it with `grad=`, or hold its operands constant: `relay.stop_gradient`",
        )
