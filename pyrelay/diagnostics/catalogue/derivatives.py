"""Mistakes in derivatives that users write (RL340 to RL349)."""

from __future__ import annotations

from ...dataclass import dataclass
from ..diagnostic import Diagnostic, Label
from ..source import Span


@dataclass(frozen=True, slots=True)
class RuleMismatch:
    """A rule of a derivative does not fit the function that it is for.

    With `f: A -> B`, `relay.custom_vjp(fwd, bwd)` takes `fwd: A -> (B, R)`, whose second result is
    anything that the backward function needs, and `bwd: (R, B) -> dA`. `dA` has a cotangent for
    each parameter that holds floats, of the type of the parameter: one bare, several as a tuple.
    `relay.custom_jvp(rule)` takes a rule of the type of `relay.jvp(f)`: of a tuple of the arguments
    and a tuple of directions, with the value and its tangent as the result. Integers, bools and
    strings have no cotangents and no directions.
    """

    span: Span
    used: Span
    rule: str
    form: str
    why: str
    wanted: str

    def diagnostic(self) -> Diagnostic:
        """Return the mistake as data."""
        return Diagnostic(
            code="RL340",
            title=f"this function does not fit as a rule of `relay.{self.rule}`",
            primary=Label(self.span, f"it {self.why}"),
            secondary=() if self.used == self.span else (Label(self.used, "the derivative"),),
            notes=(f"the rule {self.form}",),
            help=f"make it `{self.wanted}`",
        )


@dataclass(frozen=True, slots=True)
class RuleNeedsModels:
    """A function with a derivative of its own, or one of its rules, uses a model.

    The rules return cotangents for the parameters of the function, and the parameters of a model
    are none of these, so their gradient would be lost. Let the function take tensors: call the
    model in the function around it, or pass its weights.
    """

    span: Span
    rule: str
    function: str

    def diagnostic(self) -> Diagnostic:
        """Return the mistake as data."""
        return Diagnostic(
            code="RL342",
            title=f"`{self.function}` uses a model, whose gradient `relay.{self.rule}` would lose",
            primary=Label(self.span, "this derivative says nothing about parameters of models"),
            help="call the model in the function around it, and pass tensors",
        )


@dataclass(frozen=True, slots=True)
class RunsAgain:
    """A function under `relay.checkpoint` does more than compute, so it must not run twice.

    What it computes is computed again for the gradient. A second run would print again, read a
    state that has changed, or, in a recursion through the checkpoint, compute again what is being
    computed again. Random numbers that come from a key are the same in both runs.
    """

    span: Span
    why: str
    way: str

    def diagnostic(self) -> Diagnostic:
        """Return the mistake as data."""
        return Diagnostic(
            code="RL343",
            title=f"a function under `relay.checkpoint` runs twice, and {self.why}",
            primary=Label(self.span, "its gradient would run it again"),
            help=self.way,
        )


@dataclass(frozen=True, slots=True)
class NothingOfThatName:
    """The policy of a checkpoint names a value that its function does not have.

    A policy saves values that the function, or a function that it calls, gives a name to outside of
    loops, branches and local functions, and that its gradient depends on.
    """

    span: Span
    name: str

    def diagnostic(self) -> Diagnostic:
        """Return the mistake as data."""
        return Diagnostic(
            code="RL344",
            title=f"there is no value `{self.name}` to save",
            primary=Label(self.span, "the policy of this checkpoint names it"),
            help="name a value that is assigned outside of loops and branches, or leave it out",
        )


@dataclass(frozen=True, slots=True)
class CapturedIsVaried:
    """A function with a derivative of its own captures a value that is differentiated.

    Its rules return cotangents for its parameters alone, so the gradient in what it captures would
    be lost. Pass the value as an argument, or, if it is to be a constant, capture
    `relay.stop_gradient` of it.
    """

    span: Span
    rule: str
    name: str

    def diagnostic(self) -> Diagnostic:
        """Return the mistake as data."""
        return Diagnostic(
            code="RL341",
            title=f"the gradient in `{self.name}` would be lost: a function under "
            f"`relay.{self.rule}` captures it",
            primary=Label(self.span, f"this derivative says nothing about `{self.name}`"),
            help=f"make `{self.name}` a parameter of the function and of its rules, or capture "
            f"`relay.stop_gradient({self.name})`",
        )


@dataclass(frozen=True, slots=True)
class RuleOfBatch:
    """A derivative is taken of a function over a batch that calls a function with a rule.

    `relay.vmap` batches what the function computes, not its rule, so the derivative of the batch
    would be another one. Take the derivative first: `relay.vmap(relay.grad(f))` follows the rule.
    """

    span: Span
    ruled: Span
    rule: str

    def diagnostic(self) -> Diagnostic:
        """Return the mistake as data."""
        return Diagnostic(
            code="RL345",
            title="the derivative of a function over a batch would not follow a rule in it",
            primary=Label(self.span, "this is taken after `relay.vmap`"),
            secondary=(Label(self.ruled, "the rule"),),
            help="take the derivative first: `relay.vmap(relay.grad(f))`",
        )
