"""Mistakes with models and their parameters (RL400 to RL499)."""

from __future__ import annotations

from ...dataclass import dataclass
from ..diagnostic import Diagnostic, Label
from ..misspelt import did_you_mean
from ..source import Span


@dataclass(frozen=True, slots=True)
class ModelMissing:
    """A function that mentions a model is called without an instance of it.

    In `@relay` code every mention of a model definition means one implicit instance, which the
    caller supplies.
    """

    function: str
    model: str
    span: Span

    def diagnostic(self) -> Diagnostic:
        """Return the mistake as data."""
        return Diagnostic(
            code="RL401",
            title=f"`{self.function}` uses the parameters of `{self.model}`, and got no model",
            primary=Label(self.span, f"`{self.function}` mentions `{self.model}`"),
            help=f"create one, `model = relay.create_model({self.model})`, and pass it: "
            f"`model.bind({self.function})(...)` or "
            f"`relay.value_and_grad(model, {self.function}, (...))`",
        )


@dataclass(frozen=True, slots=True)
class OpenDims:
    """The shapes of a model's parameters depend on sizes that nothing fixes yet."""

    model: str
    span: Span
    parameter: str
    shape: str
    dims: tuple[str, ...]

    def diagnostic(self) -> Diagnostic:
        """Return the mistake as data."""
        sizes = ", ".join(f"{d}: ..." for d in self.dims)
        return Diagnostic(
            code="RL402",
            title=f"the parameter `{self.parameter}` of `{self.model}` has the open shape "
            f"{self.shape}",
            primary=Label(self.span, f"`{self.model}` leaves {', '.join(self.dims)} open"),
            help=f"say the sizes: relay.create_model({self.model}, dims={{{sizes}}})",
        )


@dataclass(frozen=True, slots=True)
class UnknownDim:
    """A size is given for a name that is no open size of the model."""

    span: Span
    model: str
    name: str
    known: tuple[str, ...]

    def diagnostic(self) -> Diagnostic:
        """Return the mistake as data."""
        known = ", ".join(self.known)
        return Diagnostic(
            code="RL415",
            title=f"`{self.model}` leaves no size `{self.name}` open",
            primary=Label(self.span, ""),
            help=f"its open sizes are {known}" if known else "leave `dims` out",
        )


@dataclass(frozen=True, slots=True)
class OpenParameter:
    """Compiled code makes a model whose shapes nothing in the function fixes."""

    span: Span
    parameter: str

    def diagnostic(self) -> Diagnostic:
        """Return the mistake as data."""
        return Diagnostic(
            code="RL416",
            title=f"the shape of the parameter `{self.parameter}` is not known where the model "
            "is made",
            primary=Label(self.span, "the model is made here"),
            help="say the open sizes: `relay.create_model(net, dims={K: ...})`, or call the "
            "model in this function",
        )


@dataclass(frozen=True, slots=True)
class WrongModel:
    """A model of one definition is passed where another is wanted."""

    function: str
    wanted: str
    actual: str
    span: Span

    is_old: bool = False
    """Whether both have one name: that of the model has been defined anew since it was made."""

    def diagnostic(self) -> Diagnostic:
        """Return the mistake as data."""
        of = f"the old `{self.actual}`" if self.is_old else f"`{self.actual}`"
        way = f"`{self.actual}` was defined anew: make the model again" if self.is_old else None
        return Diagnostic(
            code="RL403",
            title=f"`{self.function}` wants a model of {self.wanted}, not of {of}",
            primary=Label(self.span, f"`{self.function}` uses {self.wanted}"),
            help=way,
        )


@dataclass(frozen=True, slots=True)
class NoSuchParameter:
    """A mapping of parameters or gradients names something that the model does not have."""

    model: str
    name: str
    nearest: str | None

    def diagnostic(self) -> Diagnostic:
        """Return the mistake as data."""
        return Diagnostic(
            code="RL404",
            title=f"`{self.model}` has no parameter `{self.name}`",
            primary=None,
            help=did_you_mean(self.nearest),
        )


@dataclass(frozen=True, slots=True)
class NotAModel:
    """Something that is not a model, or not a model definition, is used as one."""

    what: str
    actual: str
    way: str
    span: Span | None = None

    def diagnostic(self) -> Diagnostic:
        """Return the mistake as data."""
        return Diagnostic(
            code="RL405",
            title=f"{self.what}, not {self.actual}",
            primary=None if self.span is None else Label(self.span, "defined here"),
            help=self.way,
        )


@dataclass(frozen=True, slots=True)
class DefinitionCalled:
    """A model definition is called as if it had parameters; only its instances do."""

    model: str
    span: Span

    def diagnostic(self) -> Diagnostic:
        """Return the mistake as data."""
        return Diagnostic(
            code="RL406",
            title=f"`{self.model}` is the definition of a model and has no parameters",
            primary=Label(self.span, "defined here"),
            help=f"make an instance and call that: model = relay.create_model({self.model})",
        )


@dataclass(frozen=True, slots=True)
class SecondOptimizer:
    """One model of a program is updated by two optimisers.

    Each would remember its own part of the way, and none the whole.
    """

    span: Span
    first: Span

    def diagnostic(self) -> Diagnostic:
        """Return the mistake as data."""
        return Diagnostic(
            code="RL407",
            title="a second optimiser updates this model",
            primary=Label(self.span, "this is another optimiser"),
            secondary=(Label(self.first, "this one updates it too"),),
            help="use one optimiser for a model within a program; call a second program, or change "
            "its learning rate: `update_model_params(model, grads, lr=..., optimizer=opt)`",
        )


@dataclass(frozen=True, slots=True)
class UnknownOptimizer:
    """An argument for an optimiser is none that a program can contain."""

    span: Span
    name: str
    why: str
    way: str

    def diagnostic(self) -> Diagnostic:
        """Return the mistake as data."""
        return Diagnostic(
            code="RL408",
            title=f"`{self.name}` {self.why}",
            primary=Label(self.span, "given as an optimiser"),
            help=self.way,
        )


@dataclass(frozen=True, slots=True)
class UnknownCaller:
    """A function that lets an optimiser update a model is used as a value.

    A model that an optimiser updates has room for what the optimiser remembers, from where it is
    made on, so it must be known which models those are.
    """

    span: Span

    def diagnostic(self) -> Diagnostic:
        """Return the mistake as data."""
        return Diagnostic(
            code="RL409",
            title="the models that an optimiser updates here are unknown",
            primary=Label(self.span, "whatever the caller of the function passes"),
            help="call the function by its name instead of passing it on",
        )


@dataclass(frozen=True, slots=True)
class NotASavedModel:
    """The file is something else than a saved model: other tensors, a pickle, a text."""

    path: str
    why: str

    def diagnostic(self) -> Diagnostic:
        """Return the mistake as data."""
        return Diagnostic(
            code="RL410",
            title=f"`{self.path}` is no saved model: {self.why}",
            primary=None,
            help="save one: relay.export_model(model).save(path)",
        )


@dataclass(frozen=True, slots=True)
class DamagedModel:
    """The file of a saved model was cut or changed since it was written.

    Nothing of it is used: half of the weights, or weights of another program, would give numbers
    that look like any others.
    """

    path: str
    why: str

    def diagnostic(self) -> Diagnostic:
        """Return the mistake as data."""
        return Diagnostic(
            code="RL411",
            title=f"`{self.path}` is damaged: {self.why}",
            primary=None,
            help="copy it again, or save the model again",
        )


@dataclass(frozen=True, slots=True)
class UnknownModelVersion:
    """The file of a saved model is of a version that this pyrelay does not read."""

    path: str
    version: str
    known: int

    def diagnostic(self) -> Diagnostic:
        """Return the mistake as data."""
        return Diagnostic(
            code="RL412",
            title=f"`{self.path}` is of version {self.version}, and this pyrelay reads version "
            f"{self.known}",
            primary=None,
            help="load it with the pyrelay that saved it, or a newer one",
        )


@dataclass(frozen=True, slots=True)
class MissingOperators:
    """A saved model calls operators of the user's own that were not given when it was loaded.

    A file holds no code, so whoever loads it brings the operators that `@relay.operator` made.
    """

    path: str
    names: tuple[str, ...]

    def diagnostic(self) -> Diagnostic:
        """Return the mistake as data."""
        names = ", ".join(self.names)
        return Diagnostic(
            code="RL413",
            title=f"`{self.path}` calls operators that pyrelay does not bring: {names}",
            primary=None,
            help=f"give them: relay.load_model({self.path!r}, operators=[{names}])",
        )


@dataclass(frozen=True, slots=True)
class NotSaveable:
    """A model holds something that no file can."""

    model: str
    why: str
    instead: str = "make it a number, or None"
    span: Span | None = None

    def diagnostic(self) -> Diagnostic:
        """Return the mistake as data."""
        return Diagnostic(
            code="RL414",
            title=f"`{self.model}` cannot be saved: {self.why}",
            primary=None if self.span is None else Label(self.span, "one of them is called here"),
            help=self.instead,
        )


@dataclass(frozen=True, slots=True)
class NoGraph:
    """`to_torch` is asked of a model that is no graph of torch's operators.

    A graph does the same whatever its arguments hold. A model that matches data, or branches and
    loops by values, is saved by `save`, which keeps the whole program.
    """

    span: Span
    model: str
    why: str

    def diagnostic(self) -> Diagnostic:
        """Return the mistake as data."""
        return Diagnostic(
            code="RL417",
            title=f"`{self.model}` cannot be a graph of torch",
            primary=Label(self.span, self.why),
            help="`save` keeps the whole program, and `relay.load_model` runs it",
        )


@dataclass(frozen=True, slots=True)
class WrongOptimizerState:
    """A saved state of an optimiser is of another kind, or of another model.

    `opt.state_dict(model)` gives what `opt.load_state_dict(model, state)` takes.
    """

    model: str
    why: str

    def diagnostic(self) -> Diagnostic:
        """Return the mistake as data."""
        return Diagnostic(
            code="RL418",
            title=f"this is no state of this optimiser for `{self.model}`: {self.why}",
            primary=None,
            help="give what `optimizer.state_dict(model)` gave for the same network",
        )


@dataclass(frozen=True, slots=True)
class FixedSite:
    """A call site of a model is used as a layer of torch that can be hooked or rebuilt.

    The sites of a model hold its parameters; they are no layers that run one after the other, since
    the whole definition is compiled into one program. A hook of a site would never fire, and a site
    without its parameter, as `weight_norm`, `prune` and parametrizations leave it, has none to
    compute with. Hooks of the model itself, and of its parameters, are torch's.
    """

    model: str
    site: str
    what: str
    way: str

    def diagnostic(self) -> Diagnostic:
        """Return the mistake as data."""
        of = f"the model `{self.model}`" if not self.site else f"`{self.site}` of `{self.model}`"
        return Diagnostic(
            code="RL419",
            title=f"{of} cannot {self.what}: its definition is compiled as a whole",
            primary=None,
            help=self.way,
        )


@dataclass(frozen=True, slots=True)
class ChangedParameter:
    """A parameter or a buffer of a model was given another shape, dtype or device by a script.

    Compiled code reads the memory of parameters by the shapes and dtypes of the definition. New
    values are loaded by `model.load_state_dict`, or copied, `p.data.copy_(value)`; a model of other
    sizes is made by `relay.create_model`, and the whole model is moved by `model.to(device)`.
    """

    model: str
    parameter: str
    span: Span
    actual: str
    made: str

    def diagnostic(self) -> Diagnostic:
        """Return the mistake as data."""
        return Diagnostic(
            code="RL421",
            title=f"`{self.parameter}` of `{self.model}` is {self.actual}, not {self.made}",
            primary=Label(self.span, "compiled code reads it here"),
            help="make another model for other sizes; move or convert the model as a whole",
        )


@dataclass(frozen=True, slots=True)
class AllFrozen:
    """A gradient is wanted in the parameters of a model, of which none requires a gradient.

    `p.requires_grad_(False)` freezes a parameter: its gradient is zero and is not computed, and no
    update moves it. Where all are frozen, there is nothing to differentiate in.
    """

    model: str
    span: Span | None = None

    def diagnostic(self) -> Diagnostic:
        """Return the mistake as data."""
        return Diagnostic(
            code="RL420",
            title=f"no parameter of this model of `{self.model}` requires a gradient",
            primary=None if self.span is None else Label(self.span, "the gradient is wanted here"),
            help="thaw what is to be trained: `model.requires_grad_(True)`",
        )
