"""Mistakes in the text form of programs (RL600 to RL649)."""

from __future__ import annotations

import re
from typing import Final

from ...dataclass import dataclass
from ..diagnostic import Diagnostic, Fix, Label
from ..misspelt import did_you_mean
from ..source import Span

_VECTOR: Final = re.compile(r"((?:u?int|float|bool)\d*)x(\d+)")
"""Relay's dtypes of several numbers: `int8x4`."""


def _fix(span: Span, near: str | None) -> Fix | None:
    return None if near is None else Fix(span, near)


@dataclass(frozen=True, slots=True)
class UnexpectedText:
    """The text of a program does not go on as its grammar says.

    The label says what could stand there instead.
    """

    span: Span
    found: str
    expected: tuple[str, ...]

    def diagnostic(self) -> Diagnostic:
        """Return the mistake as data."""
        *most, last = self.expected or ("something else",)
        wanted = f"{', '.join(most)} or {last}" if most else last
        return Diagnostic(
            code="RL600",
            title=f"{self.found} cannot stand here",
            primary=Label(self.span, f"expected {wanted}"),
        )


@dataclass(frozen=True, slots=True)
class UnknownVersion:
    """The header of a text names a language or version that is not known.

    A text may start with the line `#[pyrelay = "1"]`; without a header it is read as that version.
    The text of Relay starts with `#[version = "0.0.5"]`.
    """

    span: Span
    version: str
    known: tuple[str, ...]

    def diagnostic(self) -> Diagnostic:
        """Return the mistake as data."""
        return Diagnostic(
            code="RL601",
            title=f"this is `{self.version}`, which is not a version of the text form",
            primary=Label(self.span, "known are " + " and ".join(f"`{k}`" for k in self.known)),
        )


@dataclass(frozen=True, slots=True)
class UnboundVariable:
    """A variable is used where nothing binds it.

    A local variable, `%x`, is a parameter, is bound by `let` above, or by a pattern around it. Free
    variables of an expression are declared before it: `free_var %x: float32;`.
    """

    span: Span
    name: str
    near: str | None = None

    def diagnostic(self) -> Diagnostic:
        """Return the mistake as data."""
        return Diagnostic(
            code="RL602",
            title=f"`{self.name}` is not bound here",
            primary=Label(self.span, "no such variable in scope"),
            help=did_you_mean(self.near),
            fix=_fix(self.span, self.near),
        )


@dataclass(frozen=True, slots=True)
class UnknownGlobal:
    """A global function is mentioned that the module does not define."""

    span: Span
    name: str
    near: str | None = None

    def diagnostic(self) -> Diagnostic:
        """Return the mistake as data."""
        return Diagnostic(
            code="RL603",
            title=f"the module does not define `{self.name}`",
            primary=Label(self.span, "no such function"),
            help=did_you_mean(self.near),
            fix=_fix(self.span, self.near),
        )


@dataclass(frozen=True, slots=True)
class UnknownOperator:
    """A name that is called is no operator, no constructor and no transform."""

    span: Span
    name: str
    near: str | None = None

    def diagnostic(self) -> Diagnostic:
        """Return the mistake as data."""
        return Diagnostic(
            code="RL604",
            title=f"there is no operator or constructor `{self.name}`",
            primary=Label(self.span, "no such name"),
            help=did_you_mean(self.near) or "functions are written `@f`, local variables `%f`",
            fix=_fix(self.span, self.near),
        )


@dataclass(frozen=True, slots=True)
class UnknownConstructor:
    """A pattern or a qualified name asks for a constructor that no data type has."""

    span: Span
    name: str
    near: str | None = None

    def diagnostic(self) -> Diagnostic:
        """Return the mistake as data."""
        return Diagnostic(
            code="RL605",
            title=f"there is no constructor `{self.name}`",
            primary=Label(self.span, "no such constructor"),
            help=did_you_mean(self.near) or self._as_variable(),
            fix=_fix(self.span, self.near),
        )

    def _as_variable(self) -> str | None:
        """A name alone may be intended as a variable."""
        return f"a variable that takes any value is `%{self.name}`" * self.name.islower() or None


@dataclass(frozen=True, slots=True)
class AmbiguousConstructor:
    """Several data types have a constructor of this name; the data type must be named too."""

    span: Span
    name: str
    adts: tuple[str, ...]

    def diagnostic(self) -> Diagnostic:
        """Return the mistake as data."""
        return Diagnostic(
            code="RL606",
            title=f"several data types have a constructor `{self.name}`",
            primary=Label(self.span, "which one?"),
            help="write " + " or ".join(f"`{adt}::{self.name}`" for adt in self.adts),
        )


@dataclass(frozen=True, slots=True)
class UnknownType:
    """A name in a type is no data type of the module and no type parameter in scope."""

    span: Span
    name: str
    near: str | None = None

    def diagnostic(self) -> Diagnostic:
        """Return the mistake as data."""
        return Diagnostic(
            code="RL607",
            title=f"there is no type `{self.name}`",
            primary=Label(self.span, "no such type"),
            help=did_you_mean(self.near) or self._instead(),
            fix=_fix(self.span, self.near),
        )

    def _instead(self) -> str:
        vector = _VECTOR.fullmatch(self.name)
        if vector is not None:
            return f"no element is a vector: write a dim, `Tensor[(..., {vector[2]}), {vector[1]}]`"
        return (
            f"define it, `type {self.name} {{ ... }}`, or make it a type parameter of the "
            f"function: `[{self.name}]`"
        )


@dataclass(frozen=True, slots=True)
class MalformedType:
    """A type, dim or attribute is put together in a way that means nothing."""

    span: Span
    message: str
    wanted: str

    def diagnostic(self) -> Diagnostic:
        """Return the mistake as data."""
        return Diagnostic(
            code="RL608", title=self.message, primary=Label(self.span, f"expected {self.wanted}")
        )


@dataclass(frozen=True, slots=True)
class DefinedTwice:
    """A module defines two things under one name, or one place binds a name twice."""

    span: Span
    what: str
    name: str
    first: Span

    def diagnostic(self) -> Diagnostic:
        """Return the mistake as data."""
        return Diagnostic(
            code="RL609",
            title=f"the {self.what} `{self.name}` is defined twice",
            primary=Label(self.span, "again here"),
            secondary=(Label(self.first, "first here"),),
        )


@dataclass(frozen=True, slots=True)
class BadLiteral:
    """A number, string or tensor is written in a way that has no value.

    Numbers carry their dtype as a suffix: `1i64`, `2.5f32`, `3size`; one without is weak and takes
    the dtype it meets.
    """

    span: Span
    text: str
    why: str

    def diagnostic(self) -> Diagnostic:
        """Return the mistake as data."""
        return Diagnostic(
            code="RL610",
            title=f"`{self.text}` has no value",
            primary=Label(self.span, self.why),
        )


@dataclass(frozen=True, slots=True)
class BadCall:
    """An operator is called with attributes or operands that are not those it takes.

    It has no such attribute, it needs one more, one is of another kind, or there are too many
    operands.
    """

    span: Span
    message: str
    signature: str
    near: str | None = None

    def diagnostic(self) -> Diagnostic:
        """Return the mistake as data."""
        signature = f"its signature is `{self.signature}`"
        return Diagnostic(
            code="RL611",
            title=self.message,
            primary=Label(self.span, ""),
            notes=() if self.near is None else (signature,),
            help=did_you_mean(self.near) or signature,
            fix=_fix(self.span, self.near),
        )


@dataclass(frozen=True, slots=True)
class OperatorNotCalled:
    """An operator stands where a value is needed. Operators are called, never passed around."""

    span: Span
    name: str
    signature: str

    def diagnostic(self) -> Diagnostic:
        """Return the mistake as data."""
        return Diagnostic(
            code="RL612",
            title=f"the operator `{self.name}` is not a value",
            primary=Label(self.span, "an operator can only be called"),
            help=f"pass a function that calls it; its signature is `{self.signature}`",
        )


@dataclass(frozen=True, slots=True)
class RecursiveValue:
    """A `let rec` binds something that is not a function. Only functions can be recursive."""

    span: Span
    name: str

    def diagnostic(self) -> Diagnostic:
        """Return the mistake as data."""
        return Diagnostic(
            code="RL613",
            title=f"`let rec` binds `{self.name}` to something that is not a function",
            primary=Label(self.span, "expected `fn (...) {...}`"),
        )


@dataclass(frozen=True, slots=True)
class MisplacedType:
    """A type is written after a variable that already has one, where it was bound."""

    span: Span
    name: str

    def diagnostic(self) -> Diagnostic:
        """Return the mistake as data."""
        return Diagnostic(
            code="RL614",
            title=f"`{self.name}` is given a type where it is used",
            primary=Label(self.span, "a variable's type is written where it is bound"),
        )


@dataclass(frozen=True, slots=True)
class UnknownSource:
    """A span names a source file that no line `#[source 0 = "..."]` declares."""

    span: Span
    number: int

    def diagnostic(self) -> Diagnostic:
        """Return the mistake as data."""
        return Diagnostic(
            code="RL615",
            title=f"no source {self.number} is declared",
            primary=Label(self.span, "this span refers to it"),
            help=f'add `#[source {self.number} = "name.py"]` below the header',
        )


@dataclass(frozen=True, slots=True)
class UnclosedComment:
    """A comment is opened by `/*` and never closed. Comments in Relay's text nest."""

    span: Span

    def diagnostic(self) -> Diagnostic:
        """Return the mistake as data."""
        return Diagnostic(
            code="RL616",
            title="this comment is not closed",
            primary=Label(self.span, "no `*/` belongs to it"),
        )


@dataclass(frozen=True, slots=True)
class UnsupportedOperator:
    """Relay has this operator, or this use of it, and pyrelay has nothing of that meaning.

    Operators of Relay's text are read through one table (`pyrelay/ir/relay`). What is not in it, or
    an attribute that asks for something else than the table can say, is refused here.
    """

    span: Span
    name: str
    why: str
    help: str | None = None

    def diagnostic(self) -> Diagnostic:
        """Return the mistake as data."""
        return Diagnostic(
            code="RL617",
            title=f"Relay's `{self.name}` {self.why}",
            primary=Label(self.span, "not supported"),
            help=self.help,
        )


@dataclass(frozen=True, slots=True)
class BadMetadata:
    """A text mentions `meta[...][i]`, and its `#[metadata]` section does not say what that is.

    The section is the JSON that Relay wrote; constants stand in it as arrays in base64.
    """

    span: Span
    name: str
    why: str

    def diagnostic(self) -> Diagnostic:
        """Return the mistake as data."""
        return Diagnostic(
            code="RL618",
            title=f"`{self.name}` cannot be read: {self.why}",
            primary=Label(self.span, "no constant"),
            help="a text written with its metadata, `mod.astext()`, ends in `#[metadata]`",
        )


@dataclass(frozen=True, slots=True)
class NestedTooDeep:
    """A type, an attribute or a pattern nests deeper than any that a person writes."""

    span: Span
    most: int

    def diagnostic(self) -> Diagnostic:
        """Return the mistake as data."""
        return Diagnostic(
            code="RL619",
            title=f"types and patterns nest at most {self.most} deep",
            primary=Label(self.span, "this is deeper"),
            help="define a data type for the inner part: `type Name { Name(...) }`",
        )


@dataclass(frozen=True, slots=True)
class DamagedData:
    """JSON that should hold a program does not: it was changed, cut, or is something else."""

    span: Span
    message: str

    def diagnostic(self) -> Diagnostic:
        """Return the mistake as data."""
        return Diagnostic(
            code="RL640",
            title=f"this JSON holds no program: {self.message}",
            primary=Label(self.span, "this cannot be read"),
            help="write it again with `to_json`",
        )
