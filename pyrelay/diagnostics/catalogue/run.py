"""Mistakes of a running program (RL500 to RL549)."""

from __future__ import annotations

import re

from ...dataclass import dataclass
from ..diagnostic import Diagnostic, Label
from ..source import Span


@dataclass(frozen=True, slots=True)
class CheckFailed:
    """An `assert` of the program does not hold.

    The condition was False when the program came to it; the title gives the message of the
    `assert`, if it has one.
    """

    span: Span
    message: str

    def diagnostic(self) -> Diagnostic:
        """Return the mistake as data."""
        return Diagnostic(
            code="RL500",
            title=self.message or "the assertion does not hold",
            primary=Label(self.span, "this is False"),
        )


@dataclass(frozen=True, slots=True)
class Raised:
    """The program stopped itself with `raise`."""

    span: Span
    message: str

    def diagnostic(self) -> Diagnostic:
        """Return the mistake as data."""
        return Diagnostic(
            code="RL501",
            title=self.message or "the program raised an error",
            primary=Label(self.span, "raised here"),
        )


@dataclass(frozen=True, slots=True)
class IndexOutOfRange:
    """An index is not in the range of the tensor or list.

    Indices count from 0, or from the end when negative: -1 is the last element. Slices clamp and
    never give this error.
    """

    span: Span
    message: str
    valid: str | None = None
    """The indices that there are, where the message does not name them."""

    def diagnostic(self) -> Diagnostic:
        """Return the mistake as data."""
        return Diagnostic(
            code="RL502",
            title="index out of range",
            primary=Label(self.span, ""),
            notes=(self.message,) if self.valid is None else (self.message, self.valid),
        )


@dataclass(frozen=True, slots=True)
class DivisionByZero:
    """An integer was divided by zero with `//` or `%`.

    Division of floats by zero gives an infinity or NaN and is no error.
    """

    span: Span
    divisor: str | None = None
    """The size that is divided by, where the size of a value is a quotient."""

    def diagnostic(self) -> Diagnostic:
        """Return the mistake as data."""
        divisor = "the divisor" if self.divisor is None else f"the size `{self.divisor}`"
        return Diagnostic(
            code="RL503",
            title="integer division by zero",
            primary=Label(self.span, f"{divisor} is 0"),
        )


@dataclass(frozen=True, slots=True)
class NoClauseMatched:
    """No case of a `match` that need not be exhaustive fits the value."""

    span: Span

    def diagnostic(self) -> Diagnostic:
        """Return the mistake as data."""
        return Diagnostic(
            code="RL504",
            title="no case matches the value",
            primary=Label(self.span, "the value fits none of these cases"),
            help="add a case for it, or `case _:`",
        )


@dataclass(frozen=True, slots=True)
class AssumptionBroken:
    """The arguments of a call have sizes that do not fit together.

    The program is right only if the two sizes are equal, or one is no smaller than the other;
    that could not be decided from its types and is checked for each call.
    """

    span: Span
    needed: str
    actual: tuple[tuple[str, int], ...]
    """The sizes that `needed` speaks of, with their values."""

    def diagnostic(self) -> Diagnostic:
        """Return the mistake as data."""
        number = re.fullmatch(r"(\w+) == (\d+)", self.needed)
        way = "use one Dim for both sizes"
        if number is not None:
            way = f"write {number[2]} in the place of `{number[1]}`"
        same = f"{way} in the annotations to have this reported at the argument"
        return Diagnostic(
            code="RL505",
            title="sizes do not fit: " + ", ".join(f"{n} is {v}" for n, v in self.actual),
            primary=Label(self.span, f"needs {self.needed}"),
            help=same if "==" in self.needed else None,
        )


@dataclass(frozen=True, slots=True)
class SizeDividedByZero:
    """A size that the program needs is divided by a size that is 0."""

    span: Span
    needed: str

    def diagnostic(self) -> Diagnostic:
        """Return the mistake as data."""
        return Diagnostic(
            code="RL515",
            title="a size is divided by 0",
            primary=Label(self.span, f"needs {self.needed}"),
        )


@dataclass(frozen=True, slots=True)
class SizeUndetermined:
    """A size that stands inside a larger one has no value, or could have any.

    In `N*K` the size `N` is what is left after division by `K`. If `K` is 0, that says nothing of
    `N`; if the division leaves a remainder, there is no such size.
    """

    span: Span
    name: str
    reason: str

    def diagnostic(self) -> Diagnostic:
        """Return the mistake as data."""
        return Diagnostic(
            code="RL514",
            title=f"the size `{self.name}` cannot be found: {self.reason}",
            primary=Label(self.span, "needed here"),
        )


@dataclass(frozen=True, slots=True)
class SizesAreNotEqual:
    """Two sizes differ that must be equal.

    The program found at least one of them while it ran, so its types do not imply it.
    """

    span: Span
    left: int
    right: int
    factor: int | None = None
    """Where the first is equal to the second only if it is a multiple of this number."""

    def diagnostic(self) -> Diagnostic:
        """Return the mistake as data."""
        title = f"two sizes that must be equal are {self.left} and {self.right}"
        label = "this needs them to be equal"
        way = "compare the `shape` of both before, or slice or pad one to the size of the other"
        if self.factor is not None:
            title = f"a size that must be a multiple of {self.factor} is {self.left}"
            label = "this divides it"
            way = f"pad it to a multiple of {self.factor}, or slice the rest off"
        return Diagnostic(code="RL508", title=title, primary=Label(self.span, label), help=way)


@dataclass(frozen=True, slots=True)
class SizeIsNegative:
    """A tensor is made with a size below 0.

    A size that is computed, such as `n - 3`, is negative where `n` is too small.
    """

    span: Span
    fault: str

    def diagnostic(self) -> Diagnostic:
        """Return the mistake as data."""
        return Diagnostic(
            code="RL518",
            title=self.fault,
            primary=Label(self.span, "sizes are 0 or more here"),
            help="keep it from getting smaller: `max(n, 0)`",
        )


@dataclass(frozen=True, slots=True)
class OperatorFailed:
    """An operator stopped while it ran; the note gives its own words."""

    span: Span
    message: str

    def diagnostic(self) -> Diagnostic:
        """Return the mistake as data."""
        return Diagnostic(
            code="RL506",
            title="an operator failed",
            primary=Label(self.span, "while this ran"),
            notes=(self.message,),
        )


@dataclass(frozen=True, slots=True)
class IntegerTooBig:
    """An integer has outgrown the 64 bits of an `Int`.

    Single integers are `int64`, also where they are annotated `int`: they do not grow without end
    as Python's own do, and they do not wrap around as elements of tensors do.
    """

    span: Span

    def diagnostic(self) -> Diagnostic:
        """Return the mistake as data."""
        return Diagnostic(
            code="RL512",
            title="an integer does not fit into 64 bits",
            primary=Label(self.span, "it is computed here"),
            help=(
                "compute with a float where numbers grow so large, or take remainders earlier; "
                "elements of tensors wrap around"
            ),
        )


@dataclass(frozen=True, slots=True)
class NoInteger:
    """A float that has no integer is made one: not-a-number, infinity, or one that is too large."""

    span: Span
    reason: str

    def diagnostic(self) -> Diagnostic:
        """Return the mistake as data."""
        return Diagnostic(
            code="RL517",
            title=self.reason,
            primary=Label(self.span, "it is converted here"),
            help="test the float before, with relay.isfinite(x) or a bound",
        )


@dataclass(frozen=True, slots=True)
class ListIsEmpty:
    """A list is empty where the program needs an element of it.

    It needs the first, the largest, or the shape that the elements have.
    """

    span: Span

    def diagnostic(self) -> Diagnostic:
        """Return the mistake as data."""
        return Diagnostic(
            code="RL509",
            title="the list is empty",
            primary=Label(self.span, "this needs an element"),
            help="test it before: `if len(xs) > 0`",
        )


@dataclass(frozen=True, slots=True)
class FunctionsCompared:
    """Values are compared that turn out to hold functions."""

    span: Span

    def diagnostic(self) -> Diagnostic:
        """Return the mistake as data."""
        return Diagnostic(
            code="RL510",
            title="functions are not compared",
            primary=Label(self.span, "what is compared here holds a function"),
            help="pass the parts that are tensors, numbers, strings or data of these",
        )


@dataclass(frozen=True, slots=True)
class WrongElement:
    """An element that a loop reads from an iterable is not what the annotation says.

    Elements are counted from 0. Each is checked when the loop comes to it, so the rounds before it
    have been run.
    """

    span: Span
    position: int
    wanted: str
    actual: str
    way: str | None

    def diagnostic(self) -> Diagnostic:
        """Return the mistake as data."""
        return Diagnostic(
            code="RL507",
            title=f"element {self.position} of `{self.span.text}` is {self.actual}",
            primary=Label(self.span, f"this loop reads {self.wanted}"),
            help=self.way,
        )


@dataclass(frozen=True, slots=True)
class TooDeep:
    """More calls wait for each other than the option `max_depth` allows.

    A recursion without an end takes all memory; this ends it first. Loops and tail calls do not
    count. The place is the call that waits innermost.
    """

    span: Span
    function: str
    limit: int

    def diagnostic(self) -> Diagnostic:
        """Return the mistake as data."""
        return Diagnostic(
            code="RL516",
            title=f"`{self.function}` calls itself without an end, or deeper than {self.limit:,}",
            primary=Label(self.span, f"{self.limit:,} calls wait here"),
            help="add a case that ends the recursion; where it is to go deeper, raise the option "
            "`max_depth` (PYRELAY_MAX_DEPTH)",
        )


@dataclass(frozen=True, slots=True)
class NoKernels:
    """The option `lowering` asks for kernels where they cannot run.

    `triton` runs on a GPU, `triton-interpret` on the CPU; both take an installed triton. `auto`,
    the default, calls torch.
    """

    span: Span
    why: str

    def diagnostic(self) -> Diagnostic:
        """Return the mistake as data."""
        return Diagnostic(
            code="RL511",
            title=f"kernels cannot run here: {self.why}",
            primary=Label(self.span, "this is to run as kernels"),
            help="leave the option `lowering` (PYRELAY_LOWERING) at `auto`",
        )


@dataclass(frozen=True, slots=True)
class RunsOnce:
    """Torch is asked for a second gradient of a call that changes something when it runs.

    With `create_graph=True` the second gradient runs the function once more, and a function that
    prints, reads an iterable, draws with a model's key or keeps running statistics does something
    else then. In compiled code `relay.grad` of `relay.grad` runs it once.
    """

    span: Span
    function: str

    def diagnostic(self) -> Diagnostic:
        """Return the mistake as data."""
        return Diagnostic(
            code="RL513",
            title=f"torch cannot differentiate the gradient of `{self.function}` again",
            primary=Label(self.span, "this has effects, which would happen twice"),
            help="call `model.eval()` if it is a model; else take both gradients in compiled "
            "code, with `relay.grad`",
        )
