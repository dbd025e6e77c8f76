"""Mentions of models and of operators with hidden parameters.

Codes RL100 to RL149, with `language`.
"""

from __future__ import annotations

from ...dataclass import dataclass
from ..diagnostic import Diagnostic, Label
from ..source import Span


@dataclass(frozen=True, slots=True)
class HiddenOutsideModel:
    """An operator leaves out a weight where there is no model to keep one."""

    span: Span
    operator: str
    operand: str
    function: str

    def diagnostic(self) -> Diagnostic:
        """Return the mistake as data."""
        return Diagnostic(
            code="RL115",
            title=f"`{self.operator}` has no `{self.operand}` and `{self.function}` is not a model",
            primary=Label(self.span, f"this needs a hidden `{self.operand}`"),
            help=f"decorate `{self.function}` with @relay_model, or pass `{self.operand}=`",
        )


@dataclass(frozen=True, slots=True)
class UnknownModel:
    """A value may be one of several models, or an unknown one.

    Which parameters a model has follows from its definition, so it must be clear from the text.
    """

    span: Span

    def diagnostic(self) -> Diagnostic:
        """Return the mistake as data."""
        return Diagnostic(
            code="RL120",
            title="this model is unknown",
            primary=Label(self.span, "a model, by name, is needed here"),
            help="pass the model as a parameter annotated `Model[net]`, and name that parameter",
        )


@dataclass(frozen=True, slots=True)
class ModelOverLoop:
    """A name is a model before a loop, and something else after a round of it.

    A model does not become another one: its parameters change in their place.
    """

    span: Span
    name: str
    loop: Span

    def diagnostic(self) -> Diagnostic:
        """Return the mistake as data."""
        return Diagnostic(
            code="RL126",
            title=f"`{self.name}` is a model, and something else after a round of this loop",
            primary=Label(self.span, f"`{self.name}` gets another value here"),
            secondary=(Label(self.loop, "it is a model when this loop starts"),),
            help="its parameters change by `relay.update_model_params(model, grads, lr=0.1)`, "
            "which gives nothing; give other values other names",
        )


@dataclass(frozen=True, slots=True)
class ModelNotMentioned:
    """A function is differentiated in a model that it does not use."""

    span: Span
    function: str
    model: str

    def diagnostic(self) -> Diagnostic:
        """Return the mistake as data."""
        return Diagnostic(
            code="RL121",
            title=f"`{self.function}` does not use the model `{self.model}`",
            primary=Label(self.span, f"its gradient in the parameters of `{self.model}` is zero"),
            help=f"call `{self.model}(...)` in `{self.function}`, or differentiate in arguments: "
            f"`relay.grad({self.function})(...)`",
        )


@dataclass(frozen=True, slots=True)
class RepeatedName:
    """Two hidden parameters of a model have one name."""

    span: Span
    name: str
    first: Span

    def diagnostic(self) -> Diagnostic:
        """Return the mistake as data."""
        return Diagnostic(
            code="RL122",
            title=f"two hidden parameters are named `{self.name}`",
            primary=Label(self.span, "named so again"),
            secondary=(Label(self.first, "named so first"),),
            help="give one of them another name, or `name=`",
        )


@dataclass(frozen=True, slots=True)
class EndlessModel:
    """A model contains itself through another model, so it would have parameters without end."""

    span: Span
    name: str

    def diagnostic(self) -> Diagnostic:
        """Return the mistake as data."""
        return Diagnostic(
            code="RL123",
            title=f"`{self.name}` contains itself through another model",
            primary=Label(self.span, "this would be a new instance in every round"),
            help="let a model call itself directly, which means the same instance, or write the "
            "parts as one model",
        )


@dataclass(frozen=True, slots=True)
class OtherModel:
    """Two mentions of a model, or a mention and the model passed, differ in static arguments."""

    span: Span
    name: str
    here: str
    there: str

    def diagnostic(self) -> Diagnostic:
        """Return the mistake as data."""
        return Diagnostic(
            code="RL124",
            title=f"this is not the same `{self.name}`",
            primary=Label(self.span, f"here it has {self.here or 'no static arguments'}"),
            notes=(f"elsewhere it has {self.there or 'no static arguments'}",),
            help="pass each instance as a parameter annotated "
            f"`Model[{self.name}]`, and call those",
        )


@dataclass(frozen=True, slots=True)
class ImplicitMissing:
    """An implicit value is needed where nothing supplies it.

    A function that calls one with an implicit value takes the value too, and passes it on. Where
    the callee is known only as a value, as a model annotated `Model` is, the call has to give it.
    """

    span: Span
    name: str

    def diagnostic(self) -> Diagnostic:
        """Return the mistake as data."""
        return Diagnostic(
            code="RL128",
            title=f"nothing supplies the implicit `{self.name}` here",
            primary=Label(self.span, f"needs `{self.name}`"),
            help=f"pass it by name: `{self.name}=...`",
        )


@dataclass(frozen=True, slots=True)
class ImplicitNameTaken:
    """An implicit value has the name of a parameter, or of another implicit value.

    Calls supply all of them by name.
    """

    span: Span
    function: str
    name: str

    def diagnostic(self) -> Diagnostic:
        """Return the mistake as data."""
        return Diagnostic(
            code="RL129",
            title=f"`{self.function}` has two values named `{self.name}`",
            primary=Label(self.span, f"also needs the implicit `{self.name}`"),
            help=f"give one of them another name: `relay.implicit({self.name + '_2'!r}, ...)`",
        )
