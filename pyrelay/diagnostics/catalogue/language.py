"""Python that is not the language, names that mean nothing, sources that cannot be read.

Codes RL100 to RL199. Everything here is found while Python becomes IR.
"""

from __future__ import annotations

from dataclasses import dataclass

from ..diagnostic import Diagnostic, Fix, Label
from ..source import Span


def _near(near: str | None) -> str | None:
    return None if near is None else f"did you mean `{near}`?"


def _a(noun: str) -> str:
    return f"an {noun}" if noun[0] in "aeiou" else f"a {noun}"


@dataclass(frozen=True, slots=True)
class Unsupported:
    """A construct of Python that is not part of the language.

    The language is the part of Python that a compiler can give one meaning before anything runs;
    the help says what to write instead.
    """

    span: Span
    what: str
    instead: str

    def diagnostic(self) -> Diagnostic:
        """Give the mistake as data."""
        return Diagnostic(
            code="RL100",
            title=f"{self.what} cannot be compiled",
            primary=Label(self.span, ""),
            help=self.instead,
        )


@dataclass(frozen=True, slots=True)
class UndefinedName:
    """A name is not defined anywhere: no parameter, local, enclosing or global name, no builtin."""

    span: Span
    name: str
    near: str | None = None

    def diagnostic(self) -> Diagnostic:
        """Give the mistake as data."""
        return Diagnostic(
            code="RL101",
            title=f"`{self.name}` is not defined",
            primary=Label(self.span, "no such name here"),
            help=_near(self.near),
            fix=None if self.near is None else Fix(self.span, self.near),
        )


@dataclass(frozen=True, slots=True)
class UnannotatedParameter:
    """A parameter of a relay function has no annotation.

    Types are inferred from those of the parameters, so each of them is written down; local names
    and nested functions never need one.
    """

    span: Span
    name: str
    function: str

    def diagnostic(self) -> Diagnostic:
        """Give the mistake as data."""
        return Diagnostic(
            code="RL102",
            title=f"the parameter `{self.name}` of `{self.function}` has no annotation",
            primary=Label(self.span, "what is this?"),
            help=f"annotate it, for example `{self.name}: Float` or "
            f"`{self.name}: Tensor[Float, (N, 3)]`",
        )


@dataclass(frozen=True, slots=True)
class UnreadableAnnotation:
    """An annotation does not name a type of the language."""

    span: Span
    text: str
    why: str
    instead: str | None = None

    def diagnostic(self) -> Diagnostic:
        """Give the mistake as data."""
        return Diagnostic(
            code="RL103",
            title=f"`{self.text}` is not a type that can be compiled",
            primary=Label(self.span, self.why),
            help=self.instead,
        )


@dataclass(frozen=True, slots=True)
class MissingReturn:
    """A function falls off its end on one path, where it returns a value on another, or its
    annotation says that it returns one."""

    span: Span
    function: str
    returns: Span
    path: str

    @property
    def _said(self) -> str:
        return "returned" if self.returns.text.startswith("return") else "promised"

    def diagnostic(self) -> Diagnostic:
        """Give the mistake as data."""
        return Diagnostic(
            code="RL104",
            title=f"`{self.function}` does not return a value on every path",
            primary=Label(self.span, self.path),
            secondary=(Label(self.returns, f"a value is {self._said} here"),),
            help="add a `return` at the end, or `raise` where the path must not be taken",
        )


@dataclass(frozen=True, slots=True)
class UnboundName:
    """A local name is used where it has no value on some path that leads there."""

    span: Span
    name: str
    place: Span
    path: str

    def diagnostic(self) -> Diagnostic:
        """Give the mistake as data."""
        return Diagnostic(
            code="RL105",
            title=f"`{self.name}` is not bound on every path",
            primary=Label(self.span, "used here"),
            secondary=(Label(self.place, self.path),),
            help=f"give `{self.name}` a value before",
        )


@dataclass(frozen=True, slots=True)
class CapturedTensor:
    """A relay function uses a tensor or an array that it captures.

    A captured array could change without the compiled program noticing, and whether it is a
    weight, an input or a constant is not said. Pass it as an argument, or say it is a constant.
    """

    span: Span
    name: str
    kind: str

    def diagnostic(self) -> Diagnostic:
        """Give the mistake as data."""
        return Diagnostic(
            code="RL106",
            title=f"`{self.name}` is {_a(self.kind)} from outside of the function",
            primary=Label(self.span, "captured here"),
            help=f"pass it as an argument, or write `relay.const({self.name})` if its elements "
            "never change",
        )


@dataclass(frozen=True, slots=True)
class UndecoratedFunction:
    """A relay function calls a Python function that is not one."""

    span: Span
    name: str
    instead: str

    def diagnostic(self) -> Diagnostic:
        """Give the mistake as data."""
        return Diagnostic(
            code="RL107",
            title=f"`{self.name}` is not a relay function",
            primary=Label(self.span, "called from compiled code"),
            help=self.instead,
        )


@dataclass(frozen=True, slots=True)
class WrongArguments:
    """A call does not fit the signature of what it calls."""

    span: Span
    callee: str
    why: str
    signature: str
    near: str | None = None
    way: str | None = None

    def diagnostic(self) -> Diagnostic:
        """Give the mistake as data."""
        return Diagnostic(
            code="RL108",
            title=f"`{self.callee}` {self.why}",
            primary=Label(self.span, ""),
            notes=(f"its signature is {self.signature}",),
            help=self.way or _near(self.near),
        )


@dataclass(frozen=True, slots=True)
class SourceChanged:
    """The file on disk is not the program that was imported.

    Compiling what the file says now would run something else than what Python has loaded.
    """

    span: Span
    function: str
    file: str

    def diagnostic(self) -> Diagnostic:
        """Give the mistake as data."""
        return Diagnostic(
            code="RL109",
            title=f"the source of `{self.function}` has changed since it was imported",
            primary=Label(self.span, f"{self.file} no longer holds this function"),
            help="restart the program, or reload the module",
        )


@dataclass(frozen=True, slots=True)
class NoSource:
    """The text of a function cannot be found."""

    function: str
    why: str
    instead: str

    def diagnostic(self) -> Diagnostic:
        """Give the mistake as data."""
        return Diagnostic(
            code="RL110",
            title=f"the source of `{self.function}` cannot be read: {self.why}",
            primary=None,
            help=self.instead,
        )


@dataclass(frozen=True, slots=True)
class UnknownAttribute:
    """A value, a module or the `relay` namespace has no attribute or method of that name."""

    span: Span
    owner: str
    name: str
    near: str | None = None
    instead: str | None = None

    def diagnostic(self) -> Diagnostic:
        """Give the mistake as data."""
        return Diagnostic(
            code="RL111",
            title=f"{self.owner} has no `{self.name}`",
            primary=Label(self.span, ""),
            help=self.instead or _near(self.near),
        )


@dataclass(frozen=True, slots=True)
class OuterAssignment:
    """A function assigns to a name or an object that it captures."""

    span: Span
    name: str

    def diagnostic(self) -> Diagnostic:
        """Give the mistake as data."""
        return Diagnostic(
            code="RL112",
            title=f"`{self.name}` belongs to the outside, and cannot be assigned here",
            primary=Label(self.span, ""),
            help="return the new value, or keep it in a cell: `cell = relay.ref(v)`, "
            "`cell.value = e`",
        )


@dataclass(frozen=True, slots=True)
class MutableDefault:
    """A default value is an object that could change between two calls."""

    span: Span
    parameter: str
    kind: str

    def diagnostic(self) -> Diagnostic:
        """Give the mistake as data."""
        return Diagnostic(
            code="RL113",
            title=f"the default of `{self.parameter}` is {_a(self.kind)}",
            primary=Label(self.span, "defaults are numbers, bools, strings and tuples of these"),
            help="make it a required parameter, or use a number or a tuple",
        )


@dataclass(frozen=True, slots=True)
class SharedItem:
    """An item is assigned in a value that another name may hold too.

    `x[i] = e` makes `x` a new value and leaves every other value alone. Where another name may hold
    the same tensor, Python would change that one too, so the program has to say what it means.
    """

    span: Span
    name: str
    holder: Span
    why: str

    def diagnostic(self) -> Diagnostic:
        """Give the mistake as data."""
        return Diagnostic(
            code="RL114",
            title=f"the tensor in `{self.name}` may also be held elsewhere",
            primary=Label(self.span, "an item is assigned here"),
            secondary=(Label(self.holder, self.why),),
            help=f"write `{self.name} = relay.set_at({self.name}, index, value)`, which changes "
            "nothing but this name",
        )


@dataclass(frozen=True, slots=True)
class HiddenOutsideModel:
    """An operator leaves out a weight where there is no model to keep one."""

    span: Span
    operator: str
    operand: str
    function: str

    def diagnostic(self) -> Diagnostic:
        """Give the mistake as data."""
        return Diagnostic(
            code="RL115",
            title=f"`{self.operator}` has no `{self.operand}` and `{self.function}` is not a model",
            primary=Label(self.span, f"this needs a hidden `{self.operand}`"),
            help=f"decorate `{self.function}` with @relay_model, or pass `{self.operand}=`",
        )


@dataclass(frozen=True, slots=True)
class CapturedObject:
    """A relay function uses a Python object that has no meaning in compiled code."""

    span: Span
    name: str
    kind: str
    instead: str

    def diagnostic(self) -> Diagnostic:
        """Give the mistake as data."""
        return Diagnostic(
            code="RL116",
            title=f"`{self.name}` is {_a(self.kind)}, which compiled code cannot use",
            primary=Label(self.span, ""),
            help=self.instead,
        )


@dataclass(frozen=True, slots=True)
class NotStatic:
    """A value must be known when the program is compiled, and is not."""

    span: Span
    what: str
    wanted: str

    def diagnostic(self) -> Diagnostic:
        """Give the mistake as data."""
        return Diagnostic(
            code="RL117",
            title=f"{self.what} must be known before the program runs",
            primary=Label(self.span, "this is known only while it runs"),
            help=f"write {self.wanted}",
        )


@dataclass(frozen=True, slots=True)
class BadValue:
    """An argument that is known before the program runs has a value that cannot be."""

    span: Span
    what: str
    why: str

    def diagnostic(self) -> Diagnostic:
        """Give the mistake as data."""
        return Diagnostic(
            code="RL118",
            title=f"{self.what}: {self.why}",
            primary=Label(self.span, ""),
        )


@dataclass(frozen=True, slots=True)
class CaptureReassigned:
    """A name that a closure has captured is assigned again.

    Python's closures see the new value, a compiled closure holds the value it was made with.
    """

    span: Span
    name: str
    closure: Span

    def diagnostic(self) -> Diagnostic:
        """Give the mistake as data."""
        return Diagnostic(
            code="RL119",
            title=f"`{self.name}` is assigned again after a function has captured it",
            primary=Label(self.span, "assigned again here"),
            secondary=(Label(self.closure, f"captures `{self.name}`"),),
            help=f"use another name for the new value, or pass `{self.name}` as an argument",
        )


@dataclass(frozen=True, slots=True)
class UnknownModel:
    """It cannot be told which model a value is.

    Which parameters a model has follows from its definition, so it must be clear from the text.
    """

    span: Span

    def diagnostic(self) -> Diagnostic:
        """Give the mistake as data."""
        return Diagnostic(
            code="RL120",
            title="it cannot be told which model this is",
            primary=Label(self.span, "a model, by name, is needed here"),
            help="pass the model as a parameter annotated `Model[net]`, and name that parameter",
        )


@dataclass(frozen=True, slots=True)
class ModelNotMentioned:
    """A function is differentiated in a model that it does not use."""

    span: Span
    function: str
    model: str

    def diagnostic(self) -> Diagnostic:
        """Give the mistake as data."""
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
        """Give the mistake as data."""
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
        """Give the mistake as data."""
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
        """Give the mistake as data."""
        return Diagnostic(
            code="RL124",
            title=f"this is not the same `{self.name}`",
            primary=Label(self.span, f"here it has {self.here or 'no static arguments'}"),
            notes=(f"elsewhere it has {self.there or 'no static arguments'}",),
            help="pass each instance as a parameter annotated "
            f"`Model[{self.name}]`, and call those",
        )


@dataclass(frozen=True, slots=True)
class ClassPattern:
    """A class pattern that no value can match as it is written.

    A class pattern names a frozen dataclass, positions stand for the fields in order
    (`__match_args__`), and keywords for fields by name.
    """

    span: Span
    cls: str
    why: str
    instead: str

    def diagnostic(self) -> Diagnostic:
        """Give the mistake as data."""
        return Diagnostic(
            code="RL160",
            title=f"`{self.cls}` cannot be matched so",
            primary=Label(self.span, self.why),
            help=self.instead,
        )
