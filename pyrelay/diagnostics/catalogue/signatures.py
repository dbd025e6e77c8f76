"""Signatures, annotations, and calls that do not fit them.

Codes RL100 to RL149, with `language`.
"""

from __future__ import annotations

from ...dataclass import dataclass
from ..diagnostic import Diagnostic, Label
from ..misspelt import did_you_mean
from ..source import Span
from ..wording import with_article


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
        """Return the mistake as data."""
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
        """Return the mistake as data."""
        return Diagnostic(
            code="RL103",
            title=f"`{self.text}` is not a type that can be compiled",
            primary=Label(self.span, self.why),
            help=self.instead,
        )


@dataclass(frozen=True, slots=True)
class MissingReturn:
    """A function falls off its end on one path, where it should return a value.

    It returns one on another path, or its annotation says that it does.
    """

    span: Span
    function: str
    returns: Span
    path: str

    @property
    def _said(self) -> str:
        return "returned" if self.returns.text.startswith("return") else "promised"

    def diagnostic(self) -> Diagnostic:
        """Return the mistake as data."""
        return Diagnostic(
            code="RL104",
            title=f"`{self.function}` does not return a value on every path",
            primary=Label(self.span, self.path),
            secondary=(Label(self.returns, f"a value is {self._said} here"),),
            help="add a `return` at the end, or `raise` where the path must not be taken",
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
        """Return the mistake as data."""
        return Diagnostic(
            code="RL108",
            title=f"`{self.callee}` {self.why}",
            primary=Label(self.span, ""),
            notes=(f"its signature is {self.signature}",),
            help=self.way or did_you_mean(self.near),
        )


@dataclass(frozen=True, slots=True)
class MutableDefault:
    """A default value is an object that could change between two calls."""

    span: Span
    parameter: str
    kind: str

    def diagnostic(self) -> Diagnostic:
        """Return the mistake as data."""
        return Diagnostic(
            code="RL113",
            title=f"the default of `{self.parameter}` is {with_article(self.kind)}",
            primary=Label(self.span, "defaults are numbers, bools, strings and tuples of these"),
            help="make it a required parameter, or use a number or a tuple",
        )


@dataclass(frozen=True, slots=True)
class NotStatic:
    """A value must be known when the program is compiled, and is not."""

    span: Span
    what: str
    wanted: str

    def diagnostic(self) -> Diagnostic:
        """Return the mistake as data."""
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
        """Return the mistake as data."""
        return Diagnostic(
            code="RL118",
            title=f"{self.what}: {self.why}",
            primary=Label(self.span, ""),
        )
