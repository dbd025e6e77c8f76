"""Mistakes of types and shapes, found before anything runs (RL200 to RL299)."""

from __future__ import annotations

from ...dataclass import dataclass
from ..diagnostic import Diagnostic, Label
from ..source import Span
from ..wording import counted
from .dtypes import Cast


@dataclass(frozen=True, slots=True)
class OperatorMismatch:
    """An operator cannot take operands of these types or shapes.

    The labels show the operands with the types that inference found for them, and where each of
    them comes from. Change the operand, or use the operator that the help names.
    """

    span: Span
    message: str
    labels: tuple[Label, ...]
    help: str | None = None
    cast: Cast | None = None

    def diagnostic(self) -> Diagnostic:
        """Return the mistake as data."""
        return Diagnostic(
            code="RL201",
            title=self.message,
            primary=Label(self.span, ""),
            secondary=self.labels,
            help=self.help if self.cast is None else self.cast.help,
            fix=None if self.cast is None else self.cast.fix,
        )


@dataclass(frozen=True, slots=True)
class ArgumentMismatch:
    """An argument does not have the type of the parameter it is passed for."""

    span: Span
    function: str
    role: str
    """As what it takes the argument: " as `x`", or nothing where that has no name."""
    declared: Label
    wanted: str
    actual: str
    text: str
    origin: Label | None
    why: str
    way: str | None
    cast: Cast | None = None
    witness: tuple[str, Label] | None = None
    """The required type of a polymorphic parameter here, and the argument that requires it."""

    def diagnostic(self) -> Diagnostic:
        """Return the mistake as data."""
        places = [self.declared]
        places += [] if self.origin is None else [self.origin]
        places += [] if self.witness is None else [self.witness[1]]
        wanted = self.wanted if self.witness is None else self.witness[0]
        says_more = self.actual not in self.why
        return Diagnostic(
            code="RL202",
            title=f"`{self.function}` takes {wanted}{self.role}",
            primary=Label(self.span, self.text),
            secondary=tuple(places),
            notes=(self.why,) if says_more else (),
            help=self.way if self.cast is None else self.cast.help,
            fix=None if self.cast is None else self.cast.fix,
        )


@dataclass(frozen=True, slots=True)
class ArgumentCountMismatch:
    """A function is called with too many or too few arguments."""

    span: Span
    wanted: int
    given: int

    def diagnostic(self) -> Diagnostic:
        """Return the mistake as data."""
        many = "1 argument" if self.wanted == 1 else f"{self.wanted} arguments"
        return Diagnostic(
            code="RL203",
            title=f"this function takes {many}, not {self.given}",
            primary=Label(self.span, f"{self.given} given here"),
        )


@dataclass(frozen=True, slots=True)
class BranchMismatch:
    """The two ways through an `if` give values of different types to one name."""

    span: Span
    first: Span
    first_type: str
    second: Span
    second_type: str
    why: str
    way: str | None

    def diagnostic(self) -> Diagnostic:
        """Return the mistake as data."""
        return Diagnostic(
            code="RL204",
            title="the branches give different types",
            primary=Label(self.second, f"here it is {self.second_type}"),
            secondary=(Label(self.first, f"here it is {self.first_type}"),),
            notes=(self.why,),
            help=self.way,
        )


@dataclass(frozen=True, slots=True)
class LoopMismatch:
    """A name carried by a loop has another type after an iteration than before.

    A loop is one function called again and again, so a carried name has one shape and one dtype.
    """

    span: Span
    name: str
    before: str
    start: Span
    after: str
    resized: bool
    """Whether the types differ in sizes alone."""

    def diagnostic(self) -> Diagnostic:
        """Return the mistake as data."""
        return Diagnostic(
            code="RL205",
            title=f"`{self.name}` changes its type over the loop",
            primary=Label(self.span, f"after one iteration it is {self.after}"),
            secondary=(Label(self.start, f"it comes into the loop as {self.before}"),),
            help="give it the size it came with in each round; where sizes are to change, write a "
            "function that calls itself, with `Any` for that size in the annotation of its result"
            if self.resized
            else f"give `{self.name}` its final dtype and shape before the loop",
        )


@dataclass(frozen=True, slots=True)
class CellMismatch:
    """A cell is given a value of another type than it holds.

    A cell has one type from the start: that of the value it was made with. Convert the value, or
    make a cell of its own for it.
    """

    span: Span
    content: str
    actual: str

    def diagnostic(self) -> Diagnostic:
        """Return the mistake as data."""
        return Diagnostic(
            code="RL218",
            title=f"the cell holds {self.content}, not {self.actual}",
            primary=Label(self.span, f"this is {self.actual}"),
            help=f"convert it to {self.content}, or make a cell of its own: `relay.ref(v)`",
        )


@dataclass(frozen=True, slots=True)
class NotACell:
    """Something is read or written like a cell that is none.

    Only what `relay.ref(v)` gives has a `value` that is read and written.
    """

    span: Span
    actual: str

    def diagnostic(self) -> Diagnostic:
        """Return the mistake as data."""
        return Diagnostic(
            code="RL219",
            title=f"only a cell has a `value`, and this is {self.actual}",
            primary=Label(self.span, f"this is {self.actual}"),
            help="make a cell: `relay.ref(v)`, or annotate the parameter, such as `Ref[Float]`",
        )


@dataclass(frozen=True, slots=True)
class ReturnMismatch:
    """A function returns something else than its annotation says."""

    span: Span
    function: str
    declared: str
    actual: str
    way: str | None = None
    """How a value of the declared type is made; None where only the types are known."""

    def diagnostic(self) -> Diagnostic:
        """Return the mistake as data."""
        way = self.way or f"make the value {self.declared}"
        return Diagnostic(
            code="RL206",
            title=f"`{self.function}` is declared to return {self.declared}",
            primary=Label(self.span, f"this is {self.actual}"),
            help=f"declare `-> {self.actual}`, or {way}",
        )


@dataclass(frozen=True, slots=True)
class NameMismatch:
    """A name is assigned something else than its annotation says."""

    span: Span
    name: str
    declared: str
    actual: str

    def diagnostic(self) -> Diagnostic:
        """Return the mistake as data."""
        return Diagnostic(
            code="RL224",
            title=f"`{self.name}` is annotated as {self.declared}",
            primary=Label(self.span, f"what it gets is {self.actual}"),
        )


@dataclass(frozen=True, slots=True)
class ConditionMismatch:
    """A condition is not one Bool: it is a whole tensor, or a number."""

    span: Span
    actual: str
    way: str
    is_optional: bool = False

    def diagnostic(self) -> Diagnostic:
        """Return the mistake as data."""
        return Diagnostic(
            code="RL207",
            title=f"a condition must be one Bool, not {self.actual}",
            primary=Label(self.span, f"this is {self.actual}"),
            help=self.way,
        )


@dataclass(frozen=True, slots=True)
class NotAFunction:
    """Something that is not a function is called."""

    span: Span
    actual: str

    def diagnostic(self) -> Diagnostic:
        """Return the mistake as data."""
        return Diagnostic(
            code="RL208",
            title=f"only functions can be called, this is {self.actual}",
            primary=Label(self.span, f"this is {self.actual}"),
        )


@dataclass(frozen=True, slots=True)
class QuantifiedType:
    """A text gives a value a function type with type parameters of its own, `fn [A](A) -> A`.

    Functions of the module, and local ones, are used at a type for each call. A function that is
    passed in, stored or given back has one type.
    """

    span: Span
    what: str
    parameter: str
    holder: str | None
    """The owner of the type parameter; None for a local function, which names its own."""

    def diagnostic(self) -> Diagnostic:
        """Return the mistake as data."""
        return Diagnostic(
            code="RL225",
            title=f"the type of {self.what} is open in `{self.parameter}`",
            primary=Label(self.span, "a value has one type"),
            help="leave the annotation out: the function has its type parameters"
            if self.holder is None
            else f"make `{self.parameter}` a type parameter of {self.holder}",
        )


@dataclass(frozen=True, slots=True)
class EndlessType:
    """A type would have to contain itself, as that of a function that is applied to itself."""

    span: Span

    def diagnostic(self) -> Diagnostic:
        """Return the mistake as data."""
        return Diagnostic(
            code="RL220",
            title="no type fits here: it would have to contain itself",
            primary=Label(self.span, "a value would be a part of its own type"),
            help="what contains more of its own kind is a data type: a union of dataclasses",
        )


@dataclass(frozen=True, slots=True)
class NotStatic:
    """An argument that shapes the program must be known before it runs."""

    span: Span
    operator: str
    argument: str
    actual: str

    def diagnostic(self) -> Diagnostic:
        """Return the mistake as data."""
        return Diagnostic(
            code="RL211",
            title=f"`{self.argument}` of `{self.operator}` must be known before the program runs",
            primary=Label(self.span, f"this is {self.actual}"),
            help="sizes are integers: divide them by `//`"
            if self.actual == "Float"
            else "write a literal, a shape, a captured number, or a keyword-only parameter "
            "annotated `int`, `float`, `bool` or `str`",
        )


@dataclass(frozen=True, slots=True)
class NotATuple:
    """A field is taken, or names are unpacked, from something that has no such field."""

    span: Span
    index: int
    actual: str

    def diagnostic(self) -> Diagnostic:
        """Return the mistake as data."""
        return Diagnostic(
            code="RL212",
            title=f"there is no field {self.index} in {self.actual}",
            primary=Label(self.span, f"this is {self.actual}"),
        )


@dataclass(frozen=True, slots=True)
class TransformMismatch:
    """A transform such as `relay.grad` cannot be applied to this function."""

    span: Span
    rule: str
    why: str
    way: str | None

    def diagnostic(self) -> Diagnostic:
        """Return the mistake as data."""
        return Diagnostic(
            code="RL216",
            title=f"`relay.{self.rule}` cannot be applied here: {self.why}",
            primary=Label(self.span, ""),
            help=self.way,
        )


@dataclass(frozen=True, slots=True)
class UnpackMismatch:
    """A tuple is unpacked into more or fewer names than it has fields, or the value is no tuple.

    The number of names is checked before the program runs: of a tuple, and of a tensor whose first
    size is known. The length of a list is checked when the program runs.
    """

    span: Span
    names: int
    actual: str
    fields: int | None
    """How many fields the tuple has; None for what is no tuple."""
    value: str
    """The unpacked value, as it is written; "x" where that is not known."""
    has_parts: bool
    """Whether it is a tensor with dims, or a list."""
    iterated: str | None = None
    """Of what it is an element, as it is written; None where it is none."""

    def diagnostic(self) -> Diagnostic:
        """Return the mistake as data."""
        names = counted(self.names, "name")
        return Diagnostic(
            code="RL217",
            title=f"this cannot be unpacked into {names}"
            if self.fields is None
            else f"{counted(self.fields, 'value')} cannot be unpacked into {names}",
            primary=Label(self.span, f"this is {self.actual}"),
            help=self._way(self.fields),
        )

    def _way(self, fields: int | None) -> str | None:
        targets = [t.strip() for t in self.span.text.strip("()[]").split(",")]
        if len(targets) != self.names or not all(t.isidentifier() for t in targets):
            targets = ["a", "b", "c"][: self.names] if self.names < 4 else []
        if fields is not None and fields > self.names:
            return "give every value a name, such as `_` for those that are not used"
        if fields is not None:
            rest = [f"`{t}`" for t in targets[fields:]]
            return f"leave {' and '.join(rest)} out" if len(rest) in (1, 2) else None
        if self.iterated is not None and not self.has_parts and len(targets) == 2:
            loop = f"for {', '.join(targets)} in enumerate({self.iterated})"
            return f"`enumerate` has the number of each element as well: `{loop}`"
        if not self.has_parts or not targets:
            return None
        parts = ", ".join(f"{self.value}[{i}]" for i in range(self.names))
        return f"name its parts: `{', '.join(targets)} = {parts}`"
