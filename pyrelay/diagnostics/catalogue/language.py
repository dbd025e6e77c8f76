"""Python that is not the language, and sources that cannot be read.

Codes RL100 to RL199, shared with captures.py, names.py, signatures.py and others. Everything in
them is found while Python becomes IR.
"""

from __future__ import annotations

from ...dataclass import dataclass
from ..diagnostic import Diagnostic, Label
from ..source import Span


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
        """Return the mistake as data."""
        return Diagnostic(
            code="RL100",
            title=f"{self.what} cannot be compiled",
            primary=Label(self.span, ""),
            help=self.instead,
        )


@dataclass(frozen=True, slots=True)
class WronglyDecorated:
    """`@relay` or `@relay_model` stands above something else than a function.

    Both read the function's own text: they are written without parentheses, directly above `def`.
    """

    decorator: str
    what: str
    instead: str

    def diagnostic(self) -> Diagnostic:
        """Return the mistake as data."""
        return Diagnostic(
            code="RL127",
            title=f"`@{self.decorator}` {self.what}",
            primary=None,
            help=self.instead,
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
        """Return the mistake as data."""
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
        """Return the mistake as data."""
        return Diagnostic(
            code="RL110",
            title=f"the source of `{self.function}` cannot be read: {self.why}",
            primary=None,
            help=self.instead,
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
        """Return the mistake as data."""
        return Diagnostic(
            code="RL160",
            title=f"`{self.cls}` cannot be matched so",
            primary=Label(self.span, self.why),
            help=self.instead,
        )
